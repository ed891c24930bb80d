import { KubernetesError } from './client.ts'
import { groupKindOf, groupOf, type Typed } from './paths.ts'
import { setTimeout as sleep } from 'node:timers/promises'

// The object itself does not fit its schema; the API server has no status of its own for that.
const misfit = /failed to create typed|failed to (prune|convert)/
const missingAccount = /serviceaccount "[^"]*" not found/
// Of objects of a kind whose definition is being deleted; there is no cause of its own for that.
const endingKind = 'create not allowed while custom resource definition is terminating'

/**
 * Whether the API server may accept the same change a little later: it restarts, a webhook has no endpoints yet, another client has
 * changed the object meanwhile, a namespace is being deleted or does not exist yet, its service account is not made yet, the
 * definition of its kind is being deleted.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof KubernetesError)) return false
  const { status, reason, message, causes } = error
  switch (status) {
    case 0:
      return reason === 'Unreachable' || reason === 'Timeout'
    case 403:
      return (
        causes.includes('NamespaceTerminating') ||
        missingAccount.test(message) ||
        message.includes(endingKind)
      )
    case 500:
      return !misfit.test(message)
    default:
      return [404, 409, 429, 502, 503, 504].includes(status)
  }
}

/** Whether objects of other kinds may be of the kind that this one defines. */
export const isDefinition = (object: Typed): boolean =>
  groupKindOf(object) === 'apiextensions.k8s.io/CustomResourceDefinition'

// Kinds that the others need or are checked by when they are made. The order among these does not matter.
const needed = new Set([
  ...['/ServiceAccount', '/ConfigMap', '/Secret', '/ResourceQuota', '/LimitRange', '/PersistentVolume'],
  ...['scheduling.k8s.io/PriorityClass', 'storage.k8s.io/StorageClass', 'node.k8s.io/RuntimeClass'],
  ...['networking.k8s.io/IngressClass', '/PersistentVolumeClaim', '/Service'],
  ...['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding'].map(
    (kind) => `rbac.authorization.k8s.io/${kind}`,
  ),
])
/** Whether an object makes others depend on a workload, which may not run yet. */
export const isCheck = (object: Typed): boolean =>
  groupOf(object.apiVersion) === 'admissionregistration.k8s.io' &&
  object.kind.endsWith('WebhookConfiguration')

/** Order in which the objects of a set are applied, lowest rank first; they are deleted in the opposite order. */
export function rankOf(object: Typed): number {
  const kind = groupKindOf(object)
  if (isDefinition(object)) return 0
  if (kind === '/Namespace') return 1
  if (needed.has(kind)) return 2
  return isCheck(object) ? 4 : 3
}

/** The message is one line for operators. */
export class ApplyFailed extends Error {
  override readonly name = 'ApplyFailed'
}

interface Queue<Item> {
  readonly items: readonly Item[]
  /** Called before the items are gone through, each time with those that are left. */
  readonly before?: (items: readonly Item[]) => Promise<void>
  readonly work: (item: Item) => Promise<void>
  /** For messages. */
  readonly nameOf: (item: Item) => string
  /** Reports the wait, a line for operators. */
  readonly onLine: (line: string) => void
  readonly signal: AbortSignal
  /** Retry time since the last item that was done. */
  readonly patienceMs: number
  readonly firstPauseMs: number
}

const longestPauseMs = 5_000
// A shorter wait is not worth a line.
const quietMs = 2_000

/**
 * Does the work for each item. Items that the API server refuses for the moment are retried behind the others.
 * @throws ApplyFailed which item cannot be done, and why; any error after the signal
 */
export async function workOff<Item>(queue: Queue<Item>): Promise<void> {
  const { onLine, signal, patienceMs, firstPauseMs } = queue
  let pending = queue.items
  let pauseMs = firstPauseMs
  let movedAt = performance.now()
  let reported = ''
  for (;;) {
    const { late, reason } = await workOnce(queue, pending)
    if (late.length === 0) return
    if (late.length < pending.length) {
      movedAt = performance.now()
      pauseMs = firstPauseMs
    }
    const waitedMs = performance.now() - movedAt
    if (waitedMs >= patienceMs)
      throw new ApplyFailed(`${reason}; it was tried again for ${Math.round(waitedMs / 1_000)} s`)
    if (waitedMs >= quietMs && reported !== reason) onLine(`waits: ${(reported = reason)}`)
    pending = late
    await sleep(pauseMs, undefined, { signal })
    pauseMs = Math.min(pauseMs * 2, longestPauseMs)
  }
}

/** @returns the items that the API server may accept later, and why it did not accept the first of them */
async function workOnce<Item>(
  { before, work, nameOf, signal }: Queue<Item>,
  items: readonly Item[],
): Promise<{ readonly late: readonly Item[]; readonly reason: string }> {
  const late: Item[] = []
  let reason = ''
  try {
    await before?.(items)
  } catch (error) {
    signal.throwIfAborted()
    reason = (error as Error).message
    if (!isPassing(error)) throw new ApplyFailed(reason, { cause: error })
    return { late: items, reason }
  }
  for (const [index, item] of items.entries()) {
    try {
      await work(item)
    } catch (error) {
      signal.throwIfAborted()
      const line = `${nameOf(item)}: ${(error as Error).message}`
      if (!isPassing(error)) throw new ApplyFailed(line, { cause: error })
      reason ||= line
      // Without a reply to one, there is none to the others.
      const isSilent = error instanceof KubernetesError && error.status === 0
      late.push(...(isSilent ? items.slice(index) : [item]))
      if (isSilent) break
    }
  }
  return { late, reason }
}
