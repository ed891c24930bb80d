import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { stoppingError } from '../../errors/stopping.ts'
import { refuseFull } from '../../errors/system-reason.ts'
import type { Logger } from '../../system/log.ts'
import { isThere } from '../../system/files.ts'
import { uploadErrors } from '../../upload/codes.ts'
import {
  fingerprintOf,
  type SigningKey,
  createSignatureCheck,
  readSignature,
  requireSignature,
} from '../../upload/signing.ts'
import { contentErrors, bundleErrors } from '../codes.ts'
import { digestOf } from '../format/descriptor.ts'
import type { ContentProgram } from '../program/content-program.ts'
import type { ContentStore, Published, StagedUpload } from '../store/content-store.ts'
import { openBlobUpload, type BlobUpload, type MissingBlob, createDocuments } from './blob-upload.ts'
import { type ByteRange, hasIndex, newestChange, removeEmptied } from './part.ts'
import { type RunningUpload, type UploadPhase, readNote, writeNote, type UploadNote } from './upload-note.ts'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { labelOf } from '../../upload/file-label.ts'
import { secondPart, signatureField, type UploadPart } from '../../upload/receive.ts'
import { bundleLimits } from '../format/refusal.ts'

interface BlobUploadsOptions {
  readonly store: ContentStore
  readonly program: ContentProgram
  /** Boot of the kernel: blobs written in another boot are not trusted. */
  readonly bootId: string
  readonly signingKey: SigningKey | undefined
  /** Unfinished uploads that are kept. */
  readonly maximum: number
  /** Milliseconds without a byte after which an upload is forgotten. */
  readonly keptMs: number
  readonly now: () => number
  readonly monotonic: () => number
  readonly log: Logger
}

/** The index that a client has posted; a signature has been checked. */
interface PostedIndex {
  readonly bytes: Buffer
  readonly name: string
}

/** A started upload, or the bundle that has its index, and all that it names, already. */
interface Started {
  readonly uid: string
  readonly isNew: boolean
  readonly isPublished: boolean
}

/** Uploads blob by blob. All verbs wait until the store is open and the uploads of a stopped daemon are read. */
export interface BlobUploads {
  /** Opens the store and reads the uploads of a stopped daemon; the other verbs wait for it. */
  ready(): Promise<void>
  /** @throws AppError BundleInvalid, TooManyUploads, StorageFull; the reason of the signal, before there is an upload */
  begin(posted: PostedIndex, signal: AbortSignal): Promise<Started>
  list(): Promise<readonly RunningUpload[]>
  /** @throws AppError NotFound, NotReady while held blobs are read again */
  missing(uid: string): Promise<Iterable<MissingBlob>>
  /** @returns the bytes held of the blob @throws as `BlobUpload.append` */
  append(order: {
    readonly uid: string
    readonly digest: string
    readonly range: ByteRange
    readonly body: IncomingMessage
    readonly signal: AbortSignal
  }): Promise<number>
  /**
   * @param signal ends the wait with its reason, and the publication unless another caller waits for it too; the upload then stays
   * @throws AppError NotFound, BlobsMissing, and the refusal of the bundle
   */
  publish(uid: string, signal: AbortSignal): Promise<Published>
  /** @throws AppError NotFound, UploadBusy while it is published; the reason of the signal, before anything is removed */
  remove(uid: string, signal: AbortSignal): Promise<void>
  /** Number of uploads of which something arrives, or that are published: others only wait for their clients, and go on after a restart. */
  movingCount(): number
  /** Removes uploads of which nothing has arrived for long. */
  forgetSilent(): Promise<void>
  /** Ends requests that are being received; arrived bytes are kept. */
  stop(): Promise<void>
}

/** An upload in memory. */
interface Entry {
  readonly staged: StagedUpload
  readonly note: UploadNote
  /** Undefined while held bytes are read again after a restart of the host. */
  upload: BlobUpload | undefined
  phase: UploadPhase
  publishing: Publication | undefined
}

