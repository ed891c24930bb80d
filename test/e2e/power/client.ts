import { createHash } from 'node:crypto'
import { layoutMembers } from '../../support/layout-files.ts'
import type { TestLayout } from '../../support/layouts.ts'
import { rawTar } from '../../support/tar-bytes.ts'
import { form } from '../../support/upload-server.ts'
import { eventually } from '../host/eventually.ts'
import type { Answer, Daemon } from './daemon.ts'

/** A bundle that a test uploads. */
export interface Upload {
  readonly layout: TestLayout
  readonly indexDigest: string
  readonly via: 'file' | 'blobs'
  /** Whether its publication may have begun: of a file with its first byte. */
  isAsked: boolean
  /** The uid of an upload blob by blob, once it was answered. */
  uid: string | undefined
  /** Digests of blobs, with the bytes of each that were answered with 204. */
  readonly acknowledged: Map<string, number>
}

const uploadsPath = '/v1/edge-mgmt/content/uploads'
const filePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
export const bundlesPath = '/v1/edge-mgmt/content/bundles'

// A blob is sent in several requests.
const requestBytes = 400_000

export function planUpload(layout: TestLayout, via: Upload['via']): Upload {
  const indexDigest = `sha256:${createHash('sha256').update(layout.indexFile()).digest('hex')}`
  return { layout, indexDigest, via, isAsked: false, uid: undefined, acknowledged: new Map() }
}

/** Uploads a bundle, or what is missing of it. @returns the reply to its publication @throws the error of the connection */
export const sendUpload = (daemon: Daemon, upload: Upload): Promise<Answer> =>
  upload.via === 'file' ? sendFile(daemon, upload) : sendBlobs(daemon, upload)

async function sendFile(daemon: Daemon, upload: Upload): Promise<Answer> {
  const content = rawTar(layoutMembers(upload.layout))
  upload.isAsked = true
  return daemon.ask('POST', filePath, form({ name: 'uploadFile', fileName: 'bundle.tar', content }))
}

interface Missing {
  readonly digest: string
  readonly sizeBytes: number
  readonly heldBytes: number
}

/** The blobs that the daemon still needs. It answers 503 while it reads them again after a boot. */
export const missingOf = (daemon: Daemon, uid: string): Promise<Missing[]> =>
  eventually(async () => {
    const { status, text } = await daemon.ask('GET', `${uploadsPath}/${uid}/missing`)
    if (status !== 200) throw new Error(`${status} ${text}`)
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Missing)
  })

async function sendBlobs(daemon: Daemon, upload: Upload): Promise<Answer> {
  const { layout, acknowledged } = upload
  const begun = await daemon.ask(
    'POST',
    uploadsPath,
    form({ name: 'index', fileName: 'index.json', content: layout.indexFile() }),
  )
  if (![200, 201].includes(begun.status)) throw new Error(`${begun.status} ${begun.text}`)
  const { uid, isPublished } = begun.json as { uid: string; isPublished: boolean }
  if (isPublished) return begun
  upload.uid = uid
  for (;;) {
    const missing = await missingOf(daemon, uid)
    if (missing.length === 0) break
    for (const { digest, heldBytes } of missing) {
      const bytes = layout.blobs.get(digest.slice(7))
      if (!bytes) throw new Error(`${digest} is not in the bundle`)
      for (let at = heldBytes; at < bytes.length;) {
        const body = bytes.subarray(at, at + requestBytes)
        const range = `bytes ${at}-${at + body.length - 1}/${bytes.length}`
        const reply = await daemon.ask('PATCH', `${uploadsPath}/${uid}/blobs/${digest}`, {
          ...{ type: 'application/octet-stream', body },
          headers: { 'content-range': range },
        })
        // Of held bytes that a power cut has damaged the digest says so: the blob is sent again.
        if (reply.json?.code === 'DigestMismatch' && heldBytes > 0) break
        if (reply.status !== 204) throw new Error(`${digest}: ${reply.status} ${reply.text}`)
        at += body.length
        acknowledged.set(digest, at)
      }
    }
  }
  upload.isAsked = true
  return daemon.ask('POST', `${uploadsPath}/${uid}/actions/publish`)
}
