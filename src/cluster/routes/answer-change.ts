import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { createValidatorCompiler, describeProblem } from '../../api/compilers.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { callerOf } from '../../api/guard.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Change, Changed } from '../change/change.ts'
import type { Write } from '../change/draft.ts'
import type { Reading } from '../reading.ts'
import { ClusterChangeDryRun } from '../change/schemas.ts'
import { ClusterConfiguration } from '../schemas.ts'
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
export const writerOf = (request: FastifyRequest): Pick<Write, 'by' | 'ifMatch' | 'onTurn'> => ({
  by: callerOf(request).userName,
  ifMatch: request.headers['if-match'],
  onTurn: request.readBefore,
})

/** The write, and its dry run. */
export function verbsOf(change: Change, given: Write): Verbs {
  const write: Write = {
    ...given,
    async edit(shown, revision) {
      const wanted = await given.edit(shown, revision)
      refuseEntered(wanted, shown)
      return wanted
    },
  }
  return {
    perform: (signal) => change.write(write, signal),
    tryOut: (signal) => change.tryWrite(write, signal),
  }
}

/**
 * For the bodies of writes. Fields that are refused are refused by `verbsOf`, which knows what is stored: what was accepted before a field was
 * refused comes back with each write of the whole.
 */
export const lenientBodies = createValidatorCompiler({ isEntered: false })

const strict = createValidatorCompiler()({
  schema: ClusterConfiguration,
  method: '',
  url: '',
  httpPart: 'body',
}) as ((body: unknown) => boolean) & { readonly errors?: readonly Problem[] | null }
type Problem = Parameters<typeof describeProblem>[0]

/** @throws AppError BadRequest that names a refused field whose value is not what is stored */
function refuseEntered(wanted: unknown, stored: unknown): void {
  const rest: unknown = structuredClone(wanted)
  for (;;) {
    const [problem] = strict(rest) ? [] : (strict.errors ?? [])
    // The form was checked before.
    if (problem?.keyword !== 'x-refused') return
    const path = problem.instancePath.split('/').slice(1)
    const name = path.at(-1) ?? ''
    const parent = at(rest, path.slice(0, -1)) as Record<string, unknown>
    if (JSON.stringify(parent[name]) !== JSON.stringify(at(stored, path))) {
      const { field, message } = describeProblem(problem, 'body')
      throw new AppError(generalErrors.BadRequest, message, { details: { field } })
    }
    Reflect.deleteProperty(parent, name)
  }
}

const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((found, name) => (found as Record<string, unknown> | undefined)?.[name], value)

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
