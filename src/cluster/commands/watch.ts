import type { Context } from '../../ctl/client.ts'
import { readEventStream } from '../../ctl/event-stream.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { requireFields } from '../../ctl/reply.ts'
import type { Event } from '../events/schemas.ts'
import { onInterrupt } from '../../ctl/terminal.ts'
import { readDetails, createEventScreen } from '../../ctl/cluster.ts'

const streamPath = '/v1/edge-mgmt/events/stream'

/**
 * Reads the stream of events for as long as the caller wants them, as `readEventStream`.
 * @param isKnown whether the host has answered before, so that it is worth to try again from the beginning on
 * @param onState takes the type of each state of the host that has changed
 * @throws Failure where the first connection fails, or the session has ended
 */
export const readEvents = (
  context: Pick<Context, 'client' | 'output' | 'target'>,
  isKnown = false,
  onState?: (type: string) => void,
): AsyncGenerator<Event> =>
  readEventStream(context, {
    path: onState ? `${streamPath}?states=true` : streamPath,
    read: eventOf,
    isKnown,
    ...(onState && { onState }),
  })

const eventOf = (data: unknown): Event =>
  requireFields<Event>(data, ['metadata', 'reason', 'message', 'severity', 'source'])

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
  // The time that is left is a line of a terminal alone.
  const isLive = process.stderr.isTTY && context.output.format === 'table'
  const onState = (type: string) => {
    if (type !== 'cluster') return
    // The stream says that the host does not answer.
    readDetails(context).then(
      (details) => screen.setDeadline(details?.status.deadline),
      () => undefined,
    )
  }
  let isShown = false
  try {
    for await (const event of readEvents(context, isPatient, isLive ? onState : undefined)) {
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
