import { Type } from 'typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { waitingEnd } from '../../api/request-end.ts'
import { createValidatorCompiler, describeProblem, createDocumentCheck } from '../../api/compilers.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { callerOf } from '../../api/guard.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Change, Changed } from '../desired/change.ts'
import type { Write } from '../desired/draft.ts'
import type { Reading } from './reading.ts'
import {
  ClusterChangeDryRun,
  ClusterProfileConfiguration,
  ClusterRollback,
  EdgeClusterSettings,
  ClusterPatch,
  HttpPatch,
} from '../desired/schemas.ts'
import { ClusterConfiguration } from '../schemas.ts'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withSettings, type withDefinition } from '../desired/edits.ts'
import { acceptJson } from '../../api/json-body.ts'
import { misspeltIn } from '../../api/spelling.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { applyJsonPatch, applyConfigurationPart, applyMergePatch } from '../desired/patches.ts'

/** The query of every write that can be tried. Another name is refused: with `dryrun` the write would be done. */
export const DryRunQuery = Type.Object(
  {
    dryRun: Type.Optional(
      Type.Boolean({ default: false, description: 'Only check and plan; nothing is changed.' }),
    ),
  },
  { additionalProperties: false },
)

/** Settings of the route of every write. */
const changeConfigOf = (reading: Pick<Reading, 'compared'>) =>
  ({
    hasEtag: true,
    access: 'admin',
    airgapOnly: true,
    audit: { action: 'update', kind: 'cluster', changes: () => reading.compared() },
  }) as const

