import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { callerOf } from '../../api/guard.ts'
import type { Change, Changed } from '../change/change.ts'
import type { Write } from '../change/draft.ts'
import type { Reading } from '../reading.ts'
import { ClusterChangeDryRun } from '../change/schemas.ts'
import { DryRunQuery } from './dry-run.ts'
import { waitFor } from './wait-for.ts'

/** Settings of the route of every write. */
export const changeConfigOf = (reading: Pick<Reading, 'compared'>) =>
  ({
    hasEtag: true,
    access: 'admin',
    airgapOnly: true,
    audit: { action: 'update', kind: 'cluster', changes: () => reading.compared() },
  }) as const

/** Parts of the schema of every write. */
export const changeSchema = {
  tags: ['cluster'],
  headers: Type.Object({
    'if-match': Type.Optional(
      Type.String({
        description:
          'The ETag of GET /v1/edge-mgmt/cluster, or *: the change is refused if another one came between.',
      }),
    ),
  }),
  querystring: DryRunQuery,
  response: {
    200: ClusterChangeDryRun,
    204: NoContent,
    ...errorReplies(400, 401, 403, 404, 409, 412, 503, 507),
  },
}

/** The path of the cluster of a name. */
export const named = {
  params: Type.Object({
    clusterName: Type.String({ description: 'Name of the cluster of this host; another one is not found.' }),
  }),
}

/** Who writes, and on what condition. */
export const writerOf = (request: FastifyRequest): Pick<Write, 'by' | 'ifMatch'> => ({
  by: callerOf(request).userName,
  ifMatch: request.headers['if-match'],
})

/** The write, and its dry run. */
export const verbsOf = (change: Change, write: Write): Verbs => ({
  perform: (signal) => change.write(write, signal),
  tryOut: (signal) => change.tryWrite(write, signal),
})

interface Verbs {
  readonly perform: (signal: AbortSignal) => Promise<Changed>
  readonly tryOut: (signal: AbortSignal) => Promise<ClusterChangeDryRun>
}

/** Answers a write, or its dry run, and says in the audit trail what it has changed. */
export async function answerChange(
  request: FastifyRequest,
  reply: FastifyReply,
  { perform, tryOut }: Verbs,
): Promise<ClusterChangeDryRun | null> {
  const signal = waitFor(request, reply)
  if ((request.query as { dryRun?: boolean }).dryRun === true) {
    request.auditNote = 'dry run, nothing is changed'
    return tryOut(signal)
  }
  const { cluster, revision, etag } = await perform(signal)
  request.auditResource = cluster
  if (revision !== undefined) request.auditNote = `revision ${revision}`
  void reply.code(204).header('etag', etag)
  return null
}
