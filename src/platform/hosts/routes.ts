import type { FileHandle } from 'node:fs/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type FileSender, createFileSender } from '../../api/send-file.ts'
import {
  EdgeHostDevice,
  EdgeHostMeta,
  EdgeHostMetaUpdate,
  EdgeHostRegistration,
  EdgeLogin,
  EdgeLoginReply,
  RegisteredEdgeHost,
} from './schemas.ts'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { callerOf } from '../../api/guard.ts'
import { errorReplies, NoContent } from '../../api/schemas.ts'
import { isAtLeast } from '../../base/role.ts'
import { Uid, uidOf } from '../../base/uid.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { listOf } from '../../lists/page.ts'
import { listParameters, parseListQuery } from '../../lists/query.ts'
import type { ClusterParts } from '../clusters/clusters.ts'
import type { HostParts } from './hosts.ts'
import { type HostRecord, hostList, hostMetadataList } from './store.ts'
import { RecordInTheWay, type Registered } from './registration.ts'
import { onlyOf, scopeOf } from '../requests/scope.ts'

/**
 * Sends a host with the packs of its cluster, which go out as the file has them: they may be larger than other replies.
 * @param file of `Downloads.openResolved`; it stays open
 */
async function sendResolved(
  sender: FileSender,
  reply: FastifyReply,
  { spec, ...rest }: EdgeHostDevice,
  file: FileHandle,
): Promise<void> {
  const before = Buffer.from('{"spec":{"clusterProfileTemplates":')
  const after = Buffer.from(`,${JSON.stringify(spec).slice(1)},${JSON.stringify(rest).slice(1)}`)
  const { size: sizeBytes } = await file.stat()
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': before.length + sizeBytes + after.length,
  }
  const begin = () => reply.code(200).headers(headers).hijack()
  await sender.send({ file, start: 0, sizeBytes, before, after, begin })
}

interface EdgeHostRoutesOptions {
  readonly hosts: HostParts
  readonly clusters: Pick<ClusterParts['clusters'], 'get' | 'forget'>
  readonly index: ClusterParts['index']
  readonly downloads: ClusterParts['downloads']
  readonly reports: Pick<ClusterParts['reports'], 'ofHost'>
  readonly listTokens: ContinueTokens
}

// Another name is refused: with `dryrun` the host would be registered.
const DryRunQuery = Type.Object(
  { dryRun: Type.Optional(Type.Boolean({ default: false, description: 'Only check.' })) },
  { additionalProperties: false },
)
const ResolveQuery = Type.Object({
  resolvePackValues: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'With the packs of the cluster of the host, and their values after variables and macros.',
    }),
  ),
})
const OfType = {
  type: Type.Optional(Type.Enum(['edge-native', ''], { description: 'Every host has this one type.' })),
}
// Another name is refused: the host would not be removed, or its cluster be kept.
const DeleteQuery = onlyOf({
  forceDelete: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Forget its cluster too, whether the host answers or not; the host keeps what it runs, and is refused from then on.',
    }),
  ),
})
const isDryRun = (query: unknown) => (query as { readonly dryRun?: unknown } | null)?.dryRun === true

const Params = Type.Object({ uid: Uid })
const resource = ({ params }: { readonly params: unknown }) => ({
  uid: uidOf((params as { readonly uid?: unknown }).uid),
})

/** Fields of a host that callers may write. */
export const writableOf = ({ uid, labels, annotations, isNextAccepted }: HostRecord): unknown => [
  uid,
  labels,
  annotations,
  isNextAccepted,
]