/** Parts of the schema of every write. */
const changeSchema = {
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
const named = {
  params: Type.Object({
    clusterName: Type.String({ description: 'Name of the cluster of this host; another one is not found.' }),
  }),
}

/** Author and condition of a write. */
const writerOf = (request: FastifyRequest): Pick<Write, 'by' | 'ifMatch' | 'onTurn'> => ({
  by: callerOf(request).userName,
  ifMatch: request.headers['if-match'],
  onTurn: request.readBefore,
})

/** The write, and its dry run. */
function verbsOf(change: Change, given: Write): Verbs {
  const write: Write = {
    ...given,
    async edit(shown, revision) {
      const desired = await given.edit(shown, revision)
      refuseEntered(desired, shown)
      return desired
    },
  }
  return {
    perform: (signal) => change.write(write, signal),
    tryOut: (signal) => change.tryWrite(write, signal),
  }
}

/**
 * For the bodies of writes. Fields that are refused are refused by `verbsOf`, which knows the stored values: a value accepted before its
 * field was refused comes back with each write of the whole.
 */
const lenientBodies = createValidatorCompiler({ isEntered: false })

const strict = createValidatorCompiler()({
  schema: ClusterConfiguration,
  method: '',
  url: '',
  httpPart: 'body',
}) as ((body: unknown) => boolean) & { readonly errors?: readonly Problem[] | null }
type Problem = Parameters<typeof describeProblem>[0]

/** @throws AppError BadRequest that names a refused field whose value is not the stored one */
function refuseEntered(desired: unknown, stored: unknown): void {
  const rest: unknown = structuredClone(desired)
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

/** Answers a write, or its dry run, and records its changes in the audit trail. */
async function answerChange(
  request: FastifyRequest,
  reply: FastifyReply,
  { perform, tryOut }: Verbs,
): Promise<ClusterChangeDryRun | null> {
  const signal = waitingEnd(request, reply)
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

interface ChangeRoutesOptions {
  readonly change: Change
  readonly reading: Pick<Reading, 'compared'>
  readonly withDefinition: ReturnType<typeof withDefinition>
}

/** Writes of the whole configuration, or of a part of it, and the way back. */
export const changeRoutes: FastifyPluginAsyncTypebox<ChangeRoutesOptions> = async (
  app,
  { change, reading, withDefinition: toDefinition },
) => {
  app.setValidatorCompiler(lenientBodies)
  const path = '/v1/edge-mgmt/cluster'
  const changeConfig = changeConfigOf(reading)
  const whole =
    'All of it, as GET gives it: omitted fields are unset. Masked values stay. Everything is checked before anything is changed; then the host makes the change by itself, and takes it back if the cluster does not run with it.'

  app.put(
    path,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceCluster',
        summary: 'Change the cluster: replace its configuration',
        description: whole,
        body: ClusterConfiguration,
      },
    },
    (request, reply) =>
      answerChange(request, reply, verbsOf(change, { ...writerOf(request), edit: async () => request.body })),
  )

  app.put(
    `${path}/:clusterName`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        ...named,
        operationId: 'replaceNamedCluster',
        summary: 'Change the cluster of this name: replace its configuration',
        description: whole,
        body: ClusterConfiguration,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, {
          ...writerOf(request),
          name: request.params.clusterName,
          edit: async () => request.body,
        }),
      ),
  )

  app.put(
    `${path}/profiles`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceClusterProfiles',
        summary: 'Change the definition of the cluster',
        description:
          'Values that were given before stay, also where a profile has a new uid and the old name; values of removed variables are left out. A new required variable without a value holds the change, and the cluster runs on.',
        body: ClusterProfileConfiguration,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, { ...writerOf(request), edit: toDefinition(request.body) }),
      ),
  )

  app.put(
    `${path}/settings`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'replaceClusterSettings',
        summary: 'Change the NTP servers and SSH keys of the cluster',
        description: 'Both lists are replaced; one that is left out is empty then.',
        body: EdgeClusterSettings,
      },
    },
    (request, reply) =>
      answerChange(
        request,
        reply,
        verbsOf(change, { ...writerOf(request), edit: withSettings(request.body) }),
      ),
  )

  app.post(
    `${path}/rollback`,
    {
      config: { ...changeConfig, audit: { ...changeConfig.audit, action: 'action' } },
      schema: {
        ...changeSchema,
        operationId: 'rollBackCluster',
        summary: 'Apply an earlier revision of the cluster again',
        description:
          'Makes a new revision with its configuration and its definition. An older Kubernetes is restored from its copy, as long as that is kept, and only with discardChanges.',
        body: ClusterRollback,
      },
      // Everything in it may be left out, so it may be too.
      async preValidation(request) {
        const body: unknown = request.body
        request.body = body ?? {}
      },
    },
    (request, reply) => {
      const { revision, discardChanges = false } = request.body
      const rollback = { ...writerOf(request), revision, discardChanges }
      return answerChange(request, reply, {
        perform: (signal) => change.rollBack(rollback, signal),
        tryOut: (signal) => change.tryRollBack(rollback, signal),
      })
    },
  )
}

interface PatchRoutesOptions {
  readonly change: Change
  readonly reading: Pick<Reading, 'compared'>
}

const mergePatch = 'application/merge-patch+json'
const jsonPatch = 'application/json-patch+json'

/** Bodies by their media type. */
const bodies = (json: typeof ClusterConfiguration | typeof ClusterPatch) => ({
  content: {
    'application/json': { schema: json },
    [mergePatch]: {
      schema: Type.Object(
        {},
        { description: 'RFC 7396: members of a ClusterConfiguration; null takes one away.' },
      ),
    },
    [jsonPatch]: { schema: Type.Array(HttpPatch, { description: 'RFC 6902.' }) },
  },
})

