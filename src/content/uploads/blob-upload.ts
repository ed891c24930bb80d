import { readFile, stat, writeFile, opendir, rename, rm } from 'node:fs/promises'
import type { ContentProgram } from '../program/content-program.ts'
import { createLock, type Lock } from '../../base/lock.ts'
import {
  namedByDocument,
  namedByIndexFile,
  type NamedBlob,
  type Wanted,
  type WantedBlob,
  createWanted,
} from './wanted.ts'
import { join } from 'node:path'
import { createSlices } from '../../base/slices.ts'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull, storageFull } from '../../errors/system-reason.ts'
import { uploadErrors } from '../../upload/codes.ts'
import { bundleLimits, refuseBundle } from '../format/refusal.ts'
import type { ContentStore, StagedUpload } from '../store/content-store.ts'
import { hexOf } from '../store/folder.ts'
import type { IncomingMessage } from 'node:http'
import { generalErrors } from '../../errors/codes.ts'
import { letBuffersGo } from '../../upload/buffer-garbage.ts'
import { readBody } from '../../upload/raw-body.ts'
import { contentErrors } from '../codes.ts'
import { requireRange, type ByteRange, emptyHeld, openPart, readHeld, type Held } from './part.ts'
import { createPace, type UploadNote } from './upload-note.ts'

/**
 * Reads index.json and the documents of uploads. The names in a large one are parsed as they are iterated, so that the caller can let other
 * work run meanwhile and no list of it is in memory.
 */
interface Documents {
  /** The names in one document may take some megabytes, so all uploads take turns. */
  readonly inTurn: Lock
  /** The blobs that index.json names. @throws AppError where it breaks a rule of bundles */
  readIndexFile(file: string): Promise<Iterable<NamedBlob>>
  /** The blobs that an index or a manifest names. @param file whose bytes have its digest @throws AppError as `readIndexFile` */
  read(document: NamedBlob, file: string): Promise<Iterable<NamedBlob>>
}

// JSON.parse stops the event loop, and needs up to 20 times the bytes of the worst JSON: a larger document goes to the program.
const smallBytes = 262_144

export function createDocuments(program: Pick<ContentProgram, 'name'>): Documents {
  return {
    inTurn: createLock(),
    async readIndexFile(file) {
      const { size } = await stat(file)
      if (size <= smallBytes) return namedByIndexFile(await readFile(file))
      return parseLines((await program.name({ file })).lines)
    },
    async read(document, file) {
      if (document.sizeBytes <= smallBytes) return namedByDocument(document, await readFile(file))
      const { digest, sizeBytes, documentType, isOptional } = document
      return parseLines(
        (await program.name({ file, document: { digest, sizeBytes, documentType, isOptional } })).lines,
      )
    },
  }
}

/** @param lines a line of JSON for each */
function* parseLines(lines: string): Generator<NamedBlob> {
  for (let at = 0; at < lines.length;) {
    const end = lines.indexOf('\n', at)
    yield JSON.parse(lines.slice(at, end)) as NamedBlob
    at = end + 1
  }
}

interface LearnOptions {
  readonly upload: StagedUpload
  readonly store: Pick<ContentStore, 'hasBlob' | 'linkBlobs'>
  readonly documents: Documents
  /** Gets the blobs that are named. */
  readonly wanted: Wanted
  /** Blobs that all other uploads name: each takes memory. */
  readonly otherBlobs: () => number
}

const linkedAtOnce = 500
const emptyDigest = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/**
 * Takes in the blobs that a document names. Those that the upload or the store has count as received; documents among them are read too.
 * @returns a function; its `present` are sizes of whole blobs of the upload, by digest. It throws AppError where the bundle breaks a rule,
 * and TooManyUploads
 */
