import { formatTime } from '../base/time.ts'
import { isDatabaseError } from '../store/unwritable.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { NotReplaceable } from '../system/files.ts'
import { isPassing, type Cause } from './cause.ts'
import { type Answer, type PlatformClient, waitAfter } from './client.ts'
import type { EventQueue, QueuedEvent } from './event-queue.ts'
import { toEdgeHostFacts, type ReportedFacts } from './facts.ts'
import type { LinkStore } from './link-store.ts'
import type { Handshake, Session } from './session.ts'
import { parseAnnouncement, type Announcement } from './desired/desired-store.ts'
import type { Reports } from './desired/reports.ts'

/** State of the link to the platform. Times are milliseconds since 1970. */
export interface LinkState {
  readonly isConnected: boolean
  /** Time since which it is connected, or not. */
  readonly since: number
  /** Time of the last reply to a heartbeat. */
  readonly lastContactAt: number | undefined
  /** Time of the next attempt, while it is not connected. */
  readonly nextAttemptAt: number | undefined
  /** Why it is not connected; undefined before the first attempt has ended. */
  readonly cause: Cause | undefined
}

/** Health of the host, reported each minute. */
export interface HostHealth {
  readonly state: 'healthy' | 'unhealthy'
  readonly message: string
}

export interface LinkOptions {
  readonly client: Pick<PlatformClient, 'call' | 'reconnect'>
  readonly handshake: Handshake
  readonly store: LinkStore
  readonly queue: EventQueue
  readonly hostId: string
  readonly agentVersion: string
  /** Name to register with. */
  readonly name: () => string
  readonly facts: () => ReportedFacts
  readonly health: () => HostHealth
  /** The registration token that an operator has put down for this host, if there is one. */
  readonly readToken: () => Promise<string | undefined>
  readonly removeToken: () => Promise<void>
  /** Called for each reply to a heartbeat, with the desired cluster of this host; undefined for nothing. */
  readonly onDesired: (announced: Announcement | undefined) => void
  /** Called for each reply to a heartbeat. @param connectedSince its connection was made after this time, monotonic milliseconds */
  readonly onBeat: (connectedSince: number) => void
  readonly reports: Reports
  /** Called after each change of the state. */
  readonly onChange: () => void
  /** Returns after so many milliseconds, or early when the signal is aborted; does not reject. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** 0 up to 1. */
  readonly random: () => number
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** This host at the platform: registration, logins, heartbeats, facts, events. */
export interface Link {
  /** Keeps this host connected until the daemon stops. */
  run(): Promise<void>
  state(): LinkState
  /** As the platform said it at the last login. */
  projectName(): string | undefined
  /** There is an event or a report to send. */
  wake(): void
  /** Sends a heartbeat at once, on a new connection: the network of this host has changed. */
  reconnect(): void
  /** The token of the login; undefined while there is none. */
  token(): string | undefined
}

/** Why a turn did not succeed. */
type Refusal = Pick<Answer, 'status' | 'retryAfter'> & { readonly cause: Cause }

const beatMs = 60_000
// A token is valid for 15 minutes; a login takes its time.
const sessionMs = 14 * 60_000
const removedMs = 3_600_000
const refusedMs = 300_000
// The platform counts three silent minutes too.
const silenceMs = 180_000
const logAgainMs = 600_000
const eventDelayMs = 2_000
const eventsAtOnce = 100

const tokenMissing: Cause = {
  kind: 'tokenRefused',
  message: 'this host is not registered and has no registration token; run: edgehostctl platform connect',
}

export function createLink(options: LinkOptions): Link {
  const { client, handshake, store, queue, hostId, reports, random, stopping, clock, log } = options
  let state: LinkState = {
    isConnected: false,
    since: clock.now(),
    lastContactAt: undefined,
    nextAttemptAt: undefined,
    cause: undefined,
  }
  let session: (Session & { readonly endsAt: number }) | undefined
  let knownChecksum: string | undefined
  let projectName: string | undefined
  /** Checksum of refused facts; they are not sent again before the next login. */
  let refusedChecksum: string | undefined
  let beatDueAt = -Infinity
  let eventsFrom = -Infinity
  /** Times in a row that the platform had no time for events. */
  let deferrals = 0
  /** Refused events since the last line about them. */
  let refusedEvents = 0
  let refusalLoggedAt = -Infinity
  let failures = 0
  /** Time of the last reply to a heartbeat; both sides count the silence from it. */
  let contact = { at: clock.monotonic(), since: clock.now() }
  /** The last contact before the connection was lost. */
  let lost = contact
  let logged: { readonly kind: Cause['kind']; readonly at: number } | undefined
  let wasConnected = false
  /** A token of which the file could not be removed. */
  let usedToken: string | undefined
  let rest = new AbortController()
  /** All connections were made after it, monotonic milliseconds. */
  let connectedSince = clock.monotonic()
  /** How often the connections were closed to connect anew. */
  let epoch = 0

  /** A registration is due with a new token, without a record, and where this host has another id by now. */
  async function register(): Promise<Refusal | undefined> {
    const token = await options.readToken()
    const present = store.current()
    const hasToken = token !== undefined && token !== usedToken
    if (!hasToken && present?.hostId === hostId) return undefined
    const answer = await handshake.register(token ?? '', options.name(), options.facts())
    if (answer.cause)
      return refusalOf(
        !hasToken && answer.cause.kind === 'tokenRefused' ? { ...answer, cause: tokenMissing } : answer,
      )
    session = undefined
    usedToken = token
    if (hasToken) await options.removeToken()
    return undefined
  }

  async function logIn(): Promise<Refusal | undefined> {
    const uid = store.current()?.edgeHostUid ?? ''
    const beganAt = clock.monotonic()
    let answer = await handshake.logIn(uid)
    if (answer.cause?.kind === 'unknownHost') {
      // A platform that this host was connected to before knows its key, under another uid.
      const again = await handshake.register('', options.name(), options.facts())
      if (!again.cause) answer = await handshake.logIn(store.current()?.edgeHostUid ?? '')
    }
    if (answer.cause?.kind === 'removed') await store.markRemoved()
    if (answer.session) {
      session = { ...answer.session, endsAt: beganAt + sessionMs }
      ;({ knownChecksum, projectName } = answer.session)
      refusedChecksum = undefined
      reports.forget()
    }
    return refusalOf(answer)
  }

  const send = (call: { method: 'POST' | 'PUT' | 'PATCH'; path: string; body: unknown }) =>
    client.call({ ...call, ...(session ? { token: session.token } : {}) })
  const ownPath = (rest = '') => `/v1/edgehosts/${store.current()?.edgeHostUid ?? ''}${rest}`

  async function beat(): Promise<Refusal | undefined> {
    if (clock.monotonic() < beatDueAt) return undefined
    const body = { ...options.health(), agentVersion: options.agentVersion }
    const since = connectedSince
    const answer = await send({ method: 'PATCH', path: ownPath('/health'), body })
    if (answer.cause) return refusalOf(answer)
    // The first one comes at once, and so gives each host a second of its own.
    const next = beatDueAt + beatMs
    const now = clock.monotonic()
    beatDueAt = next > now ? next : now + (beatDueAt === -Infinity ? beatMs * random() : beatMs)
    contact = { at: now, since: clock.now() }
    state = { ...state, lastContactAt: contact.since }
    options.onBeat(since)
    options.onDesired(parseAnnouncement(answer.wanted))
    reports.beat()
    return undefined
  }

  async function report(): Promise<Refusal | undefined> {
    const facts = options.facts()
    const { hostChecksum } = facts
    if (hostChecksum === knownChecksum || hostChecksum === refusedChecksum) return undefined
    const answer = await send({ method: 'PUT', path: ownPath(), body: toEdgeHostFacts(facts) })
    if (answer.status === 400 || answer.status === 413) {
      refusedChecksum = hostChecksum
      log.error({ cause: answer.cause?.message }, 'the platform refused the facts of this host')
      return undefined
    }
    if (!answer.cause) knownChecksum = hostChecksum
    return refusalOf(answer)
  }

  async function sendEvents(): Promise<Refusal | undefined> {
    while (mayGoOn() && clock.monotonic() >= eventsFrom) {
      const { waiting, dropped } = queue.counts()
      if (waiting + dropped === 0) return undefined
      const events = queue.next(eventsAtOnce)
      // The count was too high.
      if (events.length === 0) return undefined
      const refused = await deliver(events)
      if (refused?.cause.kind !== 'busy') {
        if (refused) return refused
        deferrals = 0
        continue
      }
      // Only the events wait: the platform answers heartbeats.
      deferrals++
      eventsFrom = clock.monotonic() + waitAfter(deferrals, random(), refused.retryAfter)
    }
    return undefined
  }

  /** Events do not hold up a heartbeat, however many there are and however slow the platform is. */
  const mayGoOn = () => !stopping.aborted && clock.monotonic() < beatDueAt

  const sendReports = async (): Promise<Refusal | undefined> => {
    const failure = await reports.send(send, mayGoOn)
    return failure && refusalOf(failure)
  }

  /** Sends events, one by one where the platform takes not all of them, so that one that it refuses holds up no other. */
  async function deliver(events: readonly QueuedEvent[]): Promise<Refusal | undefined> {
    const body = events.map(({ entity }) => entity)
    const answer = await send({ method: 'POST', path: '/v1/events/components/bulk', body })
    const isRefused = answer.status === 400 || answer.status === 413
    if (isRefused && events.length > 1) {
      for (const event of events) {
        if (!mayGoOn()) return undefined
        const refused = await deliver([event])
        if (refused) return refused
      }
      return undefined
    }
    if (isRefused) tellRefused(body[0]?.reason, answer.cause)
    else if (answer.cause) return refusalOf(answer)
    queue.remove(events)
    return undefined
  }

  /** One line in ten minutes: a platform may refuse each of ten thousand. */
  function tellRefused(reason: string | undefined, cause: Cause | undefined): void {
    refusedEvents++
    const now = clock.monotonic()
    if (now - refusalLoggedAt < logAgainMs) return
    log.error(
      { reason, cause: cause?.message, events: refusedEvents },
      'the platform refused events; they are dropped',
    )
    refusalLoggedAt = now
    refusedEvents = 0
  }

  const inOrder = async (
    ...steps: readonly (() => Promise<Refusal | undefined>)[]
  ): Promise<Refusal | undefined> => {
    for (const step of steps) {
      const refused = await step()
      if (refused) return refused
    }
    return undefined
  }

  async function turn(): Promise<Refusal | undefined> {
    const unregistered = await register()
    if (unregistered) return unregistered
    for (const isLast of [false, true]) {
      if (!session || clock.monotonic() >= session.endsAt) {
        const refused = await logIn()
        if (refused) return refused
      }
      const refused = await inOrder(beat, report, sendEvents, sendReports)
      // The platform does not know the token any more: another login came after it, or this host was removed.
      if (refused?.status !== 401 || isLast) return refused
      session = undefined
    }
    return undefined
  }

  function succeed(): number {
    const before = state
    if (!before.isConnected) {
      state = {
        isConnected: true,
        since: clock.now(),
        lastContactAt: before.lastContactAt,
        nextAttemptAt: undefined,
        cause: undefined,
      }
      if (logged || !wasConnected) log.info('connected to the platform')
      const silentMs = clock.monotonic() - lost.at
      if (wasConnected && silentMs >= silenceMs)
        queue.add({
          severity: 'Warning',
          reason: 'PlatformUnreachable',
          component: 'platform',
          message: `this host did not reach the platform for ${Math.round(silentMs / 60_000)} minutes, from ${formatTime(lost.since)} by its clock: ${before.cause?.message ?? ''}`,
        })
      logged = undefined
      wasConnected = true
      options.onChange()
    }
    failures = 0
    const now = clock.monotonic()
    const { waiting, dropped } = queue.counts()
    const ofEvents = waiting + dropped > 0 ? eventsFrom - now : Infinity
    return Math.max(0, Math.min(beatDueAt - now, ofEvents, reports.dueIn()))
  }

  function fail({ cause, retryAfter }: Refusal): number {
    if (state.isConnected) lost = contact
    failures++
    beatDueAt = -Infinity
    const ms =
      cause.kind === 'removed'
        ? removedMs
        : waitAfter(failures, random(), retryAfter, isPassing(cause) ? undefined : refusedMs)
    const isNew = state.isConnected || state.cause?.message !== cause.message
    state = {
      isConnected: false,
      lastContactAt: state.lastContactAt,
      cause,
      since: state.isConnected ? clock.now() : state.since,
      nextAttemptAt: clock.now() + ms,
    }
    tell(cause)
    if (isNew) options.onChange()
    return ms
  }

  /** One line in the journal for what an operator should see: not for a platform that restarts. */
  function tell(cause: Cause): void {
    const now = clock.monotonic()
    if (isPassing(cause) && now - lost.at < silenceMs) return
    if (logged && (logged.kind === cause.kind || now - logged.at < logAgainMs)) return
    logged = { kind: cause.kind, at: now }
    log.warn({ cause: cause.kind }, `not connected to the platform: ${cause.message}`)
  }

  /** Nothing was lost: an unwritten file is as before, and the next attempt may succeed. */
  function failedHere(error: unknown): Refusal {
    const reason = error instanceof Error ? error.message : String(error)
    const isOfDisk =
      isDatabaseError(error) ||
      error instanceof NotReplaceable ||
      (error as NodeJS.ErrnoException).syscall !== undefined
    if (isOfDisk) {
      const message = `this host could not store its registration, its login or its events (${reason}); check its disk`
      return { cause: { kind: 'storage', message } }
    }
    log.error({ err: error }, 'the link to the platform has failed')
    return { cause: { kind: 'defect', message: `${reason}; the journal has more: journalctl -u edgehostd` } }
  }

  return {
    async run() {
      while (!stopping.aborted) {
        const present = epoch
        const refused = await turn().catch(failedHere)
        // A call that was cut off by ourselves says nothing of the platform.
        if (epoch !== present) continue
        const ms = refused ? fail(refused) : succeed()
        rest = new AbortController()
        if (ms > 0) await options.pause(ms, AbortSignal.any([stopping, rest.signal]))
        // Events that come together are sent together.
        if (rest.signal.aborted && epoch === present) await options.pause(eventDelayMs, stopping)
      }
    },
    state: () => state,
    projectName: () => projectName,
    wake() {
      // Without a connection the next attempt takes them with it.
      if (state.isConnected && clock.monotonic() >= eventsFrom) rest.abort()
    },
    reconnect() {
      connectedSince = clock.monotonic()
      epoch += 1
      beatDueAt = -Infinity
      failures = 0
      client.reconnect()
      rest.abort()
    },
    token: () => (session && clock.monotonic() < session.endsAt ? session.token : undefined),
  }
}

const refusalOf = ({ cause, status, retryAfter }: Answer): Refusal | undefined =>
  cause && {
    cause,
    ...(status === undefined ? {} : { status }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
