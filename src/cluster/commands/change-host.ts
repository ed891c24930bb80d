import { jsonBody, notLoggedIn, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { onInterrupt } from '../../ctl/terminal.ts'
import {
  errorOf,
  foreignReply,
  parseBody,
  toFailure,
  type Reply,
  checkMs,
  problemsOf,
  renderProblems,
} from '../../ctl/reply.ts'
import { moment } from '../../ctl/layout.ts'
import type { ClusterChangeDryRun, ClusterRevisions } from '../desired/schemas.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import { clusterPath, noCluster } from '../../ctl/cluster.ts'

export type HostContext = Pick<Context, 'client' | 'output' | 'target'>
export type Revision = ClusterRevisions['items'][number]

/** The cluster as it was read, before a change of it. */
export interface Present {
  readonly document: ClusterConfiguration
  /** Names this state: a change is refused where another one came between. */
  readonly etag: string
  /** The newest first; at least one. */
  readonly revisions: readonly Revision[]
}

/** A write of the cluster. */
export interface Order {
  readonly method: 'PUT' | 'POST'
  readonly path: string
  readonly body: object
}

/** Result of a change: the new revision; undefined where nothing differed. */
export type Sent = number | undefined

export const revisionsPath = `${clusterPath}/revisions`

/** @throws Failure, also where there is no cluster */
export async function readPresent({ client, target }: HostContext): Promise<Present> {
  const reply = await client.ask({ method: 'GET', path: clusterPath })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status === 404) throw noCluster()
  if (reply.status !== 200) throw toFailure(reply)
  const { etag } = reply.headers
  if (etag === undefined) throw foreignReply('it has no ETag')
  // After the document: a revision that came between is then one that the ETag does not name, and the write is refused.
  const revisions = await readRevisions({ client })
  return { document: parseBody<ClusterConfiguration>(reply, ['metadata']), etag, revisions }
}

/** @throws Failure, also where there is no cluster */
export async function readRevisions({ client }: Pick<Context, 'client'>): Promise<readonly Revision[]> {
  const { items } = await client.get<ClusterRevisions>(revisionsPath, ['items'])
  if (!Array.isArray(items) || items.length === 0) throw foreignReply('it has no revisions')
  return items
}

/** The revision that a write changes: the one that waits or is held, otherwise the active one. */
export function shownOf({ revisions }: Pick<Present, 'revisions'>): Revision | undefined {
  return waitingOf({ revisions }) ?? revisions.find(({ isActive }) => isActive)
}

/** The accepted revision that is not started; undefined where none waits. */
export function waitingOf({ revisions }: Pick<Present, 'revisions'>): Revision | undefined {
  return revisions.find(({ outcome }) => outcome === 'waiting' || outcome === 'held')
}

/** Checks a write on the host, which changes nothing. @throws Failure; WouldDiscard */
export async function tryChange(
  context: HostContext,
  order: Order,
  etag: string,
): Promise<ClusterChangeDryRun> {
  const reply = await ask(context, order, etag, '?dryRun=true')
  if (reply.status !== 200) throw refusalOf(reply)
  return parseBody<ClusterChangeDryRun>(reply, ['isPossible', 'isChanged', 'isHeld', 'problems', 'plan'])
}

/**
 * Sends a write, on condition that the cluster is as it was read.
 * @throws Failure; for a failed pre-flight its problems are shown
 */
export async function sendChange(
  context: HostContext,
  order: Order,
  { etag, revisions }: Present,
): Promise<Sent> {
  const { output } = context
  const seeRevisions = 'Whether the change was accepted: edgehostctl cluster revisions'
  const endInterrupt = onInterrupt(() => output.note(`Interrupted. ${seeRevisions}`))
  try {
    const reply = await ask(context, order, etag)
    const problems = problemsOf(reply)
    if (problems) await output.show({ problems }, (paper) => renderProblems(problems, paper))
    if (reply.status !== 204) throw refusalOf(reply)
    // The condition of the write: nothing was accepted since the revisions were read.
    return reply.headers.etag === etag ? undefined : (revisions[0]?.revision ?? 0) + 1
  } catch (error) {
    if (!(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    throw new Failure('unreachable', `${error.message}\n${seeRevisions}`, { cause: error })
  } finally {
    endInterrupt()
  }
}

async function ask(
  { client, target }: HostContext,
  { method, path, body: content }: Order,
  etag: string,
  query = '',
): Promise<Reply> {
  const { body, headers } = jsonBody(Buffer.from(JSON.stringify(content)))
  const reply = await client.ask({
    method,
    path: `${clusterPath}${path}${query}`,
    body,
    timeoutMs: checkMs,
    headers: { ...headers, 'if-match': etag },
  })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  return reply
}

/** Going back would restore an older Kubernetes. */
export class WouldDiscard extends Failure {
  /** Time of the copy that would be restored; RFC 3339. */
  readonly copyTimestamp: string

  constructor(copyTimestamp: string) {
    super(
      'failed',
      `Kubernetes would be restored from its copy of ${moment(copyTimestamp)}, and everything that was written to its API since then be lost: objects, Secrets, what applications keep there. With --discard-changes it is done`,
    )
    this.copyTimestamp = copyTimestamp
  }
}

function refusalOf(reply: Reply): Failure {
  const { code, details } = errorOf(reply) ?? {}
  if (code === 'WouldDiscardChanges' && typeof details?.copyTimestamp === 'string')
    return new WouldDiscard(details.copyTimestamp)
  if (reply.status === 412)
    return new Failure(
      'failed',
      'the cluster was changed meanwhile, by another user or by itself, so nothing was sent; look again: edgehostctl cluster diff',
    )
  return toFailure(reply)
}
