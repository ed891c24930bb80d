// Follows a change of the network until it is confirmed or taken back. On the host its own socket goes through the change; over the network the host
// is looked for at every address under which it may be reached then, each by the key that is known for it, and the change is confirmed at the new one.

import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { canonicalAddress } from '../../base/address.ts'
import { bareAddress } from '../../base/subnet.ts'
import type { Client, Context } from '../../ctl/client.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { moment, oneLine, span } from '../../ctl/layout.ts'
import { errorOf, parseBody, toFailure } from '../../ctl/reply.ts'
import { atAddress, knowByAddress } from '../../ctl/same-host.ts'
import { onInterrupt } from '../../ctl/terminal.ts'
import { createStatusLine } from '../../program/status-line.ts'
import type { NetworkChange } from '../schemas.ts'

export const changesPath = '/v1/edge-mgmt/network/changes'

/** A change that was asked for. */
export interface Asked {
  /** Undefined where the reply was lost with the connection. */
  readonly uid: string | undefined
  /** The newest change before it: where the reply did not name one, another newest one is it. */
  readonly before: string
  /** The new address, in CIDR form; undefined where a DHCP server gives it, or where no address changes. */
  readonly address: string | undefined
  readonly isByDhcp: boolean
  /** Addresses under which the host will be reached, as a dry run says. */
  readonly reachableBy: readonly string[]
  /** Time until it is taken back, as far as it is known before. */
  readonly windowSeconds: number
  /** Who confirms it: this command, the next heartbeat to the platform, or an operator later. */
  readonly confirmation: 'command' | 'platform' | 'later'
}

/** A way to the host. */
interface Way {
  /** As `--host` names it; empty for the socket. */
  readonly name: string
  /** Canonical; undefined where it is a name, or the socket. */
  readonly address: string | undefined
  readonly client: Client
  readonly close: () => void
  /** What the last answer has said; undefined where the last request had no answer. */
  change: NetworkChange | undefined
  failure: Failure | undefined
  /** Why the host does not let it be confirmed by this way, whatever comes. */
  refusal: string | undefined
}

const lookEveryMs = 500
const lookMs = 5_000
const retryMs = 1_000
const turnMs = 200
/** Until a new address is said not to be reached: the look that began before it was there takes so long. */
const patienceMs = 8_000
/** A change is taken back within seconds of its deadline; the host may have to start its backend anew for it. */
const graceSeconds = 30

/**
 * Waits for the end of a change, and confirms it when it is applied.
 * @throws Failure unreachable where the host does not answer until the change must have been taken back; notLoggedIn
 */
export async function followChange(context: Context, asked: Asked): Promise<ExitName | undefined> {
  const { output, target } = context
  const isLocal = target.kind === 'socket'
  const given = asked.address === undefined ? undefined : canonicalAddress(bareAddress(asked.address))
  const ways = waysTo(context, asked)
  const screen = createScreen(context)
  const beganAt = performance.now()
  const ending = new AbortController()
  let change: NetworkChange | undefined
  let refused = ''
  let trialSince: number | undefined
  let confirmedBy: Way | undefined
  const leftSeconds = () =>
    (change?.windowSeconds ?? asked.windowSeconds) - (performance.now() - beganAt) / 1_000
  const uid = () => change?.uid ?? asked.uid ?? 'UID'
  const nextName = isLocal ? '' : (given ?? (asked.isByDhcp ? 'ADDRESS' : target.name))
  const byHand = (at = nextName) => `edgehostctl ${at === '' ? '' : `--host ${at} `}network confirm ${uid()}`
  const deadline = () => (change === undefined ? 'at its deadline' : `at ${moment(change.deadlineTimestamp)}`)

  const endInterrupt = onInterrupt(() => {
    screen.end()
    output.note(
      `The change goes on without this command, and is taken back ${deadline()} unless it is confirmed: ${byHand()}`,
    )
  })
  // Another address of the host would not show that it is reached at the new one.
  const isProof = ({ address }: Way, needsNewWay: boolean) =>
    isLocal || !needsNewWay || given === undefined || address === given
  const end = async (note: string, last: NetworkChange) => {
    screen.end()
    await output.show(last, () => '')
    output.note(note)
  }

  for (const way of ways) void watch(way, asked, ending.signal)
  try {
    if (!isLocal && asked.isByDhcp)
      screen.say(
        `A DHCP server gives the address, so it is not known before. It is on the console of the host and at the server; confirm there: edgehostctl --host ADDRESS network confirm ${uid()}; or as root on the host: edgehostctl network confirm ${uid()}`,
      )
    for (;;) {
      const answering = ways.filter((way) => way.change !== undefined)
      change = furthest(answering) ?? change
      screen.show(answering.length > 0 ? change : undefined, leftSeconds())
      if (change?.state === 'confirmed') {
        const moved = await know(context, { ways, given, confirmedBy })
        await end(`The change is confirmed: ${change.summary}${moved}`, change)
        return undefined
      }
      if (change?.state === 'reverted' || change?.state === 'revertFailed') {
        await end(takenBack(change, refused), change)
        return 'takenBack'
      }
      const inTrial = answering.filter((way) => way.change?.state === 'trial')
      if (change?.state === 'trial' && inTrial.length > 0) {
        if (asked.confirmation === 'later') {
          await end(
            `The change is applied, and is taken back ${deadline()} unless it is confirmed: ${byHand()}`,
            change,
          )
          return undefined
        }
        if (asked.confirmation === 'platform')
          screen.once('The change is applied; the next heartbeat of the host to its platform confirms it')
        else {
          const { needsNewWay } = change
          const proof = inTrial.find((way) => isProof(way, needsNewWay) && way.refusal === undefined)
          trialSince ??= performance.now()
          if (proof !== undefined) {
            confirmedBy = proof
            refused = (await confirmBy(proof, change.uid)) ?? ''
            // Each attempt is a record of the trail.
            if (refused !== '') await sleep(retryMs)
          } else if (refused !== '')
            screen.once(`The host does not let the change be confirmed from here: ${refused}`)
          else if (performance.now() - trialSince > patienceMs)
            screen.once(
              `The host answers at ${inTrial.map(({ name }) => name).join(', ')}, but not at ${given ?? ''} from here, so the change is not confirmed yet. To keep it all the same: ${byHand(inTrial[0]?.name)}`,
            )
        }
      }
      throwNotLoggedIn(ways, byHand())
      if (leftSeconds() < -graceSeconds) throw silent(ways, change)
      await sleep(turnMs)
    }
  } finally {
    ending.abort()
    endInterrupt()
    screen.end()
    for (const { close } of ways) close()
  }
}

