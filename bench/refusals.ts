import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, Reply } from './client.ts'
import type { Figure, Measure } from './figure.ts'
import { chanceOfSame, median, single, spread } from './numbers.ts'

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