function createLearn({ upload, store, documents, wanted, otherBlobs }: LearnOptions) {
  const wholeFile = (digest: string) => join(upload.folder, 'blobs', hexOf(digest))

  async function learn(named: Iterable<NamedBlob>, present: ReadonlyMap<string, number>): Promise<void> {
    const slice = createSlices()
    const unread: WantedBlob[] = []
    for (let batch = named; ;) {
      const unknown: WantedBlob[] = []
      for (const each of batch) {
        await slice()
        if (!wanted.find(each.digest)) requireFewBlobs(wanted.count + 1)
        const blob = wanted.add(each)
        if (blob) unknown.push(blob)
        requireSameSize(each)
      }
      const whole = await takePresent(unknown, present)
      unread.push(...whole.filter(({ documentType }) => documentType !== undefined))
      const next = unread.pop()
      if (!next) return
      batch = await documents.read(next, wholeFile(next.digest))
    }
  }

  function requireFewBlobs(count: number): void {
    const most = bundleLimits.blobs
    if (count > most)
      throw refuseBundle('TooManyBlobs', 'index.json', `names more than the ${most} blobs that are allowed`)
    if (count + otherBlobs() > most)
      throw new AppError(
        uploadErrors.TooManyUploads,
        `the unfinished uploads name more than ${most} blobs; finish one, or delete one: GET /v1/edge-mgmt/content/uploads lists them`,
        { retryAfterSec: 30 },
      )
  }

  function requireSameSize({ digest, sizeBytes }: NamedBlob): void {
    const known = wanted.find(digest)?.sizeBytes
    if (known !== undefined && known !== sizeBytes)
      throw refuseBundle(
        'SizeDiffers',
        digest,
        `is named with ${known} and with ${sizeBytes} bytes; build the bundle again`,
      )
  }

  /** Counts blobs that are on the disk already, and links blobs of the store. @returns the blobs that are whole */
  async function takePresent(blobs: readonly WantedBlob[], present: ReadonlyMap<string, number>) {
    const whole: WantedBlob[] = []
    const slice = createSlices()
    let linkable: string[] = []
    const link = async () => {
      for (const digest of await store.linkBlobs(upload, linkable)) {
        const blob = wanted.find(digest)
        if (!blob) continue
        requireSameSize({ ...blob, sizeBytes: (await stat(wholeFile(digest))).size })
        wanted.hold(blob, blob.sizeBytes, true)
        whole.push(blob)
      }
      linkable = []
    }
    for (const blob of blobs) {
      await slice()
      const { digest, sizeBytes } = blob
      const isEmpty = sizeBytes === 0 && digest === emptyDigest
      if (isEmpty) await writeFile(wholeFile(digest), '', { mode: 0o600 }).catch(refuseFull)
      if (blob.isWhole) whole.push(blob)
      else if (present.get(digest) === sizeBytes || isEmpty) {
        wanted.hold(blob, sizeBytes, true)
        whole.push(blob)
      } else if (store.hasBlob(digest)) linkable.push(digest)
      if (linkable.length >= linkedAtOnce) await link()
    }
    if (linkable.length > 0) await link()
    return whole
  }

  return learn
}

/** A blob that is still to be sent, as the API says it. */
export interface MissingBlob {
  readonly digest: string
  readonly sizeBytes: number
  /** Bytes held: the offset at which the next PATCH begins. */
  readonly heldBytes: number
  /** An index or a manifest, which names further blobs. */
  readonly isManifest: boolean
  /** Whether the bundle may be published without it. */
  readonly isOptional: boolean
}

/** Progress of an upload. */
interface BlobProgress {
  readonly receivedBytes: number
  readonly totalBytes: number
  readonly missingBytes: number
  readonly missingBlobs: number
  readonly remainingSeconds: number | undefined
}

/** A bundle that is received blob by blob: the files of its folder, and an index of them in memory. */
export interface BlobUpload extends StagedUpload {
  readonly note: UploadNote
  readonly indexDigest: string
  /** Milliseconds since 1970, UTC. */
  lastActivityAt(): number
  progress(): BlobProgress
  /** Counts a blob as missing again. */
  lose(digest: string): void
  /** Blobs that it names. */
  blobCount(): number
  missing(): Iterable<MissingBlob>
  /**
   * Appends the body of a request to a blob.
   * @returns the bytes held of it then
   * @throws AppError NotFound, BlobBusy, WrongOffset, DigestMismatch, StorageFull, BundleInvalid for a manifest; the refusal
   * of the body. Arrived bytes are kept, except of a blob whose digest differs
   */
  append(digest: string, range: ByteRange, body: IncomingMessage, signal: AbortSignal): Promise<number>
  /** Requests that are appending now. */
  appendingCount(): number
  /** Refuses bodies that are being received or come later, with a reason; resolves when nothing is written any more. */
  pause(reason: AppError): Promise<void>
  /** Receives again. */
  resume(): void
}

interface BlobUploadOptions {
  readonly upload: StagedUpload
  readonly note: UploadNote
  readonly indexDigest: string
  readonly store: ContentStore
  readonly documents: Documents
  /** Blobs that all other uploads name: each takes memory. */
  readonly otherBlobs: () => number
  /** Milliseconds since 1970, UTC. */
  readonly now: () => number
  readonly monotonic: () => number
  readonly lastActivityAt: number
}

