import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  chanceOfSame,
  type Figure,
  type Measure,
  median,
  quantile,
  ratioFigure,
  single,
  spread,
} from './figure.ts'
import { startProbe } from './probes.ts'
import { type Account, type Client, logIn, type Reply, type Rig, type ServerProcess } from './rig.ts'

/** A login with the right password on an open connection, against the same pamtester started by Node alone. */
export const measureLogin: Measure = async (rig) => {
  const pairs = rig.isQuick ? 7 : 41
  const daemon = await rig.startDaemon()
  const client = rig.client(daemon)
  const own: number[] = []
  const base: number[] = []
  const overHttps = async () => void own.push(await timed(() => logIn(client, rig.accounts.good)))
  const alone = async () => void base.push(await timed(() => runPamtester(rig)))
  // Both paths are warm before the first pair counts.
  for (let pair = -3; pair < pairs; pair += 1) {
    if (pair === 0) for (const each of [own, base]) each.length = 0
    if (pair % 10 === 0) rig.say(`login: pair ${pair + 1} of ${pairs}`)
    const both = [alone, overHttps]
    for (const each of pair % 2 === 0 ? both : both.reverse()) await each()
  }
  client.close()
  await daemon.stop()
  return [
    ratioFigure('login ÷ pamtester alone', own, base, {
      target: '≤ 1.15',
      note: `${pairs} pairs, keep-alive`,
    }),
    { name: 'login', value: spread(own), unit: 'ms' },
    { name: 'login, pamtester alone', value: spread(base), unit: 'ms' },
  ]
}

async function runPamtester({ pamtester, accounts }: Rig): Promise<void> {
  const { userName, password } = accounts.good
  const operations = ['authenticate(PAM_DISALLOW_NULL_AUTHTOK)', 'acct_mgmt']
  const args = ['-I', 'rhost=127.0.0.1', accounts.service, userName, ...operations]
  const child = spawn(pamtester, args, {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    cwd: '/',
  })
  child.stdout.resume()
  child.stderr.resume()
  child.stdin.end(`${password}\n`)
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`pamtester ends with ${code ?? 'a signal'}`)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const kinds = ['wrong', 'unknown', 'locked'] as const
type Kind = (typeof kinds)[number]

// The daemon runs as many PAM children at once as there are cores, and a child counts for at most a second. At this interval no
// refusal waits for another one: only the reason of a refusal can change its duration.
const betweenMs = 700

/** How long a refused login takes: a wrong password, an unknown user, and a locked account with its right password. */
export const measureRefusals: Measure = async (rig) => {
  const each = rig.isQuick ? 6 : 40
  const { good, locked } = rig.accounts
  const bodies: Record<Kind, { username: string; password: string }> = {
    wrong: { username: good.userName, password: `${good.password}x` },
    unknown: { username: `${good.userName}x`, password: good.password },
    locked: { username: locked.userName, password: locked.password },
  }
  const daemon = await rig.startDaemon()
  const free: Client[] = []
  const times: Record<Kind, number[]> = { wrong: [], unknown: [], locked: [] }
  const replies = new Set<string>()

  const tryOnce = async (kind: Kind) => {
    const client = free.pop() ?? rig.client(daemon)
    // The ping does the handshake of a new connection, so that only the refusal is measured.
    await client.send('GET', '/v1/ping')
    const reply = await client.send('POST', '/v1/users/default/login', { body: bodies[kind] })
    if (reply.status !== 401) throw new Error(`${kind}: ${reply.status} ${reply.body.toString()}`)
    times[kind].push(reply.durationMs)
    replies.add(comparable(reply))
    free.push(client)
  }
  const pending: Promise<void>[] = []
  for (let round = 0; round < each; round += 1) {
    if (round % 5 === 0) rig.say(`refusals: ${round} of ${each} each`)
    for (const kind of orderOf(round)) {
      pending.push(tryOnce(kind))
      await Promise.race([sleep(betweenMs), failureOf(pending)])
    }
  }
  await Promise.all(pending)
  for (const client of free) client.close()
  await daemon.stop()

  const medians = kinds.map((kind) => median(times[kind]))
  const difference = Math.max(...medians) - Math.min(...medians)
  const chances = kinds.map((kind, index) => chanceOfSame(times[kind], times[kinds[(index + 1) % 3] ?? kind]))
  const same = replies.size === 1 ? 'one and the same reply' : `${replies.size} DIFFERENT replies`
  return [
    {
      name: 'refusals: largest difference of medians',
      value: single(difference),
      unit: 'ms',
      target: '≤ 2 ms',
      note: `${each} each, ${same}, least p of Mann-Whitney ${Math.min(...chances).toFixed(3)}`,
    },
    ...kinds.map((kind): Figure => ({ name: `refusals: ${kind}`, value: spread(times[kind]), unit: 'ms' })),
  ]
}

/** The orders of the three kinds in turn, so that no kind is always the first. */
function orderOf(round: number): Kind[] {
  const [a, b, c] = kinds
  const orders = [
    [a, b, c],
    [b, c, a],
    [c, a, b],
    [c, b, a],
    [a, c, b],
    [b, a, c],
  ] satisfies Kind[][]
  return orders[round % orders.length] ?? [a, b, c]
}

/** Rejects when one of the promises fails, and never resolves. */
const failureOf = (pending: readonly Promise<void>[]) =>
  new Promise<never>((_resolve, reject) => pending.forEach((each) => void each.catch(reject)))

/** The reply without the values that differ in every reply: what is left must not tell the reason of a refusal. */
function comparable({ status, headers, body }: Reply): string {
  const error = JSON.parse(body.toString()) as Record<string, unknown>
  const form = (name: string) => String(headers[name]).replaceAll(/[0-9a-f]/g, 'x')
  // Only the form of the ids is compared; the time and the rest of the rate limit are left out.
  const own = { 'x-request-id': form('x-request-id'), audituid: form('audituid'), ratelimit: '', date: '' }
  return JSON.stringify([status, { ...headers, ...own }, { ...error, ref: '' }])
}

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
  const pings: (readonly number[])[] = []
  let mostChildren = 0
  // Only the first burst lets the daemon's own memory grow; it counts as well.
  for (let burst = 0; burst < bursts; burst += 1) {
    rig.say(`logins at once, ${name}: burst ${burst + 1} of ${bursts}`)
    const memory = await startProbe('memory', { pid: daemon.pid })
    await logInAtOnce(rig, daemon, account, outcomes)
    const seen = await memory.stop()
    extra.push(seen.peakMiB - seen.beforeMiB)
    mostChildren = Math.max(mostChildren, seen.mostChildren)
    await sleep(1_000)

    const ping = await startProbe('ping', { port: daemon.port, certificate: rig.certificate })
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
