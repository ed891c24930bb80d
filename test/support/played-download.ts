import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { generateKey, signCertificate } from '../../src/certificate/certificate.ts'
import { rawTar, type RawMember } from './tar-bytes.ts'

export const clusterUid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a11'
export const tenantUid = 'tenant-1'

/** What a platform wants, as a test says it. */
export interface DeliveryWish {
  readonly number?: number
  readonly uid?: string
  readonly name?: string
  readonly tenantUid?: string
  readonly isDeleted?: boolean
  readonly configuration?: unknown
  /** The archive of the definition. */
  readonly definition?: Buffer
  /** Instead of all the members. */
  readonly members?: readonly RawMember[]
  /** Further fields of cluster.json. */
  readonly more?: object
}

/** The bytes of a delivery, and how the heartbeat announces them. */
export function deliveryOf({
  number = 1,
  uid = clusterUid,
  name = 'edge-1',
  tenantUid: tenant = tenantUid,
  isDeleted = false,
  configuration = { metadata: { name } },
  definition = Buffer.from('the archive of a definition'),
  members,
  more = {},
}: DeliveryWish = {}) {
  const definitionSha256 = createHash('sha256').update(definition).digest('hex')
  const head = {
    ...{ number, cluster: { uid, name }, tenantUid: tenant, isDeleted },
    ...(isDeleted ? {} : { definitionSha256, configuration }),
    ...more,
  }
  const bytes = rawTar(
    members ?? [
      { name: 'cluster.json', content: JSON.stringify(head) },
      ...(isDeleted ? [] : [{ name: 'definition.tar.zst', content: definition }]),
    ],
  )
  const sum = createHash('sha256').update(bytes).digest()
  const etag = `${number}-${sum.toString('hex').slice(0, 32)}`
  return { bytes, sum, number, etag, header: `number=${number}, etag="${etag}"` }
}
export type PlayedDelivery = ReturnType<typeof deliveryOf>

/** A platform from which a host downloads, over TLS; `misbehave` may answer in place of it. */
export async function playDownload(first: PlayedDelivery) {
  const now = Date.now()
  const key = generateKey()
  const cert = await signCertificate({
    ...{ key, names: { hostName: 'box', addresses: [] } },
    ...{ now, buildDate: now - 86_400_000 },
  })
  const asked: { readonly range: string | undefined; readonly token: string | undefined }[] = []
  const played = {
    delivery: first,
    asked,
    /** The bytes that are sent, where they are not those of the sum. */
    sent: undefined as Buffer | undefined,
    /** After so many bytes of a reply the connection is cut. */
    cutAfter: Infinity,
    misbehave: undefined as ((request: IncomingMessage, reply: ServerResponse) => void) | undefined,
    /** Answers all that is no download. */
    others: undefined as ((request: IncomingMessage, reply: ServerResponse) => void) | undefined,
    url: '',
    ca: cert,
  }

  function serve({ headers }: IncomingMessage, reply: ServerResponse): void {
    const { bytes, sum, etag } = played.delivery
    const all = played.sent ?? bytes
    const from =
      headers['if-range'] === `"${etag}"` ? Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0) : 0
    if (from >= all.length) {
      reply.writeHead(416, { 'content-range': `bytes */${all.length}` }).end()
      return
    }
    const part = all.subarray(from)
    reply.writeHead(from > 0 ? 206 : 200, {
      ...{ etag: `"${etag}"`, 'content-type': 'application/x-tar', 'accept-ranges': 'bytes' },
      ...{ 'repr-digest': `sha-256=:${sum.toString('base64')}:`, 'content-length': part.length },
      ...(from > 0 ? { 'content-range': `bytes ${from}-${all.length - 1}/${all.length}` } : {}),
    })
    if (part.length <= played.cutAfter) reply.end(part)
    else reply.write(part.subarray(0, played.cutAfter), () => reply.socket?.end())
  }

  const server = createServer(
    { key: key.export({ type: 'pkcs8', format: 'pem' }), cert },
    (request, reply) => {
      if (played.others && !request.url?.endsWith('/spc/download')) {
        played.others(request, reply)
        return
      }
      asked.push({ range: request.headers.range, token: request.headers.authorization })
      reply.on('error', () => undefined)
      if (played.misbehave) played.misbehave(request, reply)
      else serve(request, reply)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  played.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  return played
}