/** A publication under way; it ends when the sessions of all who wait for it have ended. */
interface Publication {
  readonly published: Promise<Published>
  readonly end: AbortController
  readonly waiting: Set<AbortSignal>
}

// Memory: each holds up to a megabyte.
const mostRequests = 32
const shownMissing = 20

export function createBlobUploads(options: BlobUploadsOptions): BlobUploads {
  const { store, program, bootId, signingKey, maximum, keptMs, now, monotonic, log } = options
  const entries = new Map<string, Entry>()
  /** Uploads that are being started, by the digest of their index. */
  const beginning = new Map<string, Promise<Started>>()
  const stopping = new AbortController()
  const documents = createDocuments(program)
  const signedBy = signingKey ? fingerprintOf(signingKey) : ''
  let loaded: Promise<void> | undefined
  /** Uploads that are read again after a restart of the host. */
  let checking: Promise<unknown> = Promise.resolve()

  /** Reads the uploads of a stopped daemon, once; after a failure the next call tries again. */
  function load(): Promise<void> {
    loaded ??= loadAll().catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    return loaded
  }

  async function loadAll(): Promise<void> {
    await store.open()
    for (const staged of await store.listStaged()) await loadOne(staged)
  }

  async function loadOne(staged: StagedUpload): Promise<void> {
    const note = await readNote(staged.folder)
    // A file cannot continue where it stopped, and a key that came later has not verified uploads started before.
    const isUsable = note?.kind === 'blobs' && (signingKey === undefined || note.signedBy === signedBy)
    // A client that asks for a damaged upload begins a new one.
    if (!note || !isUsable || !(await hasIndex(staged, note.indexDigest))) return store.removeStaged(staged)
    const entry: Entry = { staged, note, upload: undefined, phase: 'checking', publishing: undefined }
    entries.set(staged.uid, entry)
    const opened = note.bootId === bootId ? openEntry(entry) : openAfterBoot(entry)
    const handled = opened.catch(async (error: unknown) => {
      stopping.signal.throwIfAborted()
      entries.delete(staged.uid)
      const reason = { err: error, upload: staged.uid }
      if (!isUnusable(error)) {
        log.error(reason, 'an unfinished upload of content cannot be read; it is kept for the next start')
        return
      }
      log.warn(reason, 'an unfinished upload of content cannot be used and is removed')
      await store.removeStaged(staged)
    })
    if (note.bootId === bootId) return handled
    // This may take minutes.
    checking = Promise.all([checking, handled.catch(() => undefined)])
  }

  const blobsBeside = (uid: string) => () => {
    let count = 0
    for (const { staged, upload } of entries.values())
      if (staged.uid !== uid) count += upload?.blobCount() ?? 0
    return count
  }

  async function openEntry(entry: Entry): Promise<void> {
    const { staged, note } = entry
    const upload = await openBlobUpload({
      upload: staged,
      note,
      indexDigest: note.indexDigest,
      store,
      now,
      monotonic,
      documents,
      otherBlobs: blobsBeside(staged.uid),
      lastActivityAt: await newestChange(staged),
    })
    // If it does not fit any more, the next blob is refused.
    await store.space.reserve(staged.uid, upload.progress().missingBytes).catch(() => undefined)
    entry.upload = upload
    entry.phase = 'receiving'
  }

  /** Hashes whole blobs again, since a power cut may have emptied them; those that differ are removed. */
  async function openAfterBoot(entry: Entry): Promise<void> {
    await removeEmptied(entry.staged, stopping.signal)
    await writeNote(entry.staged.folder, { ...entry.note, bootId })
    await openEntry(entry)
  }

  function find(uid: string): Entry {
    const entry = entries.get(uid)
    if (entry) return entry
    throw new AppError(
      generalErrors.NotFound,
      'there is no such upload; it was published, deleted or forgotten: GET /v1/edge-mgmt/content/uploads lists them',
    )
  }

  /** @throws AppError NotFound, NotReady */
  function findOpen(uid: string): Entry & { readonly upload: BlobUpload } {
    const entry = find(uid)
    if (entry.upload) return entry as Entry & { readonly upload: BlobUpload }
    throw new AppError(
      generalErrors.NotReady,
      'the blobs that the host has of this upload are read again after its restart; try again in a few seconds',
      { retryAfterSec: 5 },
    )
  }

  const findByIndex = (indexDigest: string) =>
    [...entries.values()].find(({ note }) => note.indexDigest === indexDigest)

  async function beginNew({ bytes, name }: PostedIndex, indexDigest: string): Promise<Started> {
    const running = findByIndex(indexDigest)
    if (running) return { uid: running.staged.uid, isNew: false, isPublished: false }
    const bundle = store.findBundleByIndex(indexDigest)
    // A bundle that lacks the image of a platform may get it.
    const hasAll = bundle?.lackingBlobs === undefined
    // An operator uploads it again where something is wrong with it, and nothing would be sent.
    if (bundle && hasAll) await store.rereadBundle(bundle, stopping.signal)
    if (bundle && hasAll && store.isWhole(bundle)) return { uid: bundle.uid, isNew: false, isPublished: true }
    if (entries.size + beginning.size >= maximum)
      throw new AppError(
        uploadErrors.TooManyUploads,
        `${entries.size} uploads are unfinished; finish one, or delete one: GET /v1/edge-mgmt/content/uploads lists them`,
        { retryAfterSec: 30 },
      )
    const staged = await store.stage()
    try {
      await writeFile(join(staged.folder, 'index.json'), bytes, { mode: 0o600 }).catch(refuseFull)
      const createdAt = now()
      const note = { kind: 'blobs' as const, name, fileName: '', indexDigest, createdAt, bootId, signedBy }
      const upload = await openBlobUpload({
        upload: staged,
        note,
        indexDigest,
        store,
        now,
        monotonic,
        lastActivityAt: createdAt,
        documents,
        otherBlobs: blobsBeside(staged.uid),
      })
      await writeNote(staged.folder, note)
      entries.set(staged.uid, { staged, note, upload, phase: 'receiving', publishing: undefined })
      return { uid: staged.uid, isNew: true, isPublished: false }
    } catch (error) {
      await store.removeStaged(staged)
      throw error
    }
  }

  async function loseDamaged({ staged, upload }: Entry & { readonly upload: BlobUpload }): Promise<void> {
    for (const digest of await store.dropDamaged(staged)) upload.lose(digest)
  }

  async function publishNow(
    entry: Entry & { readonly upload: BlobUpload },
    signal: AbortSignal,
  ): Promise<Published> {
    const { staged, note, upload } = entry
    const { uid, folder } = staged
    const { name, indexDigest } = note
    await loseDamaged(entry)
    const { missingBlobs, missingBytes } = upload.progress()
    if (missingBlobs > 0) throw blobsMissing(upload, missingBlobs, missingBytes)
    await upload.pause(busy())
    try {
      signal.throwIfAborted()
      const publishedAt = now()
      entry.phase = 'checking'
      const file = { fileName: '', fileSizeBytes: 0, fileSha256: '' }
      const bundle = { uid, name, publishedAt, via: 'blobs' as const, ...file }
      const published = await store.publish(staged, {
        indexDigest,
        bundle,
        signal,
        async examine(facts) {
          const examined = await program.examine({ upload: folder, bundle: facts }, { signal })
          entry.phase = 'publishing'
          return examined
        },
      })
      entries.delete(uid)
      store.space.release(uid)
      return published
    } finally {
      upload.resume()
    }
  }

  function beginPublication(entry: Entry & { readonly upload: BlobUpload }): Publication {
    const end = new AbortController()
    const published = publishNow(entry, AbortSignal.any([stopping.signal, end.signal])).finally(() => {
      entry.publishing = undefined
      entry.phase = 'receiving'
    })
    return { published, end, waiting: new Set() }
  }

  async function removeEntry({ staged, upload }: Entry): Promise<void> {
    entries.delete(staged.uid)
    await upload?.pause(new AppError(generalErrors.NotFound, 'the upload was deleted'))
    await store.removeStaged(staged)
    store.space.release(staged.uid)
  }

  return {
    ready: load,
    async begin(posted, signal) {
      await load()
      const indexDigest = digestOf(posted.bytes)
      await store.open()
      signal.throwIfAborted()
      const running = findByIndex(indexDigest)
      // An operator may have removed it, or another disk is mounted.
      if (running && !(await isThere(running.staged.folder))) await removeEntry(running)
      const known = beginning.get(indexDigest)
      if (known) return { ...(await known), isNew: false }
      const started = beginNew(posted, indexDigest)
      beginning.set(indexDigest, started)
      return started.finally(() => beginning.delete(indexDigest))
    },
    async list() {
      await load()
      return [...entries.values()].map(viewOf)
    },
    async missing(uid) {
      await load()
      const entry = findOpen(uid)
      await loseDamaged(entry)
      return entry.upload.missing()
    },
    async append({ uid, digest, range, body, signal }) {
      await load()
      const { upload } = findOpen(uid)
      let requests = 0
      for (const each of entries.values()) requests += each.upload?.appendingCount() ?? 0
      if (requests >= mostRequests)
        throw new AppError(
          uploadErrors.TooManyUploads,
          `${mostRequests} requests are sending blobs already; use fewer connections`,
          { retryAfterSec: 1 },
        )
      return upload.append(digest, range, body, signal)
    },
    async publish(uid, signal) {
      await load()
      // One whose callers have gone is taken back first.
      const ending = entries.get(uid)?.publishing
      if (ending?.end.signal.aborted) await ending.published.catch(() => undefined)
      signal.throwIfAborted()
      const bundle = entries.has(uid) ? undefined : store.findBundle(uid)
      // The reply to the first request may have been lost.
      if (bundle) return { bundle, isNew: false, addedBlobs: 0, damagedBlobs: 0 }
      const entry = findOpen(uid)
      const publication = (entry.publishing ??= beginPublication(entry))
      return waitWith(publication, signal)
    },
    async remove(uid, signal) {
      await load()
      signal.throwIfAborted()
      const entry = findOpen(uid)
      if (entry.publishing) throw busy()
      await removeEntry(entry)
    },
    movingCount: () =>
      [...entries.values()].filter(
        ({ upload, publishing }) => publishing !== undefined || (upload?.appendingCount() ?? 0) > 0,
      ).length,
    async forgetSilent() {
      await load()
      for (const entry of [...entries.values()]) {
        const { upload, publishing, staged } = entry
        if (!upload || publishing || upload.appendingCount() > 0) continue
        if (now() - upload.lastActivityAt() < keptMs) continue
        log.info(
          { upload: staged.uid },
          'an upload of content is forgotten: nothing of it has arrived for long',
        )
        await removeEntry(entry)
      }
    },
    async stop() {
      const reason = stoppingError('continue the upload', 5)
      stopping.abort(reason)
      const all = [...entries.values()].flatMap(({ upload, publishing }) => [
        upload?.pause(reason),
        publishing?.published,
      ])
      await Promise.allSettled([...all, loaded, checking])
    },
  }
}

