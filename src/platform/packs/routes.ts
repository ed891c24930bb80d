import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import { formParts, addMultipart, formSchema } from '../../upload/multipart.ts'
import { packList } from './store.ts'
import type { Packs } from './packs.ts'
import { CreatedUid } from '../schemas.ts'
import { PackSummary, PackTagEntity } from './schemas.ts'
import { examinationCallerOf } from '../requests/identify.ts'
import { OfTenant, readScopeOf, scopeOf } from '../requests/scope.ts'

export interface PackRoutesOptions {
  readonly packs: Packs
  readonly listTokens: ContinueTokens
}

const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** Packs: `/v1/packs…`. */
export const packRoutes: FastifyPluginAsyncTypebox<PackRoutesOptions> = async (
  app,
  { packs, listTokens },
) => {
  const tags = ['packs']
  // A pack never changes; it may be deleted, and another one uploaded.
  const writable = (request: FastifyRequest) =>
    packs.get((request.params as { readonly uid: string }).uid, scopeOf(request)).uid

  const changes = (uid: string, request: FastifyRequest) => {
    const { name, version } = packs.get(uid, scopeOf(request))
    return { name, version }
  }

  await addMultipart(app, async (scope) => {
    scope.post(
      '/v1/packs',
      {
        config: { access: 'operator', scope: 'both', audit: { action: 'create', kind: 'pack', changes } },
        schema: {
          operationId: 'createPack',
          tags,
          summary: 'Upload a pack: its folder as a tar, also compressed',
          description:
            'The folder is the top of the archive, or the only folder there. It is examined in a process of its own with the limits of definitions; after a refusal nothing of it is kept.',
          ...formSchema({ uploadFile: 'The archive: .tar, .tar.gz or .tar.zst.' }, ['uploadFile']),
          response: { 201: CreatedUid, ...errorReplies(400, 401, 403, 404, 408, 409, 413, 415, 503, 507) },
        },
      },
      async (request, reply) => {
        const length = request.headers['content-length']
        const form = {
          parts: (signal: AbortSignal) => formParts(request, 'uploadFile', signal),
          expectedBytes: length === undefined ? undefined : Number(length),
          caller: examinationCallerOf(request, reply),
        }
        const { uid, name, version } = await packs.receive(form, scopeOf(request))
        request.auditResource = { uid, name: `${name} ${version}` }
        return reply.code(201).send({ uid })
      },
    )
  })

  app.get(
    '/v1/packs',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listPacks',
        tags,
        summary: 'List the packs of the scope, the newest first',
        querystring: Type.Object({ ...listParameters(packList).properties, ...OfTenant }),
        response: { 200: listOf(PackSummary), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = readScopeOf(request)
      const query = parseListQuery(request.query, packList, { tokens: listTokens, bound: [projectUid] })
      return packs.list.page(query, packs.inScope(projectUid))
    },
  )

  app.get(
    '/v1/packs/:uid',
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getPack',
        tags,
        summary: 'A pack, with its values',
        params: Params,
        response: { 200: PackTagEntity, ...errorReplies(401, 403, 404) },
      },
    },
    async (request, reply) => {
      const content = await packs.open(request.params.uid, scopeOf(request))
      return reply.header('content-type', 'application/json; charset=utf-8').send(content as never)
    },
  )

  app.delete(
    '/v1/packs/:uid',
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: { action: 'delete', kind: 'pack', resource, changes },
      },
      schema: {
        operationId: 'deletePack',
        tags,
        summary: 'Delete a pack that no cluster profile and no cluster uses',
        params: Params,
        response: { 204: NoContent, ...errorReplies(401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const projectUid = scopeOf(request)
      const { uid, name, version } = packs.get(request.params.uid, projectUid)
      request.auditResource = { uid, name: `${name} ${version}` }
      await packs.remove(uid, projectUid)
      return reply.code(204).send(null)
    },
  )
}
