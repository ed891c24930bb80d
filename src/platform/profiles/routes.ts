import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { isAtLeast } from '../../base/role.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { addRawBodies, readBody } from '../../upload/raw-body.ts'
import { profileList } from './store.ts'
import type { Profiles } from './profiles.ts'
import { CreatedUid } from '../schemas.ts'
import { ClusterProfile, ClusterProfileImportEntity, Variables } from './schemas.ts'
import { examinationCallerOf } from '../requests/identify.ts'
import { OfTenant, readScopeOf, scopeOf } from '../requests/scope.ts'

export interface ProfileRoutesOptions {
  readonly profiles: Profiles
  readonly listTokens: ContinueTokens
}

// Variables have at most 1 MiB, without the spaces that a body may have.
const largestVariables = 2_097_152
const path = '/v1/clusterprofiles'
const yamlTypes = ['application/yaml', 'application/x-yaml', 'text/yaml', 'text/x-yaml']

// Another name is refused: with `Publish` the profile would be a draft.
const ImportQuery = Type.Object(
  {
    publish: Type.Optional(
      Type.Boolean({ default: false, description: 'Publish the version: it never changes then.' }),
    ),
    ProjectUid: Type.Optional(Type.String({ description: 'The project; also as a header.' })),
  },
  { additionalProperties: false },
)
const ExportQuery = Type.Object({
  format: Type.Optional(
    Type.Enum(['json', 'yaml'], { default: 'json', description: 'The form of the profile.' }),
  ),
})
const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** For a change that waits for its turn: another one may have been made since the request came. */
const inTurn = (request: FastifyRequest) => () => {
  request.requireMatch()
  request.readBefore()
}

