import { createHash } from 'node:crypto'
import { storageFull } from '../../errors/system-reason.ts'
import { letBuffersGo } from '../../upload/buffer-garbage.ts'
import { bundleNameOf } from '../../archive/compression.ts'
import { labelOf } from '../../upload/file-label.ts'
import { noFile, secondPart, signatureField, uploadField, type UploadPart } from '../../upload/receive.ts'
import { boundedUploads, createRunningUploads, type Uploader } from '../../upload/running.ts'
import {
  createSignatureCheck,
  readSignature,
  requireSignature,
  type SignatureCheck,
  type SigningKey,
} from '../../upload/signing.ts'
import type { ContentProgram, Unpacking } from '../program/content-program.ts'
import type { ContentStore, Published, StagedUpload } from '../store/content-store.ts'
import { createPace, type Pace, type RunningUpload, type UploadPhase, writeNote } from './upload-note.ts'

/** A form with a bundle that is arriving. */
export interface BundleForm {
  /** @param signal ends the parts with its reason, an AppError */
  readonly parts: (signal: AbortSignal) => AsyncIterable<UploadPart>
  /** Content-Length, if known. */
  readonly expectedBytes: number | undefined
  /** Its signal ends the upload also during the check. */
  readonly uploader: Uploader
}

export interface FileUploadsOptions {
  readonly store: ContentStore
  readonly program: ContentProgram
  readonly signingKey: SigningKey | undefined
  /** Resolves when the folders of uploads that a stopped daemon left are gone. */
  readonly ready: () => Promise<void>
  /** Uploads at the same time. */
  readonly maximum: number
  readonly now: () => number
  readonly monotonic: () => number
}

/** Uploads of a bundle as one file, which is unpacked while it arrives. */
export interface FileUploads {
  /**
   * Receives a bundle and publishes it. A bundle with the same index gets its lacking blobs; if it lacks none, nothing is written.
   * @throws AppError TooManyUploads, StorageFull, SignatureMissing, SignatureInvalid, and the refusal of the bundle
   */
  receive(form: BundleForm): Promise<Published>
  list(): readonly RunningUpload[]
  count(): number
  /** Ends running uploads, each with a refusal; resolves when their files are removed. */
  stop(): Promise<void>
}

interface Entry {
  readonly staged: StagedUpload
  readonly startedAt: number
  readonly totalBytes: number | undefined
  readonly pace: Pace
  name: string
  receivedBytes: number
  lastActivityAt: number
  phase: UploadPhase
}

interface File {
  readonly fileName: string
  readonly fileSizeBytes: number
  /** Hex. */
  readonly fileSha256: string
}

// The room that others have reserved is checked after so many bytes.
const betweenChecksBytes = 8_388_608

export function createFileUploads(options: FileUploadsOptions): FileUploads {
  const { store, program, signingKey, ready, maximum, now, monotonic } = options
  const running = createRunningUploads({ what: 'bundles', field: uploadField, ...boundedUploads(maximum) })
  const entries = new Set<Entry>()

  async function receiveInto(form: BundleForm, entry: Entry, refused: AbortController): Promise<Published> {
    const { staged } = entry
    const { signal } = refused
    let unpacking: Unpacking | undefined
    try {
      await writeNote(staged.folder, {
        kind: 'file',
        name: '',
        fileName: '',
        indexDigest: '',
        createdAt: entry.startedAt,
        bootId: '',
        signedBy: '',
      })
      unpacking = program.unpack({
        upload: staged.folder,
        blobs: store.blobs,
        reserveBytes: await store.space.reserveBytes(),
      })
      unpacking.result.catch((reason: unknown) => refused.abort(reason))
      const check = signingKey && createSignatureCheck(signingKey)
      const { file, signature } = await readForm(form.parts(signal), entry, unpacking, check, signal)
      await unpacking.end()
      const { indexDigest } = await unpacking.result
      if (check) requireSignature(check, signature)
      return await publish(entry, file, indexDigest, signal)
    } catch (error) {
      // If the upload was ended, the client gets that reason, not an error that followed from it.
      const reason: unknown = signal.aborted ? signal.reason : error
      await unpacking?.cancel()
      await store.removeStaged(staged)
      throw reason
    }
  }

  async function publish(entry: Entry, file: File, indexDigest: string, signal: AbortSignal) {
    const { staged, name } = entry
    const publishedAt = now()
    const { uid, folder } = staged
    entry.phase = 'checking'
    const bundle = { uid, name: bundleNameOf(name), publishedAt, via: 'file' as const, ...file }
    return store.publish(staged, {
      indexDigest,
      bundle,
      signal,
      async examine(facts) {
        const examined = await program.examine({ upload: folder, bundle: facts }, { signal })
        entry.phase = 'publishing'
        return examined
      },
    })
  }

  async function readForm(
    parts: AsyncIterable<UploadPart>,
    entry: Entry,
    unpacking: Unpacking,
    check: SignatureCheck | undefined,
    signal: AbortSignal,
  ): Promise<{ file: File; signature: Buffer | undefined }> {
    let file: File | undefined
    let signature: Buffer | undefined
    for await (const { fieldName, fileName, content } of parts) {
      if (fieldName === uploadField) {
        if (file) throw secondPart(uploadField)
        entry.name = labelOf(fileName)
        file = await readFile(content, entry, unpacking, check, signal)
      } else if (fieldName === signatureField) {
        if (signature) throw secondPart(signatureField)
        signature = await readSignature(content)
      }
    }
    if (!file) throw noFile()
    return { file, signature }
  }

  async function readFile(
    content: AsyncIterable<Buffer>,
    entry: Entry,
    unpacking: Unpacking,
    check: SignatureCheck | undefined,
    signal: AbortSignal,
  ): Promise<File> {
    const hash = createHash('sha256')
    let checkAt = 0
    for await (const chunk of content) {
      signal.throwIfAborted()
      hash.update(chunk)
      check?.update(chunk)
      if (entry.receivedBytes >= checkAt) {
        checkAt = entry.receivedBytes + betweenChecksBytes
        const freeBytes = await store.space.freeBytes()
        if (freeBytes < 0) throw storageFull(-freeBytes)
      }
      await unpacking.write(chunk)
      entry.receivedBytes += chunk.length
      entry.lastActivityAt = now()
      entry.pace.add(chunk.length)
      letBuffersGo(chunk.length)
    }
    return { fileName: entry.name, fileSizeBytes: entry.receivedBytes, fileSha256: hash.digest('hex') }
  }

  return {
    receive: (form) =>
      running.run(form.uploader, async ({ refused }) => {
        await ready()
        const staged = await store.stage()
        const at = now()
        const entry: Entry = {
          staged,
          startedAt: at,
          totalBytes: form.expectedBytes,
          pace: createPace(monotonic),
          name: '',
          receivedBytes: 0,
          lastActivityAt: at,
          phase: 'receiving',
        }
        entries.add(entry)
        return receiveInto(form, entry, refused).finally(() => entries.delete(entry))
      }),
    list: () =>
      [...entries].map((entry) => {
        const { staged, name, phase, receivedBytes, totalBytes, startedAt, lastActivityAt, pace } = entry
        const leftBytes = totalBytes === undefined ? undefined : Math.max(0, totalBytes - receivedBytes)
        return {
          uid: staged.uid,
          kind: 'file',
          name,
          phase,
          receivedBytes,
          totalBytes,
          missingBytes: leftBytes,
          startedAt,
          lastActivityAt,
          remainingSeconds: leftBytes === undefined ? undefined : pace.secondsFor(leftBytes),
        }
      }),
    count: running.count,
    stop: running.stop,
  }
}
