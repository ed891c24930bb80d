import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLineSplitter } from '../../base/lines.ts'
import { notLoggedIn, keepSession, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { foreignReply, readReply, requireFields, toFailure, type Reply } from '../../ctl/reply.ts'
import { oneLine } from '../../ctl/layout.ts'
import type { Event } from '../events/schemas.ts'
import { onInterrupt } from '../../ctl/terminal.ts'
import { readDetails, createEventScreen } from '../../ctl/cluster.ts'

const streamPath = '/v1/edge-mgmt/events/stream'
const firstPauseMs = 500
const longestPauseMs = 15_000

/**
 * Reads the stream of events for as long as the caller wants them; begins again after the last event when the connection breaks or the
 * daemon stops. The session is kept.
 * @param isKnown whether the host has answered before, so that it is worth to try again from the beginning on
 * @throws Failure where the first connection fails, or the session has ended
 */
export async function* readEvents(
  { client, output, target }: Pick<Context, 'client' | 'output' | 'target'>,
  isKnown = false,
): AsyncGenerator<Event> {
  const endSession = keepSession(client)
  let last: string | undefined
  let hasConnected = isKnown
  let pauseMs = 0
  try {
    for (;;) {
      try {
        const message = await client.open({
          method: 'GET',
          path: streamPath,
          headers: { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) },
        })
        if (message.statusCode !== 200) throw refusal(await readReply(message))
        if (message.headers['content-type']?.startsWith('text/event-stream') !== true)
          throw foreignReply('it is not a stream of events')
        hasConnected = true
        for await (const { id, type, data } of parseStream(message)) {
          if (type === 'end') throwIfOver(data)
          else {
            // Only now: an event that could not be read is asked for again.
            yield eventOf(data)
            last = id ?? last
            pauseMs = 0
          }
        }
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        if (error.exitName === 'notLoggedIn') throw notLoggedIn(target, error)
        if (!hasConnected || error.exitName !== 'unreachable') throw error
        if (pauseMs === 0) output.note(`${error.message.split('\n')[0] ?? ''}; trying again`)
      }
      pauseMs = Math.min(longestPauseMs, pauseMs === 0 ? firstPauseMs : 2 * pauseMs)
      await sleep(pauseMs)
    }
  } finally {
    endSession()
  }
}

/** A daemon that starts, stops or has too much to do answers later. */
function refusal(reply: Reply): Failure {
  const failure = toFailure(reply)
  return [429, 503].includes(reply.status) ? new Failure('unreachable', failure.message) : failure
}

/** The stream ends since the daemon stops, or since the session has ended. */
function throwIfOver(data: string): void {
  const { code, message } = requireFields<{ code: string; message: string }>(parse(data), ['code', 'message'])
  if (code !== 'NotReady')
    throw new Failure(code === 'Unauthenticated' ? 'notLoggedIn' : 'failed', oneLine(message))
}

const eventOf = (data: string): Event =>
  requireFields<Event>(parse(data), ['metadata', 'reason', 'message', 'severity', 'source'])

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw foreignReply('an event is not JSON', error)
  }
}

interface Sent {
  readonly id: string | undefined
  readonly type: string
  readonly data: string
}

/** Parses server-sent events, HTML standard 9.2.6. An event that the end of the connection cuts off is not one. */
async function* parseStream(message: IncomingMessage): AsyncGenerator<Sent> {
  const found: Sent[] = []
  let fields: Record<string, string> = {}
  const splitter = createLineSplitter((text) => {
    const line = text.replace(/\r$/, '')
    if (line === '') {
      const { id, event = 'message', data } = fields
      if (data !== undefined) found.push({ id, type: event, data })
      fields = {}
      return
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${value}` : value
  })
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      splitter.add(chunk)
      yield* found.splice(0)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('unreachable', `the connection broke: ${(error as Error).message}`, { cause: error })
  } finally {
    message.destroy()
  }
}

type HostContext = Pick<Context, 'client' | 'output' | 'target'>

/** `edgehostctl cluster watch`. */
export async function watchCluster(context: HostContext): Promise<undefined> {
  const details = await readDetails(context)
  if (details === undefined)
    throw new Failure(
      'failed',
      'this host has no cluster; what happened to the last one: edgehostctl cluster events',
    )
  await showUntil(context, { isLast: ({ reason }) => reason === 'Deleted' })
  return undefined
}

type EventTest<Answer> = (event: Pick<Event, 'reason' | 'message' | 'metadata'>) => Answer

export interface ShownEvents {
  /** Whether this is the last event; it is asked for the shown ones only. */
  readonly isLast: EventTest<boolean | Promise<boolean>>
  /** The event to begin with; the stored events of the cluster before it are not shown. Absent: the first. */
  readonly isFirst?: EventTest<boolean>
  /** Whether a host that does not answer is asked again from the beginning on; it is known to have answered then. */
  readonly isPatient?: boolean
  /** Message at Ctrl-C; absent: Ctrl-C ends the program as it is. */
  readonly interrupted?: string
}

/** Shows events until one of them is the last. */
export async function showUntil(
  context: HostContext,
  { isLast, isFirst = () => true, isPatient = false, interrupted }: ShownEvents,
): Promise<void> {
  const screen = createEventScreen(context.output, process.stderr)
  const say = (text: string) => {
    screen.end()
    context.output.note(text)
  }
  const endInterrupt = interrupted === undefined ? undefined : onInterrupt(() => say(interrupted))
  let isShown = false
  try {
    for await (const event of readEvents(context, isPatient)) {
      isShown ||= isFirst(event)
      if (!isShown) continue
      await screen.show(event)
      if (await isLast(event)) return
    }
  } finally {
    endInterrupt?.()
    screen.end()
  }
}

// Reasons after which the cluster may have reached the awaited state.
const turns = ['Running', 'Failed', 'Deleting', 'Deleted']

/**
 * Shows events until the cluster runs. Stored events may be older than its state, so the state is asked for.
 * @throws Failure when a step has failed, or the cluster is deleted
 */
export async function waitUntilRunning(context: HostContext): Promise<void> {
  await showUntil(context, {
    async isLast({ reason }) {
      if (!turns.includes(reason)) return false
      const status = (await readDetails(context))?.status
      if (status === undefined || status.clusterState === 'Deleting')
        throw new Failure('failed', 'the cluster was deleted meanwhile')
      if (status.phase === 'Failed')
        throw new Failure(
          'failed',
          `${status.clusterStateReason}; edgehostd tries again, see: edgehostctl cluster watch`,
        )
      return status.phase === 'Running'
    },
  })
}

/** Shows the events since the request for the deletion, until the cluster is gone. */
export async function waitUntilDeleted(context: HostContext): Promise<void> {
  await showUntil(context, {
    isLast: async ({ reason }) => reason === 'Deleted' && (await readDetails(context)) === undefined,
    // A cluster that was taken over while it was deleted has no Deleting.
    isFirst: ({ reason }) => ['Deleting', 'Deleted'].includes(reason),
  })
}
