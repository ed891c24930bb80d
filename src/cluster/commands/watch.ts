import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { readDetails } from './read-details.ts'
import { readEvents } from './read-events.ts'
import { createEventScreen } from './show-event.ts'

type HostContext = Pick<Context, 'client' | 'output' | 'target'>

/** `edgehostctl cluster watch`. */
export async function watchCluster(context: HostContext): Promise<undefined> {
  const details = await readDetails(context)
  if (details === undefined)
    throw new Failure(
      'failed',
      'this host has no cluster; what happened to the last one: edgehostctl cluster events',
    )
  await showUntil(context, ({ reason }) => reason === 'Deleted')
  return undefined
}

/**
 * Shows events until one of them is the last.
 * @param isFirst the event to begin with; the stored events of the cluster before it are not shown
 */
async function showUntil(
  context: HostContext,
  isLast: (event: { readonly reason: string }) => boolean | Promise<boolean>,
  isFirst: (event: { readonly reason: string }) => boolean = () => true,
): Promise<void> {
  const screen = createEventScreen(context.output, process.stderr)
  let isShown = false
  try {
    for await (const event of readEvents(context)) {
      isShown ||= isFirst(event)
      if (isShown) await screen.show(event)
      if (await isLast(event)) return
    }
  } finally {
    screen.end()
  }
}

// Reasons after which the cluster may have come to where a command waits for.
const turns = ['Running', 'Failed', 'Deleting', 'Deleted']

/**
 * Shows events until the cluster runs. Stored events may be older than its state, so the state is asked for.
 * @throws Failure when a step has failed, or the cluster is deleted
 */
export async function waitUntilRunning(context: HostContext): Promise<void> {
  await showUntil(context, async ({ reason }) => {
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
  })
}

/** Shows the events since the request for the deletion, until the cluster is gone. */
export async function waitUntilDeleted(context: HostContext): Promise<void> {
  await showUntil(
    context,
    async ({ reason }) => reason === 'Deleted' && (await readDetails(context)) === undefined,
    // A cluster that was taken over while it was deleted has no Deleting.
    ({ reason }) => ['Deleting', 'Deleted'].includes(reason),
  )
}