/** The ways by which the host may answer: the one of the command, then the addresses that it will have, the new one first. */
function waysTo(context: Context, { reachableBy }: Asked): Way[] {
  const { client, target } = context
  const way = (name: string, address: string | undefined, of: Client, close: () => void): Way => ({
    name,
    address,
    client: of,
    close,
    change: undefined,
    failure: undefined,
    refusal: undefined,
  })
  if (target.kind === 'socket') return [way('', undefined, client, () => undefined)]
  const own = isIP(target.host) === 0 ? undefined : canonicalAddress(target.host)
  const others = new Set(reachableBy.map(canonicalAddress))
  if (own !== undefined) others.delete(own)
  return [
    way(target.name, own, client, () => undefined),
    ...[...others].map((address) => {
      const at = atAddress(context, target, address)
      return way(at.target.name, address, at.client, at.close)
    }),
  ]
}

/** Asks again and again by one way. */
async function watch(way: Way, asked: Asked, signal: AbortSignal): Promise<void> {
  let { uid } = asked
  while (!signal.aborted) {
    try {
      way.change = await look(way.client, uid, asked.before)
      uid ??= way.change?.uid
      way.failure = undefined
    } catch (error) {
      way.change = undefined
      if (error instanceof Failure) way.failure = error
    }
    await sleep(lookEveryMs)
  }
}

async function look(
  client: Client,
  uid: string | undefined,
  before: string,
): Promise<NetworkChange | undefined> {
  const path = uid === undefined ? changesPath : `${changesPath}/${encodeURIComponent(uid)}`
  const reply = await client.ask({ method: 'GET', path, timeoutMs: lookMs })
  if (reply.status !== 200) throw toFailure(reply)
  if (uid !== undefined) return parseBody<NetworkChange>(reply, ['uid', 'state', 'deadlineTimestamp'])
  const [newest] = parseBody<{ items: NetworkChange[] }>(reply, ['items']).items
  return newest?.uid === before ? undefined : newest
}

/** The newest of the answers, since some may have come before others. */
function furthest(ways: readonly Way[]): NetworkChange | undefined {
  const order = ['applying', 'trial', 'confirming', 'reverting', 'confirmed', 'reverted', 'revertFailed']
  return ways
    .flatMap(({ change }) => change ?? [])
    .toSorted((a, b) => order.indexOf(b.state) - order.indexOf(a.state))[0]
}

/**
 * Confirms a change on a new connection.
 * @returns the refusal where it may be confirmed in another way, or later; undefined where it is decided, which the next look says
 */