// The room is reserved again after so many bytes, so that written bytes do not count twice.
const betweenChecksBytes = 8_388_608
// A state of SHA-256 takes about a kilobyte; a part without one is read again.
const mostHashes = 64

/**
 * Opens the folder of an upload.
 * @throws AppError where its index or a manifest breaks a rule of bundles
 */
export async function openBlobUpload(options: BlobUploadOptions): Promise<BlobUpload> {
  const { upload, note, indexDigest, store, documents, otherBlobs, now, monotonic } = options
  const { uid, folder } = upload
  const wanted = createWanted()
  const learn = createLearn({ upload, store, documents, wanted, otherBlobs })
  const pace = createPace(monotonic)
  /** Requests that append, by digest. */
  const appending = new Map<string, { readonly stop: AbortController; readonly received: Promise<number> }>()
  /** Why nothing is received now. */
  let paused: AppError | undefined
  /** States of unfinished parts, the one used last at the end. */
  const hashes = new Map<string, Held>()
  let lastActivityAt = options.lastActivityAt
  /** Whether the blobs that are no documents have room; until then only room for documents is reserved. */
  let isReserved = false

  const wholeFile = (digest: string) => join(folder, 'blobs', hexOf(digest))
  const partFile = (digest: string) => join(folder, 'parts', hexOf(digest))

  function keepHash(digest: string, held: Held): void {
    hashes.delete(digest)
    hashes.set(digest, held)
    const [oldest] = hashes.keys()
    if (hashes.size > mostHashes && oldest !== undefined) hashes.delete(oldest)
  }

  /** The held bytes of a blob with their hash, which only the caller may continue. */
  async function takeHeld({ digest, heldBytes }: WantedBlob, signal: AbortSignal): Promise<Held> {
    const known = hashes.get(digest)
    hashes.delete(digest)
    if (known) return known
    return heldBytes === 0 ? emptyHeld() : readHeld(partFile(digest), signal)
  }

  /** @throws AppError StorageFull with the bytes that are missing for all blobs, or for the documents while only these are sent */
  async function reserve(blob: WantedBlob): Promise<void> {
    if (blob.documentType === undefined) isReserved = true
    const needed = isReserved ? wanted.missingBytes : wanted.missingDocumentBytes
    // An optional blob is needed as soon as it is sent.
    const optionalBytes = blob.isOptional && !blob.isWhole ? blob.sizeBytes - blob.heldBytes : 0
    await store.space.reserve(uid, needed + optionalBytes)
  }

  async function receive(blob: WantedBlob, range: ByteRange, body: IncomingMessage, signal: AbortSignal) {
    const { digest, sizeBytes } = blob
    await reserve(blob)
    let checkedAt = blob.heldBytes
    const part = await openPart({
      file: partFile(digest),
      held: await takeHeld(blob, signal),
      async onWritten(heldBytes) {
        pace.add(heldBytes - blob.heldBytes)
        wanted.hold(blob, heldBytes, false)
        lastActivityAt = now()
        if (heldBytes < checkedAt + betweenChecksBytes) return
        checkedAt = heldBytes
        await reserve(blob)
        // Other programs write too.
        const freeBytes = await store.space.freeBytes()
        if (freeBytes < 0) throw storageFull(-freeBytes)
      },
    })
    let left = range.lengthBytes
    let refusal: { readonly error: unknown } | undefined
    try {
      await readBody(
        body,
        (chunk) => {
          left -= chunk.length
          if (left < 0) throw tooLong(range)
          letBuffersGo(chunk.length)
          return part.write(chunk)
        },
        signal,
      )
      if (left > 0) throw tooShort(range, left)
    } catch (error) {
      refusal = { error }
    }
    let held: Held
    try {
      held = await part.finish()
    } catch (error) {
      // The written part of the last batch is not known.
      wanted.hold(blob, (await stat(partFile(digest))).size, false)
      throw refusal?.error ?? error
    }
    if (refusal === undefined && held.sizeBytes === sizeBytes) await complete(blob, held)
    else keepHash(digest, held)
    // Written bytes are not reserved any more. The next request does the same, so a small blob needs no check of the disk.
    if (sizeBytes >= betweenChecksBytes) await reserve(blob).catch(() => undefined)
    if (refusal) throw refusal.error
    return held.sizeBytes
  }

  async function complete(blob: WantedBlob, { hash }: Held): Promise<void> {
    const { digest, sizeBytes } = blob
    const found = `sha256:${hash.digest('hex')}`
    if (found !== digest) {
      await drop(blob)
      throw new AppError(
        contentErrors.DigestMismatch,
        `the ${sizeBytes} bytes have the digest ${found}, not ${digest}; they were thrown away: send the blob again from its beginning`,
        { details: { field: 'digest', found } },
      )
    }
    try {
      if (blob.documentType !== undefined)
        await documents.inTurn(async () => learn(await documents.read(blob, partFile(digest)), noneHeld))
      await rename(partFile(digest), wholeFile(digest)).catch(refuseFull)
    } catch (error) {
      // A part with all bytes could not be continued.
      await drop(blob)
      throw error
    }
    wanted.hold(blob, sizeBytes, true)
  }

  async function drop(blob: WantedBlob): Promise<void> {
    await rm(partFile(blob.digest), { force: true })
    wanted.hold(blob, 0, false)
  }

  await documents.inTurn(async () =>
    learn(await documents.readIndexFile(join(folder, 'index.json')), await sizesIn(join(folder, 'blobs'))),
  )
  for (const [digest, heldBytes] of await sizesIn(join(folder, 'parts'))) {
    const blob = wanted.find(digest)
    if (!blob || blob.isWhole || heldBytes > blob.sizeBytes) await rm(partFile(digest), { force: true })
    else if (heldBytes < blob.sizeBytes) wanted.hold(blob, heldBytes, false)
    // It was being completed when the daemon was killed.
    else await complete(blob, await readHeld(partFile(digest), never)).catch(ignoreRefusal)
  }

  return {
    uid,
    folder,
    note,
    indexDigest,
    lastActivityAt: () => lastActivityAt,
    progress() {
      const { heldBytes, totalBytes, missingBytes, missingCount } = wanted
      return {
        receivedBytes: heldBytes,
        totalBytes,
        missingBytes,
        missingBlobs: missingCount,
        remainingSeconds: missingBytes === 0 ? 0 : pace.secondsFor(missingBytes),
      }
    },
    lose(digest) {
      const blob = wanted.find(digest)
      if (blob) wanted.hold(blob, 0, false)
    },
    blobCount: () => wanted.count,
    *missing() {
      for (const { digest, sizeBytes, heldBytes, documentType, isOptional } of wanted.missing())
        yield { digest, sizeBytes, heldBytes, isManifest: documentType !== undefined, isOptional }
    },
    async append(digest, range, body, signal) {
      if (paused) throw paused
      const blob = wanted.find(digest)
      if (!blob)
        throw new AppError(
          generalErrors.NotFound,
          'no index or manifest that this upload has names the blob; send the manifests first: GET …/missing lists what is needed',
          { details: { field: 'digest' } },
        )
      if (appending.has(digest))
        throw new AppError(
          contentErrors.BlobBusy,
          'another request is sending this blob; wait until it has ended',
          {
            retryAfterSec: 1,
          },
        )
      requireRange(range, blob.heldBytes, blob.sizeBytes)
      lastActivityAt = now()
      const stop = new AbortController()
      const onEnd = () => stop.abort(signal.reason)
      if (signal.aborted) onEnd()
      signal.addEventListener('abort', onEnd, { once: true })
      const received = receive(blob, range, body, stop.signal)
      appending.set(digest, { stop, received })
      return received.finally(() => {
        appending.delete(digest)
        signal.removeEventListener('abort', onEnd)
      })
    },
    appendingCount: () => appending.size,
    resume() {
      paused = undefined
    },
    async pause(reason) {
      paused = reason
      for (const { stop } of appending.values()) stop.abort(reason)
      await Promise.allSettled([...appending.values()].map(({ received }) => received))
    },
  }
}

const never = new AbortController().signal

/** A part that is refused has been removed. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof AppError)) throw error
}

const noneHeld: ReadonlyMap<string, number> = new Map()

/** Sizes of the blobs in a folder, by digest. */
async function sizesIn(folder: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  const slice = createSlices()
  for await (const { name } of await opendir(folder, { bufferSize: 256 })) {
    await slice()
    sizes.set(`sha256:${name}`, (await stat(join(folder, name))).size)
  }
  return sizes
}

const tooLong = ({ lengthBytes }: ByteRange) =>
  new AppError(
    generalErrors.BadRequest,
    `the body is longer than the ${lengthBytes} bytes of Content-Range; send exactly those`,
    { details: { field: 'content-range' } },
  )

const tooShort = ({ lengthBytes }: ByteRange, left: number) =>
  new AppError(
    generalErrors.BadRequest,
    `the body ended ${left} bytes before the ${lengthBytes} bytes of Content-Range; what arrived is kept: send the rest`,
    { details: { field: 'content-range' } },
  )