/** Changes of a part of the configuration. */
export const patchRoutes: FastifyPluginAsyncTypebox<PatchRoutesOptions> = async (
  app,
  { change, reading },
) => {
  acceptJson(app, [mergePatch, jsonPatch])
  // A part is judged by its result, as the other patches: null and omitted fields are no faults of it.
  app.setValidatorCompiler((route) =>
    route.httpPart === 'body' && route.schema === ClusterConfiguration ? () => true : lenientBodies(route),
  )
  const path = '/v1/edge-mgmt/cluster'
  const changeConfig = changeConfigOf(reading)
  const media = `By Content-Type: ${mergePatch} (RFC 7396) or ${jsonPatch} (RFC 6902), both of what GET gives.`
  const patched = (request: FastifyRequest, json: Patch): Write => ({
    ...writerOf(request),
    async edit(shown) {
      requireSpelling(request.body)
      return validated(patchOf(request, json)(shown, request.body))
    },
  })

  app.patch(
    path,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        operationId: 'patchCluster',
        summary: 'Change a part of the configuration of the cluster',
        description: `${media} application/json is a part of a ClusterConfiguration, which is merged: entries of profileVariables are merged by their name and profileUid, pools by their name, hosts by their hostUid, and those that are not named stay; other lists are replaced, and null takes a member away. {"spec":{"profileVariables":[{"name":"replicas","value":"2"}]}} sets that one value and keeps all others. By ${mergePatch} the list would have this one entry.`,
        body: bodies(ClusterConfiguration),
      },
    },
    (request, reply) => answerChange(request, reply, verbsOf(change, patched(request, applyPart))),
  )

  app.patch(
    `${path}/:clusterName`,
    {
      config: changeConfig,
      schema: {
        ...changeSchema,
        ...named,
        operationId: 'patchNamedCluster',
        summary: 'Change a part of the configuration of the cluster of this name',
        description: `${media} application/json is a list of operations as in RFC 6902.`,
        body: bodies(ClusterPatch),
      },
    },
    (request, reply) => {
      const write = { ...patched(request, applyPatches), name: request.params.clusterName }
      return answerChange(request, reply, verbsOf(change, write))
    },
  )
}

/** @returns another document, of which nothing is checked */
type Patch = (document: unknown, body: unknown) => unknown

// A body for the other path would change nothing: its members are not known here.
const applyPart: Patch = (document, body) => {
  if (isMap(body) && Object.hasOwn(body, operations))
    throw refusedField(
      operations,
      'is for PATCH /v1/edge-mgmt/cluster/{clusterName}; this path takes a part of a configuration',
    )
  return applyConfigurationPart(document, body)
}

const applyPatches: Patch = (document, body) => {
  const { clusterConfigPatches } = body as ClusterPatch
  if (clusterConfigPatches === undefined && isMap(body) && Object.keys(body).length > 0)
    throw refusedField(
      operations,
      `is missing; a part of a configuration is for PATCH /v1/edge-mgmt/cluster, or for Content-Type ${mergePatch}`,
    )
  return applyJsonPatch(document, clusterConfigPatches ?? [], operations)
}

const operations = 'clusterConfigPatches'
const isMap = (body: unknown): body is object => typeof body === 'object' && body !== null
function patchOf({ headers }: FastifyRequest, json: Patch): Patch {
  const [type] = (headers['content-type'] ?? '').split(';')
  const patches: Readonly<Record<string, Patch>> = {
    [mergePatch]: applyMergePatch,
    [jsonPatch]: applyJsonPatch,
  }
  return patches[type?.trim().toLowerCase() ?? ''] ?? json
}

const problemOf = createDocumentCheck(ClusterConfiguration, 'the patched configuration')

/** @throws AppError BadRequest with the path of a field that a patch brings and that is misspelt: nothing would be changed */
function requireSpelling(body: unknown): void {
  const patches = Array.isArray(body) ? (body as HttpPatch[]) : (body as ClusterPatch | null)?.[operations]
  for (const part of patches?.map(broughtBy) ?? [body]) {
    const misspelt = misspeltIn(part, ClusterConfiguration)
    if (misspelt) throw misspelt
  }
}

/** Value of an operation, as a part of the configuration. */
const broughtBy = ({ path, value }: HttpPatch): unknown =>
  path
    .split('/')
    .slice(1)
    .reduceRight<unknown>((inner, part) => (/^(?:\d+|-)$/.test(part) ? [inner] : { [part]: inner }), value)

/** The result of a patch has to be valid as a posted configuration. */
function validated(document: unknown): ClusterConfiguration {
  const problem = problemOf(document)
  if (!problem) return document as ClusterConfiguration
  const { field, message } = problem
  throw new AppError(generalErrors.BadRequest, message, { details: { field } })
}
