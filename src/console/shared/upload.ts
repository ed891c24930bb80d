// Upload of a bundle blob by blob, as `edgehostctl content upload` does it: the same file given again goes on where it was, also after a reload, a
// restart of the host, or from another machine, since the host says what it misses.
import { signal } from '@preact/signals'
import type { ContentUploadBegun, ContentUploaded, MissingContentBlob } from '../../content/schemas.ts'
import { change, open, RequestError, sendMeasured, textOf } from './request.ts'
import { keepSession } from './session.ts'
import { pause } from './stream.ts'
import { membersOf, NotTar } from './tar.ts'

const uploadsPath = '/v1/edge-mgmt/content/uploads'
const wholePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
const pieceBytes = 8 * 1024 * 1024

export interface Progress {
  readonly phase: 'reading' | 'sending' | 'publishing' | 'waiting' | 'paused' | 'done'
  readonly sent: number
  readonly total: number
  /** Bytes that the host had before. */
  readonly saved: number
  readonly bytesPerSecond: number
}

/** The files of a folder by their paths in it. */
export interface Folder {
  readonly name: string
  readonly files: ReadonlyMap<string, File>
}

/** What a user has chosen: an archive, or a folder with an OCI image layout. */
export type BundleSource = File | Folder

/** Whether an upload of it goes on where it stopped: what is packed is sent in one piece, since a browser cannot look into it. */
export const isResumable = (source: BundleSource): source is File | Folder =>
  'files' in source || !/\.(?:tar\.zst|tzst|tar\.gz|tgz)$/i.test(source.name)

/** Why an upload ended without success. */
export type UploadProblem = 'notTar' | 'noIndex' | 'incomplete' | RequestError

export interface RunningUpload {
  readonly source: BundleSource
  readonly signature: File | undefined
  readonly progress: Progress
  readonly problem?: UploadProblem
}

/** The upload of this page; it goes on while other pages are shown. */
export const upload = signal<RunningUpload | undefined>(undefined)

let control: AbortController | undefined
const none: Progress = { phase: 'reading', sent: 0, total: 0, saved: 0, bytesPerSecond: 0 }

class UploadFailure extends Error {
  readonly problem: 'noIndex' | 'incomplete'
  constructor(problem: 'noIndex' | 'incomplete') {
    super(problem)
    this.problem = problem
  }
}

const passing = new Set(['BlobBusy', 'UploadBusy', 'TooManyUploads', 'NotReady'])
const isPassing = (error: unknown): error is RequestError =>
  error instanceof RequestError &&
  ([0, 401, 416, 429, 502, 503].includes(error.status) || passing.has(error.code))

export const isUploading = (): boolean =>
  upload.value !== undefined && upload.value.problem === undefined && upload.value.progress.phase !== 'done'

/** Sends a file, and tries again while the host does not answer, until it is published, refused or paused. */
export async function beginUpload(source: BundleSource, signature?: File): Promise<void> {
  const stop = new AbortController()
  control = stop
  const isOver = () => stop.signal.aborted
  const release = keepSession()
  const warn = (event: BeforeUnloadEvent) => event.preventDefault()
  addEventListener('beforeunload', warn)
  upload.value = { source, signature, progress: none }
  let failures = 0
  try {
    while (!isOver())
      try {
        await (isResumable(source) ? sendBlobs : sendWhole)(source, signature, stop.signal, (progress) => {
          failures = 0
          upload.value = { source, signature, progress }
        })
        return
      } catch (error) {
        if (isOver()) return
        // All of what is packed would be sent again.
        if (!isPassing(error) || !isResumable(source)) {
          const progress = upload.value.progress
          upload.value = { source, signature, progress, problem: problemOf(error) }
          return
        }
        upload.value = {
          source,
          signature,
          progress: { ...upload.value.progress, phase: 'waiting', bytesPerSecond: 0 },
        }
        failures += 1
        const ms = Math.max(Math.min(1_000 * failures, 8_000), error.retryAfterSeconds * 1_000)
        await pause(ms, stop.signal)
      }
  } finally {
    removeEventListener('beforeunload', warn)
    release()
  }
}

function problemOf(error: unknown): UploadProblem {
  if (error instanceof RequestError) return error
  if (error instanceof NotTar) return 'notTar'
  if (error instanceof UploadFailure) return error.problem
  // The file was changed or removed meanwhile.
  if (error instanceof DOMException) return 'incomplete'
  throw error
}

export function pauseUpload(): void {
  control?.abort()
  if (upload.value)
    upload.value = {
      ...upload.value,
      progress: { ...upload.value.progress, phase: 'paused', bytesPerSecond: 0 },
    }
}

/** The upload ends, and nothing of what was packed is kept. */
export function endUpload(): void {
  control?.abort()
  dismissUpload()
}

/** The finished or refused upload is not shown any more. */
export const dismissUpload = (): void => {
  upload.value = undefined
}

