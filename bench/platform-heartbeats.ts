import { setTimeout as sleep } from 'node:timers/promises'
import { ratioFigure, type Measure } from './figure.ts'
import { quantile, single, spread } from './numbers.ts'
import { createPlatformRig } from './platform-rig.ts'
import type { ServerProcess } from './server-process.ts'
import { readCpuMs, readPeakMiB } from './usage.ts'

interface Period {
  /** Processor time of the server for each reply, user and system, microseconds. */
  readonly cpuOfReplyUs: number
  /** Processors that the server uses. */
  readonly cores: number
}

/**
 * Hosts from as many addresses, a new TLS connection and a heartbeat each in a period, and the facts of one of a hundred, against bare Fastify
 * with the same commit a second. The pages of a user are measured in a period of their own.
 */
export const measurePlatformHeartbeats: Measure = async (rig) => {
  const { count, periodMs, rounds } = rig.isQuick
    ? { count: 1_000, periodMs: 6_000, rounds: 2 }
    : { count: 10_000, periodMs: 60_000, rounds: 3 }
  rig.say(`platform-heartbeats: making ${count} hosts`)
  const platform = await createPlatformRig(rig, 'heartbeats', count)
  const { hosts } = platform
  const own = await platform.start()
  const bare = await platform.startBare(5_000)
  rig.say(`platform-heartbeats: ${count} hosts log in`)
  await hosts.run('logIn', { port: own.port, atOnce: 20 })

  let change = 0
  let failed = 0
  const period = async ({ pid, port }: ServerProcess, part = 1): Promise<Period> => {
    change += 1
    const before = readCpuMs(pid)
    const order = { port, hostCount: Math.ceil(count * part), periodMs: periodMs * part, change }
    const { durationMs, outcomes } = await hosts.run('beatOnce', order)
    const cpuMs = readCpuMs(pid) - before
    const accepted = outcomes['204'] ?? 0
    failed += sum(Object.values(outcomes)) - accepted
    return { cpuOfReplyUs: (cpuMs * 1_000) / accepted, cores: cpuMs / durationMs }
  }
  const base: Period[] = []
  const used: Period[] = []
  // The code of both is hot before the first period counts.
  for (const server of [bare, own]) await period(server, 0.2)
  failed = 0
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-heartbeats: round ${round + 1} of ${rounds}`)
    if (round % 2 === 0) base.push(await period(bare))
    used.push(await period(own))
    if (round % 2 === 1) base.push(await period(bare))
  }

  rig.say('platform-heartbeats: pages of a user')
  const token = await platform.signIn(own)
  const client = platform.client(own)
  const pages: number[] = []
  const over = new AbortController()
  const load = period(own).finally(() => over.abort())
  while (!over.signal.aborted) {
    const { status, durationMs } = await client.send('GET', '/v1/edgehosts', { token })
    if (status !== 200) throw new Error(`the list of hosts answers ${status}`)
    pages.push(durationMs)
    // Below the rate of one address.
    await sleep(120)
  }
  await load
  client.close()
  const peakMiB = readPeakMiB(own.pid)
  await Promise.all([own.stop(), bare.stop(), hosts.stop()])

  const lost = failed === 0 ? '' : `; ${failed} calls were not answered`
  const how = `${count} hosts in ${periodMs / 1_000} s, a new TLS connection each, ${rounds} pairs of periods${lost}`
  const share = (periods: readonly Period[]) => spread(periods.map(({ cores }) => cores * 100))
  const cost = (periods: readonly Period[]) => periods.map(({ cpuOfReplyUs }) => cpuOfReplyUs)
  return [
    ratioFigure('platform heartbeats: CPU ÷ bare Fastify', cost(used), cost(base), {
      target: '≤ 2',
      note: how,
    }),
    { name: 'platform heartbeats: CPU, of a core', value: share(used), unit: '%' },
    { name: 'platform heartbeats: CPU of bare Fastify, of a core', value: share(base), unit: '%' },
    { name: 'platform heartbeats: peak memory', value: single(peakMiB), unit: 'MiB', target: '≤ 400 MiB' },
    {
      name: 'platform heartbeats: p99 of a page of hosts meanwhile',
      value: single(quantile(pages, 0.99)),
      unit: 'ms',
      target: '≤ 50 ms',
      note: `${pages.length} pages of 50, p50 ${quantile(pages, 0.5).toFixed(1)} ms`,
    },
  ]
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