/** Edge hosts: their registration and login, and what users see of them. */
export const edgeHostRoutes: FastifyPluginAsyncTypebox<EdgeHostRoutesOptions> = async (
  app,
  { hosts, clusters, index, downloads, reports, listTokens },
) => {
  const sender = createFileSender()
  const shown = ({ host, isShown }: Registered) => {
    const device = hosts.toDevice(host)
    const projectName = hosts.projectNameOf(host)
    return {
      ...(isShown ? device : { aclmeta: device.aclmeta, metadata: { uid: host.uid } }),
      ...(projectName === undefined ? {} : { projectName }),
    }
  }
  const withPacks = (device: EdgeHostDevice): EdgeHostDevice => {
    const cluster = index.clusterOn(device.metadata.uid)
    if (!cluster) return device
    const { packs } = reports.ofHost(cluster.uid, device.metadata.uid)
    return { ...device, status: { ...device.status, packs: [...packs] } }
  }
  const tags = ['edgehosts']
  const viewOf = ({
    name,
    hostUid,
    projectUid,
    labels,
    annotations,
    isNextAccepted,
    publicKey,
  }: HostRecord) => ({
    name,
    hostUid,
    projectUid,
    labels,
    annotations,
    publicKey,
    ...(isNextAccepted ? { isNextAccepted } : {}),
  })
  const changes = (uid: string, request: FastifyRequest) => ({
    ...viewOf(hosts.get(uid, scopeOf(request))),
    cluster: index.clusterOn(uid)?.name,
  })
  const writable = (request: FastifyRequest) => {
    const { uid } = request.params as { readonly uid: string }
    return writableOf(hosts.get(uid, scopeOf(request)))
  }

  for (const [url, operationId] of [
    ['/v1/edgehosts/register', 'registerEdgeHost'],
    ['/v1/edgehosts/registers', 'registerEdgeHosts'],
  ] as const)
    app.post(
      url,
      {
        config: {
          access: 'open',
          audit: {
            action: 'create',
            kind: 'edgeHost',
            isOfHost: true,
            // Before, by the id that the host gives itself: it may be there already.
            changes(uid, { body }) {
              const { hostUid } = (body as EdgeHostRegistration).spec.host
              const host = uid === '' ? hosts.findByOwnId(hostUid) : hosts.find(uid)
              return host && viewOf(host)
            },
            isTrial: ({ query }) => isDryRun(query),
          },
        },
        schema: {
          operationId,
          tags,
          summary: 'Register a host with a registration token and its key; hosts do this by themselves',
          description:
            'With dryRun=true nothing is registered, recorded or counted: the reply is the host that is known, or the one that would be made, with an empty uid; refusals are the same. A host that is known by its id and key gets the whole record with a token of its project, and with any other one only its uid and project. The name of the project is to be shown.',
          querystring: DryRunQuery,
          body: EdgeHostRegistration,
          response: { 200: RegisteredEdgeHost, ...errorReplies(400, 401, 409) },
        },
      },
      async (request) => {
        const { registration } = hosts
        if (isDryRun(request.query)) return shown(registration.tryOut(request.body))
        try {
          const registered = registration.register(request.body)
          request.auditResource = registered.host
          return shown(registered)
        } catch (error) {
          // An administrator finds the record in the way in the trail.
          if (error instanceof RecordInTheWay) request.auditResource = error.record
          throw error
        }
      },
    )

  app.post(
    '/v1/auth/services/edge/login',
    {
      config: {
        access: 'open',
        // Each host logs in every quarter of an hour. The first login and refusals with a proof are recorded.
        audit: {
          action: 'activity',
          kind: 'edgeHost',
          isOfHost: true,
          changes: 'a login changes nothing that is shown',
          bestEffort: true,
          when: ({ auditNote }) => auditNote !== '',
        },
      },
      schema: {
        operationId: 'logInEdgeHost',
        tags: ['auth'],
        summary: 'Log in as a host: the first answer is a nonce, the second request has it signed',
        body: EdgeLogin,
        response: { 200: EdgeLoginReply, ...errorReplies(400, 401) },
      },
    },
    async (request) => {
      const { edgeHostUid: uid, edgeAuthToken: proof } = request.body
      if (proof === undefined) throw hosts.login.challenge(uid)
      request.auditResource = { uid: uidOf(uid) }
      request.auditNote = 'refused'
      const { token, generation, host } = hosts.login.logIn(uid, proof)
      request.auditNote = generation === 1 ? 'for the first time' : ''
      request.auditResource = host
      const { hostChecksum } = host.reported
      const projectName = hosts.projectNameOf(host)
      return {
        Authorization: token,
        generation,
        ...(hostChecksum === undefined ? {} : { hostChecksum }),
        ...(projectName === undefined ? {} : { projectName }),
      }
    },
  )

  app.get(
    '/v1/edgehosts',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listEdgeHosts',
        tags,
        summary: 'List the hosts of the scope, the newest first',
        querystring: Type.Object({ ...listParameters(hostList).properties, ...OfType }),
        response: { 200: listOf(EdgeHostDevice), ...errorReplies(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const query = parseListQuery(request.query, hostList, { tokens: listTokens, bound: [projectUid] })
      return hosts.list.page(query, hosts.inScope(projectUid))
    },
  )

  const metadataPage = listOf(EdgeHostMeta)
  app.get(
    '/v1/edgehosts/metadata',
    {
      config: { access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'listEdgeHostMetadata',
        tags,
        summary: 'List the rows of a table of the hosts of the scope, the newest first',
        querystring: Type.Object({
          ...listParameters(hostMetadataList).properties,
          ...OfType,
          quickFilter: Type.Optional(
            Type.Enum(['unusedEdgeHosts', ''], { description: 'Only the hosts without a cluster.' }),
          ),
        }),
        response: {
          200: Type.Object(
            { edgeHosts: metadataPage.properties.items, listmeta: metadataPage.properties.listmeta },
            { title: 'EdgeHostsMeta' },
          ),
          ...errorReplies(400, 401, 403, 404, 503),
        },
      },
    },
    async (request) => {
      const projectUid = scopeOf(request)
      const { quickFilter = '' } = request.query
      const query = parseListQuery(request.query, hostMetadataList, {
        tokens: listTokens,
        bound: [projectUid, quickFilter],
      })
      const condition = quickFilter === '' ? hosts.inScope(projectUid) : hosts.unusedIn(projectUid)
      const { items, listmeta } = await hosts.metadata.page(query, condition)
      return { edgeHosts: items, listmeta }
    },
  )

  app.get(
    '/v1/edgehosts/:uid',
    {
      config: { writable, access: 'viewer', scope: 'both' },
      schema: {
        operationId: 'getEdgeHost',
        tags,
        summary: 'A host',
        description:
          'Operators and administrators see the values of packs, since values may have secrets that are not marked as such; values of sensitive variables are masked for everyone.',
        params: Params,
        querystring: ResolveQuery,
        response: { 200: EdgeHostDevice, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const device = withPacks(hosts.toDevice(hosts.get(request.params.uid, scopeOf(request))))
      if (request.query.resolvePackValues !== true) return device
      const { uid } = device.metadata
      const seesValues = isAtLeast(callerOf(request).role, 'operator')
      const file = seesValues ? await downloads.openResolved(uid) : undefined
      if (!file) {
        const profiles = downloads.profilesOn(uid)
        return profiles
          ? { ...device, spec: { ...device.spec, clusterProfileTemplates: [...profiles] } }
          : device
      }
      try {
        await sendResolved(sender, reply, device, file)
      } finally {
        await file.close()
      }
      return reply
    },
  )

  app.put(
    '/v1/edgehosts/:uid/meta',
    {
      config: {
        writable,
        access: 'operator',
        scope: 'both',
        audit: { action: 'update', kind: 'edgeHost', resource, changes },
      },
      schema: {
        operationId: 'updateEdgeHostMeta',
        tags,
        summary: 'Replace the labels of a host, and add or replace annotations',
        params: Params,
        body: EdgeHostMetaUpdate,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      request.auditResource = hosts.get(uid, scopeOf(request))
      hosts.describe(uid, scopeOf(request), request.body)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/v1/edgehosts/:uid',
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: { action: 'delete', kind: 'edgeHost', resource, changes },
      },
      schema: {
        operationId: 'deleteEdgeHost',
        tags,
        summary: 'Remove a host; it learns so at its next login',
        params: Params,
        querystring: DeleteQuery,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      request.auditResource = hosts.get(uid, scopeOf(request))
      const cluster = index.clusterOn(uid)
      if (cluster && request.query.forceDelete === true)
        await clusters.forget(clusters.get(cluster.uid, scopeOf(request)))
      hosts.remove(uid, scopeOf(request))
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/v1/edgehosts/:uid/duplicate',
    {
      config: {
        writable,
        access: 'admin',
        scope: 'both',
        audit: { action: 'action', kind: 'edgeHost', resource, changes },
      },
      schema: {
        operationId: 'acceptEdgeHost',
        tags,
        summary: 'Let the next login of a host in that exists twice; the other one is refused from then on',
        params: Params,
        body: Type.Object({ action: Type.Literal('acceptNext') }),
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const { uid } = request.params
      request.auditResource = hosts.get(uid, scopeOf(request))
      hosts.acceptNext(uid, scopeOf(request))
      return reply.code(204).send(null)
    },
  )
}
