import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { formParts, addMultipart, formSchema } from '../upload/multipart.ts'
import { matchesEtag } from '../api/etag.ts'
import { callerOf } from '../api/guard.ts'
import { keepOpen } from '../api/request-end.ts'
import { errorReplies, NoContent, notModified } from '../api/schemas.ts'
import { requireTag } from '../errors/refused-field.ts'
import {
  ClusterConfigArchiveDetails,
  UploadResponse,
  ValidateVariables,
  ValidateVariablesResponse,
} from './schemas.ts'
import { slotNames } from './slots/slot-names.ts'
import type { Slots } from './slots/slots.ts'
import type { ReceiveUpload } from './slots/uploads.ts'

export interface DefinitionRoutesOptions {
  readonly slots: Slots
  readonly receive: ReceiveUpload
}

const slotTexts = {
  embedded: 'The definition that came with this host or in a content bundle',
  overridden: 'The definition that was uploaded',
  update: 'The definition that waits to update the cluster, and how it differs from the running one',
} as const

/** Cluster definitions: `/v1/edge-mgmt/clusters/archive/...`, their upload, and their variables. */
export const definitionRoutes: FastifyPluginAsyncTypebox<DefinitionRoutesOptions> = async (app, options) => {
  const { slots, receive } = options
  const tags = ['clusters']
  const archive = '/v1/edge-mgmt/clusters/archive'

  const changes = () => slots.named()

  for (const slot of slotNames)
    app.get(
      `${archive}/${slot}/details`,
      {
        // For administrators only: values of packs may contain secrets that are not marked as such.
        config: { hasEtag: true, access: 'admin' },
        schema: {
          operationId: `get${slot[0]?.toUpperCase()}${slot.slice(1)}ArchiveDetails`,
          tags,
          summary: slotTexts[slot],
          description:
            'An empty slot has no profiles. Values of sensitive variables are masked. The reply may have several megabytes: send the ETag of your copy in If-None-Match to get 304 until something changes.',
          response: { 200: ClusterConfigArchiveDetails, ...notModified, ...errorReplies(401, 403, 503) },
        },
      },
      async (request, reply) => {
        const details = await slots.details(slot, (etag) => matchesEtag(request, etag))
        void reply.header('etag', details.etag)
        if (!details.reply) return reply.code(304).send(undefined as never)
        const { sizeBytes, content } = details.reply
        void reply.header('content-type', 'application/json; charset=utf-8')
        return reply.header('content-length', sizeBytes).send(content as never)
      },
    )

  app.delete(
    `${archive}/update`,
    {
      config: {
        hasEtag: true,
        access: 'admin',
        audit: { action: 'delete', kind: 'definition', changes },
      },
      schema: {
        operationId: 'rejectArchiveUpdate',
        tags,
        summary: 'Discard the waiting update',
        response: { 204: NoContent, ...errorReplies(401, 403, 409) },
      },
    },
    async (request, reply) => {
      const ifMatch = request.headers['if-match']
      // An empty slot has details and a tag too.
      if (ifMatch !== undefined) requireTag(ifMatch, (await slots.details('update', () => true)).etag)
      const removed = await slots.removeUpdate()
      if (removed) request.auditResource = { name: `${removed.name} ${removed.version}`, uid: removed.uid }
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/edge-mgmt/cluster/profiles/variables/validate',
    {
      config: { access: 'admin', airgapOnly: true, servedInReset: true, audit: false },
      schema: {
        operationId: 'validateProfileVariables',
        tags,
        summary: 'Check values for the variables of a definition',
        description:
          'The status is 200 also for invalid values: isValid tells for each given variable whether its value is valid, and for each variable that was not given whether its default is.',
        body: ValidateVariables,
        response: { 200: ValidateVariablesResponse, ...errorReplies(400, 401, 403, 503) },
      },
    },
    async ({ body: { archiveUploadPath = '', variables = [] } }) => ({
      variables: [
        ...(await slots.validate(
          archiveUploadPath,
          variables.map(({ name = '', profileUid = '', value = '' }) => ({ name, profileUid, value })),
        )),
      ],
    }),
  )

  await addMultipart(app, async (scope) => {
    scope.post(
      '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig',
      {
        config: { access: 'admin', audit: { action: 'create', kind: 'definition', changes } },
        schema: {
          operationId: 'uploadClusterConfig',
          tags: ['content'],
          summary: 'Upload a cluster definition',
          description:
            'The definition is checked while it arrives, so an invalid one may be refused before its end. It is put into the slot overridden, or update while there is a cluster, in one step; after a refusal the slot is unchanged.',
          ...formSchema(
            {
              uploadFile: 'The archive, .tgz or .tar.zst.',
              signature:
                'Required if the host has a signing key: the detached signature, SHA-256 with RSA or ECDSA, as bytes, hex or base64.',
            },
            ['uploadFile'],
          ),
          response: {
            201: UploadResponse,
            ...errorReplies(400, 401, 403, 408, 409, 413, 415, 503, 507),
          },
        },
      },
      async (request, reply) => {
        keepOpen(reply)
        const length = request.headers['content-length']
        const definition = await receive({
          parts: (signal) => formParts(request, 'uploadFile', signal),
          expectedBytes: length === undefined ? undefined : Number(length),
          uploader: { name: callerOf(request).userName, signal: request.sessionEnd },
        })
        const { uid, name, version } = definition
        request.auditResource = { name: `${name} ${version}`, uid }
        return reply.code(201).send({
          uid,
          message: `definition ${name} ${version} is in the slot ${definition.slot}`,
          uploadPath: slots.pathOf(definition),
        })
      },
    )
  })
}