/** Cluster profiles: `/v1/clusterprofiles…`. */
export const profileRoutes: FastifyPluginAsyncTypebox<ProfileRoutesOptions> = async (
  app,
  { profiles, listTokens },
) => {
  const tags = ['clusterprofiles']
  const writable = (request: FastifyRequest) => {
    const { uid, filesUid, isPublished } = profiles.get(
      (request.params as { readonly uid: string }).uid,
      readScopeOf(request),
    )
    return [uid, filesUid, isPublished]
  }
  const changes = (uid: string, request: FastifyRequest) => profiles.compared(uid, scopeOf(request))
  const seesSecrets = (request: FastifyRequest) => isAtLeast(callerOf(request).role, 'operator')

  await addRawBodies(
    app,
    async (scope) => {
      const usual = scope.validatorCompiler
      // The schema of the body is for the document: the profile is examined in a process of its own.
      scope.setValidatorCompiler((route) =>
        route.httpPart === 'body' || usual === undefined ? () => true : usual(route),
      )
      scope.post(
        `${path}/import`,
        {
          config: {
            access: 'operator',
            scope: 'both',
            audit: { action: 'create', kind: 'clusterProfile', changes },
          },
          schema: {
            operationId: 'importClusterProfile',
            tags,
            summary: 'Import a cluster profile as a platform exports it, JSON or YAML',
            description:
              'A profile as edgehostctl definition build takes it, up to 16 MiB as JSON; the body has at most 32 MiB. Only the form is checked, misspelt fields too: the validation of a cluster runs the rules. A name with a version exists once in its scope. The uid of the export is replaced.',
            querystring: ImportQuery,
            consumes: ['application/json', ...yamlTypes],
            body: ClusterProfileImportEntity,
            response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 404, 408, 409, 413, 415, 503, 507) },
          },
        },
        async (request, reply) => {
          const isPublished = (request.query as { readonly publish?: boolean }).publish === true
          const caller = examinationCallerOf(request, reply)
          const length = request.headers['content-length']
          const body = {
            expectedBytes: length === undefined ? undefined : Number(length),
            read: (onChunk: (chunk: Buffer) => Promise<void>, signal: AbortSignal) =>
              readBody(request.raw, onChunk, signal),
          }
          const how = { projectUid: scopeOf(request), isPublished }
          const profile = await profiles.receive(body, how, caller)
          const { uid, name, version } = profile
          request.auditResource = { uid, name: `${name} ${version}` }
          return reply.code(201).send({ uid })
        },
      )
    },
    ['application/json', ...yamlTypes],
  )

  app.get(
    path,
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listClusterProfiles',
        tags,
        summary: 'List the cluster profiles of the scope, the newest first; their packs have no values here',
        querystring: Type.Object({ ...listParameters(profileList).properties, ...OfTenant }),
        response: { 200: listOf(ClusterProfile), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = readScopeOf(request)
      const query = parseListQuery(request.query, profileList, { tokens: listTokens, bound: [projectUid] })
      return profiles.list.page(query, profiles.inScope(projectUid))
    },
  )

  app.get(
    `${path}/:uid`,
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getClusterProfile',
        tags,
        summary: 'A cluster profile',
        description:
          'Operators and administrators see the values of its packs, since values may have secrets that are not marked as such. Values of sensitive variables are masked in them. With ofTenant there are no values.',
        params: Params,
        querystring: Type.Object(OfTenant),
        response: { 200: ClusterProfile, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const projectUid = readScopeOf(request)
      // The role that counts may be one in the project alone.
      const isOwn = projectUid === scopeOf(request)
      const content = profiles.open(request.params.uid, projectUid, isOwn && seesSecrets(request))
      return reply.header('content-type', 'application/json; charset=utf-8').send(content as never)
    },
  )

  app.get(
    `${path}/:uid/export`,
    {
      // A HEAD request would read everything and discard it.
      exposeHeadRoute: false,
      config: {
        access: 'operator',
        scope: 'both',
        audit: { action: 'activity', kind: 'clusterProfile', resource },
      },
      schema: {
        operationId: 'exportClusterProfile',
        tags,
        summary: 'The profile as it was imported, but for its uid and times; with its sensitive values',
        description:
          'The only reply that has sensitive values, since a definition cannot be built without them. Each export is in the audit trail.',
        params: Params,
        querystring: ExportQuery,
        response: {
          200: {
            description: 'The profile, in the form that was asked for.',
            content: {
              'application/json': {
                schema: Type.Object(
                  {},
                  { additionalProperties: true, description: 'As in an import, with all its fields.' },
                ),
              },
              'application/yaml': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) },
            },
          },
          ...errorReplies(400, 401, 403, 404, 409),
        },
      },
    },
    async (request, reply) => {
      const { uid, name, version } = profiles.get(request.params.uid, scopeOf(request))
      const { format = 'json' } = request.query
      const content = profiles.export(uid, scopeOf(request), format)
      request.auditResource = { uid, name: `${name} ${version}` }
      request.auditNote = 'exported with its sensitive values'
      return reply
        .header('content-type', `application/${format}`)
        .header('content-disposition', `attachment; filename="${uid}.${format}"`)
        .send(content)
    },
  )

  app.get(
    `${path}/:uid/variables`,
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getClusterProfileVariables',
        tags,
        summary: 'The variables of a cluster profile, sensitive values masked',
        params: Params,
        querystring: Type.Object(OfTenant),
        response: { 200: Variables, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request) => ({
      variables: [...profiles.get(request.params.uid, readScopeOf(request)).shownVariables],
    }),
  )

  app.put(
    `${path}/:uid/variables`,
    {
      bodyLimit: largestVariables,
      config: {
        writable,
        access: 'operator',
        scope: 'both',
        audit: { action: 'update', kind: 'clusterProfile', resource, changes },
      },
      schema: {
        operationId: 'updateClusterProfileVariables',
        tags,
        summary: 'Replace the variables of a cluster profile that is not published',
        description:
          'A mask of a reply that is sent back keeps the stored value; the mask of an option is matched by its label. Variables have at most 1 MiB as JSON, together with the metadata of the profile.',
        params: Params,
        body: Variables,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409, 503, 507) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { uid, name, version } = profiles.get(request.params.uid, projectUid)
      request.auditResource = { uid, name: `${name} ${version}` }
      await profiles.setVariables(uid, projectUid, request.body.variables, {
        ...examinationCallerOf(request, reply),
        requireMatch: inTurn(request),
      })
      return reply.code(204).send(null)
    },
  )

  app.delete(
    `${path}/:uid`,
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: { action: 'delete', kind: 'clusterProfile', resource, changes },
      },
      schema: {
        operationId: 'deleteClusterProfile',
        tags,
        summary: 'Delete a cluster profile that no cluster uses',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { uid, name, version } = profiles.get(request.params.uid, projectUid)
      request.auditResource = { uid, name: `${name} ${version}` }
      await profiles.remove(uid, projectUid, inTurn(request))
      return reply.code(204).send(null)
    },
  )
}