/** The blob of a digest. */
const blobName = (digest: string) => `blobs/sha256/${digest.slice('sha256:'.length)}`

/** The regular files of a bundle by their paths. @throws NotTar */
async function filesOf(source: BundleSource): Promise<ReadonlyMap<string, Blob>> {
  if ('files' in source) return source.files
  const found = new Map<string, Blob>()
  for await (const { name, offset, size } of membersOf(source))
    found.set(name, source.slice(offset, offset + size))
  return found
}

/** What is packed, in one request. */
async function sendWhole(
  source: BundleSource,
  signature: File | undefined,
  stop: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  if (!(source instanceof File)) throw new TypeError('a folder is sent by its files')
  const speed = createSpeed()
  const total = source.size
  const report = (phase: Progress['phase'], sent: number) =>
    onProgress({ phase, sent: Math.min(sent, total), total, saved: 0, bytesPerSecond: speed(sent) })
  const form = new FormData()
  if (signature) form.append('signature', signature, 'signature')
  form.append('uploadFile', source, source.name)
  await sendMeasured(wholePath, {
    method: 'POST',
    body: form,
    signal: stop,
    onBytes: (sent, all) => report(sent < all ? 'sending' : 'publishing', sent),
  })
  report('done', total)
}

async function sendBlobs(
  source: BundleSource,
  signature: File | undefined,
  stop: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const speed = createSpeed()
  let { sent, total, saved } = none
  const report = (phase: Progress['phase'], more = 0) =>
    onProgress({ phase, sent: sent + more, total, saved, bytesPerSecond: speed(sent + more) })
  report('reading')
  const files = await filesOf(source)
  const index = files.get('index.json')
  if (!index) throw new UploadFailure('noIndex')
  for (const [name, { size }] of files) if (name.startsWith('blobs/')) total += size
  const bytesOf = (file: Blob, from = 0, to = file.size) => file.slice(from, to, 'application/octet-stream')

  const form = new FormData()
  form.append('name', source.name.replace(/\.tar$/, ''))
  if (signature) form.append('signature', signature, 'signature')
  form.append('index', bytesOf(index), 'index.json')
  const begun = await change<ContentUploadBegun>('POST', uploadsPath, form, { signal: stop })
  if (begun.isPublished) {
    saved = total
    sent = total
    report('done')
    return
  }
  const path = `${uploadsPath}/${begun.uid}`
  for (let round = 0; ; round += 1) {
    const missing = await readMissing(path, stop)
    const mine = missing.flatMap((blob) => {
      const file = files.get(blobName(blob.digest))
      return file ? [{ blob, file }] : []
    })
    if (mine.length === 0) {
      if (missing.some(({ isOptional }) => !isOptional)) throw new UploadFailure('incomplete')
      break
    }
    const left = mine.reduce((sum, { blob }) => sum + blob.sizeBytes - blob.heldBytes, 0)
    // Manifests name further blobs, so only after them it is known how much the host has.
    const documents = mine.filter(({ blob }) => blob.isManifest)
    if (documents.length === 0 && saved === 0) saved = Math.max(0, total - left - sent)
    if (documents.length === 0) sent = total - left
    for (const { blob, file } of documents.length > 0 ? documents : mine)
      for (let from = blob.heldBytes; from < blob.sizeBytes; from += pieceBytes) {
        const to = Math.min(from + pieceBytes, blob.sizeBytes)
        const range = `bytes ${from}-${to - 1}/${blob.sizeBytes}`
        await sendMeasured(`${path}/blobs/${blob.digest}`, {
          method: 'PATCH',
          body: bytesOf(file, from, to),
          headers: { 'content-type': 'application/octet-stream', 'content-range': range },
          signal: stop,
          timeoutMs: 120_000,
          onBytes: (bytes) => report('sending', bytes),
        })
        sent = Math.min(total, sent + to - from)
        report('sending')
      }
  }
  report('publishing')
  await change<ContentUploaded>('POST', `${path}/actions/publish`, undefined, {
    signal: stop,
    timeoutMs: 30 * 60_000,
  })
  sent = total
  report('done')
}

async function readMissing(path: string, stop: AbortSignal): Promise<MissingContentBlob[]> {
  const reply = await open(`${path}/missing`, { signal: stop, timeoutMs: 60_000 })
  const lines = (await textOf(reply, stop)).split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as MissingContentBlob)
}

/** Bytes a second over the last five seconds. */
function createSpeed(): (sent: number) => number {
  const points: { at: number; sent: number }[] = []
  return (sent) => {
    const at = performance.now()
    points.push({ at, sent })
    while (points.length > 2 && at - (points[0]?.at ?? at) > 5_000) points.shift()
    const [first] = points
    return first && at > first.at ? ((sent - first.sent) / (at - first.at)) * 1_000 : 0
  }
}