async function confirmBy(way: Way, uid: string): Promise<string | undefined> {
  const { client } = way
  const path = `${changesPath}/${encodeURIComponent(uid)}/actions/confirm`
  try {
    const reply = await client.ask({ method: 'POST', path })
    if (reply.status === 200) return undefined
    const code = errorOf(reply)?.code
    if (code === 'NetworkChangeDecided') return undefined
    const { message } = toFailure(reply)
    // Not applied yet, too many requests, or a fault of the moment: the next attempt may succeed.
    if (code !== 'NetworkChangeNotApplied' && reply.status !== 429 && reply.status < 500)
      way.refusal = message
    return message
  } catch (error) {
    // The next look says whether it was confirmed.
    if (error instanceof Failure && error.exitName === 'unreachable') return error.message
    throw error
  }
}

/** Knows the host by its new address where the change has moved it. @returns the end of the sentence that says so */
async function know(
  context: Context,
  {
    ways,
    given,
    confirmedBy: at,
  }: { ways: readonly Way[]; given: string | undefined; confirmedBy: Way | undefined },
): Promise<string> {
  const { target } = context
  // Someone else may have confirmed it.
  if (target.kind !== 'host' || at === undefined) return ''
  if (at === ways[0] || at.address === undefined || at.address !== given)
    return ` (at ${at.name}, on a new connection)`
  const isAddress = ways[0]?.address !== undefined
  // An answer of before the change may be the last one of the old address.
  const isLeft = isAddress && (ways[0]?.change === undefined || ways[0].change.state === 'applying')
  const next = await knowByAddress(context, target, at.address, isLeft)
  return `. It was confirmed at ${next.name} on a new connection, where the host has shown the key that is known for ${target.name}${isLeft ? `; from now on: edgehostctl --host ${next.name}` : ''}`
}

function takenBack({ state, reason, message = '', summary }: NetworkChange, refused: string): string {
  const why = {
    asked: 'this was asked for',
    deadline: `it was not confirmed before its deadline${refused === '' ? '' : `: ${refused}`}`,
    failed: 'it failed',
    reboot: 'the host was started again before it was confirmed',
    unknown: 'the host does not say why',
  }[reason ?? 'unknown']
  const differs = state === 'revertFailed' ? ', but the network is not as before' : ''
  return oneLine(
    `The change was taken back${differs}: ${summary}; ${why}${message === '' ? '' : `: ${message}`}`,
  )
}

/** A host that answers nowhere, after the change must have been taken back. */
function silent(ways: readonly Way[], change: NetworkChange | undefined): Failure {
  const other = ways.find(({ failure }) => failure?.exitName === 'untrusted')
  const known =
    change === undefined ? 'Whether the change was begun is not known' : `It was last ${change.state}`
  return new Failure(
    'unreachable',
    `the host does not answer at ${ways.map(({ name }) => name || 'its socket').join(', ')}. ${known}; a change that is not confirmed is taken back by the host itself. See edgehostctl network changes there, as root on its console${other === undefined ? '' : `. At ${other.name} another machine answers: its key is not that of the host`}`,
  )
}

/** @throws Failure where no way answers, and the session has ended */
function throwNotLoggedIn(ways: readonly Way[], command: string): void {
  const refusal = ways.find(({ failure }) => failure?.exitName === 'notLoggedIn')?.failure
  if (refusal === undefined || ways.some(({ change }) => change !== undefined)) return
  throw new Failure(
    'notLoggedIn',
    `${refusal.message}\nThe change is taken back at its deadline unless it is confirmed after the login: ${command}`,
  )
}

/** Shows the progress of a change: on a terminal in one line with the time that is left, elsewhere in a line for each state. */
function createScreen({ output }: Pick<Context, 'output'>) {
  const line = createStatusLine(process.stderr)
  const isTerminal = process.stderr.isTTY
  const said = new Set<string>()
  const say = (text: string) => {
    line.clear()
    output.note(text)
  }
  const once = (text: string) => {
    if (!said.has(text)) say(text)
    said.add(text)
  }
  return {
    say,
    once,
    show(change: NetworkChange | undefined, leftSeconds: number) {
      const left = leftSeconds > 0 ? `${span(leftSeconds)} left` : 'its deadline is over'
      if (change === undefined) {
        if (isTerminal) line.draw(`the host does not answer yet; ${left}`)
        return
      }
      const { state, summary, deadlineTimestamp } = change
      const isOpen = state === 'applying' || state === 'trial'
      const until = isOpen ? `; it is taken back at ${moment(deadlineTimestamp)} unless it is confirmed` : ''
      if (isTerminal) line.draw(`${state}: ${oneLine(summary)}${isOpen ? `; ${left}` : ''}`)
      once(`${state}: ${summary}${until}`)
    },
    end: line.clear,
  }
}