/** Whether an upload breaks a rule of bundles or lacks a file, not only the disk or the memory failed. */
const isUnusable = (error: unknown) =>
  error instanceof AppError ? error.kind.status === 400 : (error as NodeJS.ErrnoException).code === 'ENOENT'

function viewOf({ staged, note, upload, phase }: Entry): RunningUpload {
  const same = { uid: staged.uid, kind: 'blobs' as const, name: note.name, phase, startedAt: note.createdAt }
  if (!upload) {
    const unknown = { totalBytes: undefined, missingBytes: undefined, remainingSeconds: undefined }
    return { ...same, ...unknown, receivedBytes: 0, lastActivityAt: note.createdAt }
  }
  const { receivedBytes, totalBytes, missingBytes, remainingSeconds } = upload.progress()
  return {
    ...same,
    receivedBytes,
    totalBytes,
    missingBytes,
    remainingSeconds,
    lastActivityAt: upload.lastActivityAt(),
  }
}

/** Waits for a publication as long as the session of the caller lasts; the last caller whose session ends takes it along. */
async function waitWith({ published, end, waiting }: Publication, signal: AbortSignal): Promise<Published> {
  const leave = Promise.withResolvers<never>()
  waiting.add(signal)
  const onEnd = () => {
    waiting.delete(signal)
    if (waiting.size > 0) leave.reject(signal.reason as AppError)
    // Its work is undone before the reply.
    else end.abort(signal.reason)
  }
  signal.addEventListener('abort', onEnd, { once: true })
  try {
    return await Promise.race([published, leave.promise])
  } finally {
    signal.removeEventListener('abort', onEnd)
    waiting.delete(signal)
  }
}

