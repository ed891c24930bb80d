import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Client } from '../../../ctl/client.ts'
import { Failure } from '../../../ctl/exit-codes.ts'
import { formOf } from '../../../ctl/request-body.ts'
import { errorOf, parseBody, readReply, toFailure, type Reply } from '../../../ctl/reply.ts'
import type { Ask, BodySource } from '../../../ctl/transport.ts'
import type { Bundle, ContentUploadBegun, ContentUploaded, MissingContentBlob } from '../../schemas.ts'

export const uploadsPath = '/v1/edge-mgmt/content/uploads'
const bundlesPath = '/v1/edge-mgmt/content/bundles'
const keyPath = '/v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key'
const filePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
// The manifests of 100,000 blobs are examined, and all are written to the disk.
const publishMs = 1_800_000

/** The host cannot take it now, or cannot be reached: it is worth another attempt. */
export class Interrupted extends Error {
  readonly failure: Failure
  readonly retryAfterSec: number
  constructor(failure: Failure, retryAfterSec = 0) {
    super(failure.message)
    this.failure = failure
    this.retryAfterSec = retryAfterSec
  }
}

/** A bundle that was published. */
export interface PublishedBundle extends ContentUploaded {
  /** False if the host had a bundle with the same index. */
  readonly isNew: boolean
}

/** The host takes no more requests for a while. This one was not handled, and is to be sent again then. */
export class Refused extends Interrupted {}

/** The host does not have the upload any more: it was published, or thrown away. */
export class UploadGone extends Failure {}

/**
 * The API for uploads of content. Each verb throws Interrupted, UploadGone if it names an upload, or Failure for a refusal that
 * stays.
 */
export interface UploadHost {
  /** The public key that verifies uploads, PEM; undefined without one. */
  signingKey(): Promise<string | undefined>
  begin(form: { index: Buffer; name: string; signature: Buffer | undefined }): Promise<ContentUploadBegun>
  missing(uid: string): Promise<MissingContentBlob[]>
  /** @returns `wrong` if the host holds other bytes of it than expected, `damaged` if the digest of the whole blob differs */
  send(uid: string, blob: MissingContentBlob, body: BodySource): Promise<'sent' | 'wrong' | 'damaged'>
  /** @returns undefined if blobs are missing */
  publish(uid: string): Promise<PublishedBundle | undefined>
  /** The published bundle with this index.json. */
  find(index: Buffer): Promise<Bundle | undefined>
  /** Sends a form as it is. */
  sendFile(type: string, body: BodySource): Promise<PublishedBundle>
}

export function createUploadHost(client: Client): UploadHost {
  async function ask(question: Ask): Promise<Reply> {
    const reply = await readReply(await open(question))
    return passOn(reply)
  }

  const open = (question: Ask) => client.open({ isKept: true, ...question }).catch(interrupt)

  async function succeed(question: Ask): Promise<Reply> {
    const reply = await ask(question)
    if (reply.status < 200 || reply.status > 299) throw toFailure(reply)
    return reply
  }

  return {
    async signingKey() {
      const reply = await ask({ method: 'GET', path: keyPath })
      if (reply.status === 404) return undefined
      if (reply.status !== 200) throw toFailure(reply)
      const { key } = parseBody<{ key: string }>(reply, ['key'])
      return Buffer.from(key, 'base64').toString()
    },
    async begin({ index, name, signature }) {
      const { type, body } = formOf([
        ...(signature ? [{ name: 'signature', fileName: 'signature', content: signature }] : []),
        { name: 'name', content: Buffer.from(name) },
        { name: 'index', fileName: 'index.json', content: index },
      ])
      const reply = await succeed({
        method: 'POST',
        path: uploadsPath,
        headers: { 'content-type': type },
        body,
      })
      return parseBody<ContentUploadBegun>(reply, ['uid', 'isPublished'])
    },
    async missing(uid) {
      const message = await open({ method: 'GET', path: `${uploadsPath}/${uid}/missing` })
      if (message.statusCode !== 200) {
        const reply = passOn(await readReply(message))
        throw failureOf(reply)
      }
      const blobs: MissingContentBlob[] = []
      try {
        for await (const line of createInterface({ input: message, crlfDelay: Infinity }))
          blobs.push(JSON.parse(line) as MissingContentBlob)
      } catch (error) {
        return interrupt(error)
      }
      if (!message.complete) throw new Interrupted(new Failure('unreachable', 'the reply is incomplete'))
      return blobs
    },
    async send(uid, { digest, sizeBytes, heldBytes }, body) {
      // Another request has sent the last byte, and the host checks the digest now.
      if (heldBytes >= sizeBytes) return 'wrong'
      const reply = await ask({
        method: 'PATCH',
        path: `${uploadsPath}/${uid}/blobs/${digest}`,
        body,
        headers: {
          'content-type': 'application/octet-stream',
          'content-range': `bytes ${heldBytes}-${sizeBytes - 1}/${sizeBytes}`,
        },
      })
      if (reply.status === 204) return 'sent'
      const code = errorOf(reply)?.code
      if (reply.status === 416 || code === 'BlobBusy') return 'wrong'
      if (code === 'DigestMismatch') return 'damaged'
      throw failureOf(reply)
    },
    async publish(uid) {
      const reply = await ask({
        method: 'POST',
        path: `${uploadsPath}/${uid}/actions/publish`,
        timeoutMs: publishMs,
        // Not a kept connection: the host works for long without a byte.
        isKept: false,
      })
      if (errorOf(reply)?.code === 'BlobsMissing') return undefined
      if (reply.status !== 200 && reply.status !== 201) throw failureOf(reply)
      return publishedOf(reply)
    },
    async find(index) {
      const digest = createHash('sha256').update(index).digest('hex')
      const query = new URLSearchParams({ filters: `indexDigest=sha256:${digest}`, limit: '1' })
      const reply = await succeed({ method: 'GET', path: `${bundlesPath}?${query.toString()}` })
      return parseBody<{ items: Bundle[] }>(reply, ['items']).items[0]
    },
    async sendFile(type, body) {
      const headers = { 'content-type': type }
      const question = { method: 'POST', path: filePath, headers, body, timeoutMs: publishMs, isKept: false }
      return publishedOf(await succeed(question))
    },
  }
}

const publishedOf = (reply: Reply): PublishedBundle => ({
  ...parseBody<ContentUploaded>(reply, ['uid']),
  isNew: reply.status === 201,
})

/** @throws Interrupted for a reply that asks to try again */
function passOn(reply: Reply): Reply {
  const retryAfterSec = Number(reply.headers['retry-after']) || 0
  if (reply.status === 429) throw new Refused(toFailure(reply), retryAfterSec)
  // Another edgehostctl has sent the rest, and publishes the upload now.
  const isBusy = errorOf(reply)?.code === 'UploadBusy'
  if (reply.status === 503 || reply.status === 408 || isBusy)
    throw new Interrupted(toFailure(reply), retryAfterSec)
  return reply
}

/** For a request that names an upload. */
function failureOf(reply: Reply): Failure {
  const failure = toFailure(reply)
  return errorOf(reply)?.code === 'NotFound' ? new UploadGone(failure.exitName, failure.message) : failure
}

function interrupt(error: unknown): never {
  if (error instanceof Failure && error.exitName !== 'unreachable') throw error
  if (error instanceof Failure) throw new Interrupted(error)
  if (error instanceof Interrupted) throw error
  throw new Interrupted(new Failure('unreachable', (error as Error).message, { cause: error }))
}
