import type { FastifyReply, FastifyRequest } from 'fastify'
import { askedPart, type FileSender, createFileSender } from '../../api/send-file.ts'
import type { Download } from '../clusters/downloads.ts'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { matchesEtag } from '../../api/etag.ts'
import { errorReplies, NoContent, notModified } from '../../api/schemas.ts'
import { Uid } from '../../base/uid.ts'
import type { ClusterParts } from '../clusters/clusters.ts'
import type { HostParts } from './hosts.ts'
import { EdgeHostFacts, EdgeHostHealth } from './schemas.ts'
import { writableOf } from './routes.ts'
import { ownUid } from '../requests/identify.ts'

/** The headers of every reply that has the desired state, or says that it is the same. */
const desiredHeaders = (etag: string) => ({
  etag,
  'cache-control': 'no-store',
  'accept-ranges': 'bytes',
})

/**
 * Sends the desired state of a host, or the requested range of it: the bytes before the definition, its file, and the bytes after.
 * @throws AppError RangeUnsatisfiable, SecretReplaced; NotFound where the definition was removed
 */
async function sendDesired(
  sender: FileSender,
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, reprDigest, definitionBytes, open, frame }: Download,
): Promise<void> {
  void reply.headers(desiredHeaders(etag))
  const { before, after } = frame()
  const asked = askedPart(request, reply, {
    etag,
    sizeBytes: before.length + definitionBytes + after.length,
    headers: { 'content-type': 'application/x-tar', 'repr-digest': reprDigest },
  })
  const [start, end] = [asked.start, asked.start + asked.sizeBytes - 1]
  // The bytes of each part within the range.
  const [fileStart, afterStart] = [before.length, before.length + definitionBytes]
  const within = (at: number, most: number) => Math.max(0, Math.min(at, most))
  const [from, to] = [
    within(start - fileStart, definitionBytes),
    within(end + 1 - fileStart, definitionBytes),
  ]
  const file = await open()
  try {
    await sender.send({
      ...(file ? { file } : {}),
      start: from,
      sizeBytes: to - from,
      before: before.subarray(start, end + 1),
      after: after.subarray(
        within(start - afterStart, after.length),
        within(end + 1 - afterStart, after.length),
      ),
      begin: () => asked.begin().hijack(),
    })
  } finally {
    await file?.close()
  }
}

interface HostReportRoutesOptions {
  readonly hosts: Pick<HostParts, 'find' | 'beat' | 'report'>
  readonly index: Pick<ClusterParts['index'], 'headerFor'>
  readonly downloads: Pick<ClusterParts['downloads'], 'desiredOf'>
}

const Params = Type.Object({ uid: Uid })
// As at a registration, which is open. Fifty hosts are a page of the list, and it is made at once.
const largestFacts = 131_072

/** Routes of hosts that are logged in: heartbeats, facts, and the download of their desired state. */
export const hostReportRoutes: FastifyPluginAsyncTypebox<HostReportRoutesOptions> = async (
  app,
  { hosts, index, downloads },
) => {
  const sender = createFileSender()
  const tags = ['edgehosts']
  const writable = (request: FastifyRequest) => {
    const host = hosts.find(ownUid(request))
    return host ? writableOf(host) : []
  }

  app.patch(
    '/v1/edgehosts/:uid/health',
    {
      config: { access: 'host', audit: false, servedOnFullDisk: true },
      schema: {
        operationId: 'updateEdgeHostHealth',
        tags,
        summary: 'The heartbeat of a host; it is shown within a second, and hosts send it each minute',
        description:
          'The header Edgehost-Wanted of the reply names the content of GET /v1/edgehosts/{uid}/spc/download, as a dictionary of RFC 9651: number=3, etag="…", uid="…" (of the cluster), and deletion=1 where the cluster is to be deleted; it is absent where there is no desired state.',
        params: Params,
        body: EdgeHostHealth,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const uid = ownUid(request)
      hosts.beat(uid, request.body)
      const announced = index.headerFor(uid)
      if (announced !== undefined) void reply.header('edgehost-wanted', announced)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/v1/edgehosts/:uid/spc/download',
    {
      exposeHeadRoute: false,
      config: { access: 'host' },
      schema: {
        operationId: 'downloadEdgeHostSpc',
        tags,
        summary: 'The desired state of a host: a tar with the description of its cluster and the definition',
        description:
          'Members: cluster.json, then definition.tar.zst, which a cluster that is to be deleted has not. A download that stopped continues with Range and If-Range. Repr-Digest (RFC 9530) is of the whole.',
        params: Params,
        response: {
          200: {
            description: 'The tar.',
            content: { 'application/x-tar': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) } },
          },
          206: {
            description: 'A part of it.',
            content: { 'application/x-tar': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) } },
          },
          ...notModified,
          ...errorReplies(401, 403, 404, 409, 416),
        },
      },
    },
    async (request, reply) => {
      const announced = downloads.desiredOf(ownUid(request))
      if (matchesEtag(request, announced.etag))
        return reply.headers(desiredHeaders(announced.etag)).code(304).send()
      await sendDesired(sender, request, reply, announced)
      return reply
    },
  )

  app.put(
    '/v1/edgehosts/:uid',
    {
      bodyLimit: largestFacts,
      // Facts that take no more space than those before are; others are refused where they are kept.
      config: { writable, access: 'host', audit: false, servedOnFullDisk: true },
      schema: {
        operationId: 'updateEdgeHost',
        tags,
        summary: 'The facts of a host, replaced as a whole; hosts send them at a change',
        params: Params,
        body: EdgeHostFacts,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      hosts.report(ownUid(request), request.body)
      return reply.code(204).send(null)
    },
  )
}