const busy = () =>
  new AppError(contentErrors.UploadBusy, 'the upload is being published; wait until that has ended', {
    retryAfterSec: 5,
  })

function blobsMissing(upload: BlobUpload, missingBlobs: number, missingBytes: number): AppError {
  const missing: string[] = []
  for (const { digest, isOptional } of upload.missing()) {
    if (missing.length >= shownMissing) break
    if (!isOptional) missing.push(digest)
  }
  return new AppError(
    contentErrors.BlobsMissing,
    `${missingBlobs} blobs are missing, ${missingBytes} bytes; GET /v1/edge-mgmt/content/uploads/${upload.uid}/missing lists them`,
    { details: { missingBlobs, missingBytes, missing } },
  )
}

/** The part with the bytes of index.json. */
export const indexField = 'index'
const nameField = 'name'
const nameBytes = 1_024

/**
 * Reads the form that begins an upload. With a signing key the signature is verified before anything else reads the index.
 * @throws AppError BadRequest, BundleTooLarge, SignatureMissing, SignatureInvalid
 */
export async function receiveIndex(
  parts: AsyncIterable<UploadPart>,
  signingKey: SigningKey | undefined,
): Promise<PostedIndex> {
  let bytes: Buffer | undefined
  let signature: Buffer | undefined
  let name: string | undefined
  for await (const { fieldName, content } of parts) {
    if (fieldName === indexField) {
      if (bytes) throw secondPart(indexField)
      bytes = await readAll(content, bundleLimits.indexFileBytes, indexTooLarge)
    } else if (fieldName === nameField) {
      if (name !== undefined) throw secondPart(nameField)
      name = labelOf((await readAll(content, nameBytes, nameTooLong)).toString())
    } else if (fieldName === signatureField) {
      if (signature) throw secondPart(signatureField)
      signature = await readSignature(content)
    }
  }
  if (!bytes)
    throw new AppError(
      generalErrors.BadRequest,
      `the form has no part ${indexField}; send the bytes of the index.json of the bundle as ${indexField}`,
      { details: { field: indexField } },
    )
  if (signingKey) {
    const check = createSignatureCheck(signingKey)
    check.update(bytes)
    requireSignature(check, signature)
  }
  return { bytes, name: name ?? '' }
}

async function readAll(
  content: AsyncIterable<Buffer>,
  limitBytes: number,
  tooLarge: () => AppError,
): Promise<Buffer> {
  const buffer = createGrowingBuffer(limitBytes)
  for await (const chunk of content) if (!buffer.add(chunk)) throw tooLarge()
  return buffer.bytes()
}

const indexTooLarge = () =>
  new AppError(
    bundleErrors.BundleTooLarge,
    `index.json has more than the ${bundleLimits.indexFileBytes} bytes that are allowed; split the bundle`,
    { details: { reason: 'IndexTooLarge', place: 'index.json' } },
  )

const nameTooLong = () =>
  new AppError(generalErrors.BadRequest, `name has more than ${nameBytes} bytes`, {
    details: { field: nameField },
  })
