import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './accounts.ts'
import type { Figure, Measure } from './figure.ts'
import type { MemoryArgs, MemoryResult } from './memory-probe.ts'
import { quantile, spread } from './numbers.ts'
import type { PingArgs, PingResult } from './ping-probe.ts'
import { startProbe } from './probe.ts'
import type { Rig } from './rig.ts'
import type { ServerProcess } from './server-process.ts'

const logins = 200
// All logins come from this host, which counts as one client.
const settings = { 'api.connections.maximumPerAddress': 2 * logins }

/**
 * Two hundred logins at the same moment, each on a new connection. Memory and the time of a ping are measured in separate
 * bursts, since reading /proc would delay the replies.
 */
export const measureLoginsAtOnce: Measure = async (rig) => {
  const { good } = rig.accounts
  const wrong = { ...good, password: `${good.password}x` }
  const bursts = rig.isQuick ? 1 : 3
  return [
    ...(await measure(rig, 'right passwords', good, rig.isQuick ? 2 : 7)),
    ...(await measure(rig, 'wrong passwords', wrong, bursts)),
  ]
}

async function measure(rig: Rig, name: string, account: Account, bursts: number): Promise<Figure[]> {
  const daemon = await rig.startDaemon({ settings })
  const outcomes = new Map<number, number>()
  const extra: number[] = []
  const pings: number[][] = []
  let mostChildren = 0
  // Only the first burst lets the daemon's own memory grow; it counts as well.
  for (let burst = 0; burst < bursts; burst += 1) {
    rig.say(`logins at once, ${name}: burst ${burst + 1} of ${bursts}`)
    const memory = await startProbe<MemoryResult>('memory-probe.ts', { pid: daemon.pid } satisfies MemoryArgs)
    await logInAtOnce(rig, daemon, account, outcomes)
    const seen = await memory.stop()
    extra.push(seen.peakMiB - seen.beforeMiB)
    mostChildren = Math.max(mostChildren, seen.mostChildren)
    await sleep(1_000)

    const { certificate } = rig
    const ping = await startProbe<PingResult>('ping-probe.ts', {
      port: daemon.port,
      certificate,
    } satisfies PingArgs)
    await logInAtOnce(rig, daemon, account, outcomes)
    pings.push(await ping.stop())
    await sleep(1_000)
  }
  await daemon.stop()

  const statuses = [...outcomes].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`)
  const count = pings.flat().length
  return [
    {
      name: `${logins} logins at once, ${name}: peak extra memory`,
      value: spread(extra),
      unit: 'MiB',
      target: '≤ 150 MiB',
      note: `${2 * bursts} bursts, at most ${mostChildren} children, ${statuses.join(', ')}`,
    },
    {
      name: `${logins} logins at once, ${name}: p99 of GET /v1/ping`,
      value: spread(pings.map((each) => quantile(each, 0.99))),
      unit: 'ms',
      target: '≤ 50 ms',
      note: `${count} pings, p50 ${quantile(pings.flat(), 0.5).toFixed(1)} ms`,
    },
  ]
}

async function logInAtOnce(
  rig: Rig,
  daemon: ServerProcess,
  { userName: username, password }: Account,
  outcomes: Map<number, number>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: logins }, async () => {
      const client = rig.client(daemon)
      const reply = await client.send('POST', '/v1/users/default/login', { body: { username, password } })
      outcomes.set(reply.status, (outcomes.get(reply.status) ?? 0) + 1)
      client.close()
    }),
  )
}
