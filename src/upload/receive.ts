// `POST …/actions/upload-clusterconfig`:
//
// 1. `upload/multipart.ts` parses the form part by part and limits the parts other than the file (ADR 13).
// 2. `upload/receive.ts` writes the file into a staging folder, hashes it and checks its signature, while the upload has a place.
//    `upload/running.ts` counts uploads by user and gives the places, which have the buffers, by turns: a body that is between two chunks when its
//    turn is over is paused by back-pressure, and its buffers go with the place.
// 3. `definition/examination` is a program, `examine.cjs`, that the daemon starts for each archive (ADR 14). While another one is examined so, it
//    begins when the file is whole. It reads the part of the file that the daemon has written, unpacks the files that it has to read, checks all
//    checksums of definition.yaml, checks form and content, and writes `details.json` (what the API shows, masked) and `profiles.json` (for the
//    validation of variables). A refusal ends the upload at once. The program keeps the reserve of the disk: it checks free space and inodes before
//    each MiB that it writes (`upload/disk-room.ts`).
// 4. `definition/slots/definition-store.ts` renames the folder to its uid and then puts it into its slot, a row of the database: this transaction
//    is the one step. At the start it removes staging and every folder that is in no slot.
//
// Details are sent from the disk to the connection as they are, with an ETag; the last requested ones stay in memory for a minute
// (`definition/slots/slots.ts`). The examination counts the instructions of every pattern and refuses patterns that are too large; the counts are
// in `profiles.json`. `definition/slots/examiner.ts` compiles a pattern when it is needed, and checks values on the event loop for at most 200,000
// steps a request, some 20 ms. Checks that need more, and patterns that an older version stored without a count, go to the same program,
// `examine.cjs`, one order after the other, with limits of time and memory (ADR 12). `definition/slots/embedded.ts` does the same with definitions
// that come without an upload of their own: the file that the installer placed, whenever its size, times or inode change, and the definition in the
// newest content bundle. They are examined where they lie; only the results of the examination are in the folder of the definition
// (`slots/preparations.ts`). The root hands two functions of the room to `content`: `examineBundled`, before a bundle is published, and
// `bundlesChanged`, when the store of the bundles was opened and after each change of it. A crash between the publication and `place` is healed by
// the next `bundlesChanged`. Until the first call the definition of a bundle stays in its slot. The `source` of a slot names its file or
// bundle; `definition/slots/definition-store.ts` remembers until when bundles have been offered as an update, since a discarded update
// leaves no row in the slot.

import { constants } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import { refuseFull, refuseFullOf, storageFull } from '../errors/system-reason.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { spaceOf } from '../system/files.ts'
import { letBuffersGo } from './buffer-garbage.ts'
import { labelOf } from './file-label.ts'
import type { RunningUpload, UploadPlace } from './running.ts'
import { createSignatureCheck, readSignature, requireSignature, type SigningKey } from './signing.ts'

/** A file that is being written. */
interface ArchiveFile {
  /** Resolves when there is room for more. */
  write: (chunk: Uint8Array) => Promise<void>
  /** Writes the rest and waits until it and the name of the file are on the disk. */
  finish: () => Promise<void>
  /** Writes buffered data and passes it to `onBatch`, so that `onBatch` has had every byte. */
  flush: () => Promise<void>
  /** To be called while nothing is being written: writes buffered data, and has no buffers then until the next write. */
  letBuffersGo: () => void
  /** Removes the file, whatever its state. */
  remove: () => Promise<void>
}

// There are two of these: one fills while the other is being written.
const batchBytes = 524_288

/**
 * Creates a new file, mode 0600, with constant memory: 1 MiB whatever its size.
 * @param onWritten called after each write with the number of bytes that can be read
 * @param onBatch gets every byte once, in order, before it is written; the buffer is reused afterwards
 * @throws AppError StorageFull, here and from each method, on a full disk or exceeded quota; other system errors
 * unchanged, for example `EEXIST`
 */
async function createArchiveFile({
  folder,
  file,
  onBatch,
  onWritten,
}: {
  readonly folder: string
  /** Path of the file inside the folder. */
  readonly file: string
  readonly onBatch: (batch: Uint8Array) => void
  readonly onWritten?: ((sizeBytes: number) => void) | undefined
}): Promise<ArchiveFile> {
  const handle = await open(file, 'wx', 0o600).catch(refuseFull)
  // Of a body that arrives slowly only one is made.
  let filling: Buffer | undefined
  let resting: Buffer | undefined
  let filled = 0
  let written = 0
  let writing: Promise<void> = Promise.resolve()
  let emptied: Promise<void> | undefined

  async function write(chunk: Uint8Array): Promise<void> {
    await emptied
    for (let offset = 0; offset < chunk.length;) {
      const part = chunk.subarray(offset, offset + batchBytes - filled)
      filling ??= Buffer.allocUnsafeSlow(batchBytes)
      filling.set(part, filled)
      filled += part.length
      offset += part.length
      if (filled === batchBytes) await passOn()
    }
  }

  // Waits for the previous batch, not for this one.
  async function passOn(): Promise<void> {
    if (filling === undefined) return
    const batch = filling.subarray(0, filled)
    onBatch(batch)
    await writing
    ;[filling, resting, filled] = [resting, filling, 0]
    // A short write(2) precedes ENOSPC; writeFile continues from there until everything is written.
    writing = handle.writeFile(batch).then(() => onWritten?.((written += batch.length)), refuseFullOf(file))
    // The next caller that awaits it gets the error.
    writing.catch(() => undefined)
  }

  async function flush(): Promise<void> {
    await emptied
    await flushNow()
  }

  async function flushNow(): Promise<void> {
    if (filled > 0) await passOn()
    await writing
  }

  return {
    write,
    flush,
    letBuffersGo() {
      emptied = flushNow().then(() => {
        filling = undefined
        resting = undefined
        emptied = undefined
      })
      // The next write throws it.
      emptied.catch(() => undefined)
    },
    async finish() {
      await flush()
      await handle.sync().catch(refuseFullOf(file))
      await handle.close()
      const parent = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        await parent.sync()
      } finally {
        await parent.close()
      }
    },
    async remove() {
      await emptied?.catch(() => undefined)
      await writing.catch(() => undefined)
      // Already closed if only the sync of the folder failed.
      await handle.close().catch(() => undefined)
      await unlink(file)
    },
  }
}

/** A part of a form; unread content is discarded. */
export interface UploadPart {
  readonly fieldName: string
  readonly fileName: string | undefined
  readonly content: AsyncIterable<Buffer>
}

/** The part that holds the file. */
export const uploadField = 'uploadFile'
/** The part that holds its detached signature. */
export const signatureField = 'signature'

/** Name of the file that an upload becomes in its folder. */
export const receivedFile = 'archive'

interface FileOptions {
  /** The folder for the file, which is named `receivedFile`; the folder must exist, the file must not. */
  readonly folder: string
  /** Maximum size of the file in bytes. */
  readonly limitBytes: number
  /** Bytes that must stay free on the disk. */
  readonly reserveBytes: number
  /** Free bytes on the disk of the folder. */
  readonly freeBytes: () => Promise<number>
  /** Content-Length, if the client sent it: the size of the body, slightly larger than the file. */
  readonly expectedBytes: number | undefined
  /** Called after each write with the number of bytes that can be read. */
  readonly onWritten?: (sizeBytes: number) => void
  /** See `RunningUpload`: chunks are written while the upload has its place, and its buffers go with it. */
  readonly place?: RunningUpload['place']
  /** Aborts the upload with its reason, an AppError. */
  readonly signal?: AbortSignal
}

export interface UploadOptions extends FileOptions {
  /** The parts of the form, in order of arrival. */
  readonly parts: AsyncIterable<UploadPart>
  /** Without a key a signature is read and ignored; an upload is not refused for having one. */
  readonly signingKey: SigningKey | undefined
}

export interface Upload {
  /** Path of the file. */
  readonly file: string
  readonly sizeBytes: number
  /** Hex. */
  readonly sha256: string
  /** The name given by the client, for display only, never as a path; may be empty. */
  readonly fileName: string
}

// A form is slightly larger than its file.
const formBytes = 524_288
// The free space is checked after this many bytes, which takes a millisecond at most. Meanwhile a program that unpacks the
// archive may write several times as much.
const betweenChecksBytes = 1_048_576

/**
 * Writes the file of a form to the disk while it arrives, with constant memory. It hashes the file and checks its
 * signature, which may arrive before or after the file. On return, file and name are on the disk.
 * @throws AppError BadRequest, PayloadTooLarge, StorageFull, SignatureMissing, SignatureInvalid, and of `place`; after any error the
 * file is removed, and the rest of the body is left unread
 */
export async function receiveUpload(options: UploadOptions): Promise<Upload> {
  const { parts, signingKey } = options
  const check = signingKey && createSignatureCheck(signingKey)
  const hash = createHash('sha256')
  const onBatch = (batch: Uint8Array) => {
    hash.update(batch)
    check?.update(batch)
  }
  const { file, sizeBytes, fileName } = await writeFile(options, onBatch, async (incoming) => {
    const { signature, ...received } = await readForm(parts, incoming)
    await incoming.archive.flush()
    if (check) requireSignature(check, signature)
    return received
  })
  return { file, sizeBytes, sha256: hash.digest('hex'), fileName }
}

/**
 * Writes a body that is a file to the disk while it arrives, as `receiveUpload` does with the file of a form.
 * @param read passes the chunks on in their order, and awaits the result for each
 * @returns its path. @throws AppError PayloadTooLarge, StorageFull, and of `place` and `read`; the file is removed then
 */
export async function receiveBody(
  options: FileOptions,
  read: (onChunk: (chunk: Buffer) => Promise<void>) => Promise<void>,
): Promise<string> {
  const { file } = await writeFile(
    options,
    () => undefined,
    async (incoming) => read(chunkWriter(incoming)),
  )
  return file
}

interface Incoming {
  readonly archive: ArchiveFile
  readonly place: UploadPlace | undefined
  readonly options: FileOptions
}

async function writeFile<T>(
  options: FileOptions,
  onBatch: (batch: Uint8Array) => void,
  read: (incoming: Incoming) => Promise<T>,
): Promise<T & { readonly file: string }> {
  const { folder, limitBytes, expectedBytes = 0, onWritten } = options
  if (expectedBytes > limitBytes + formBytes) throw tooLarge(limitBytes)
  await checkFreeBytes(options, 0)
  const file = join(folder, receivedFile)
  const archive = await createArchiveFile({ folder, file, onWritten, onBatch })
  const place = options.place?.(() => archive.letBuffersGo())
  try {
    const result = await read({ archive, place, options })
    // Before the rest is written: the buffers are released while no other write runs.
    place?.leave()
    await archive.finish()
    return { ...result, file }
  } catch (error) {
    await archive.remove()
    throw error
  } finally {
    place?.leave()
  }
}

async function readForm(parts: AsyncIterable<UploadPart>, incoming: Incoming) {
  let uploaded: { sizeBytes: number; fileName: string } | undefined
  let signature: Buffer | undefined
  for await (const { fieldName, fileName, content } of parts) {
    if (fieldName === uploadField) {
      if (uploaded) throw secondPart(uploadField)
      const writeChunk = chunkWriter(incoming)
      let sizeBytes = 0
      for await (const chunk of content) {
        await writeChunk(chunk)
        sizeBytes += chunk.length
      }
      incoming.place?.leave()
      uploaded = { sizeBytes, fileName: labelOf(fileName) }
    } else if (fieldName === signatureField) {
      if (signature) throw secondPart(signatureField)
      signature = await readSignature(content)
    }
  }
  if (!uploaded) throw noFile()
  return { ...uploaded, signature }
}

function chunkWriter({ archive, place, options }: Incoming): (chunk: Buffer) => Promise<void> {
  let sizeBytes = 0
  let checkAt = betweenChecksBytes
  return async (chunk) => {
    options.signal?.throwIfAborted()
    const received = sizeBytes + chunk.length
    if (received > options.limitBytes) throw tooLarge(options.limitBytes)
    await place?.take(sizeBytes)
    sizeBytes = received
    await archive.write(chunk)
    letBuffersGo(chunk.length)
    if (sizeBytes >= checkAt) {
      checkAt = sizeBytes + betweenChecksBytes
      await checkFreeBytes(options, sizeBytes)
    }
    place?.rest()
  }
}

async function checkFreeBytes(
  { freeBytes, reserveBytes, expectedBytes = 0 }: FileOptions,
  writtenBytes: number,
): Promise<void> {
  const missing = reserveBytes + Math.max(0, expectedBytes - writtenBytes) - (await freeBytes())
  if (missing > 0) throw storageFull(missing)
}

/** Free bytes of the disk of a folder; if unknown, a write to a full disk fails by itself. */
export const freeBytesOf = async (folder: string): Promise<number> =>
  (await spaceOf(folder))?.freeBytes ?? Number.MAX_SAFE_INTEGER

/** The refusal of a form without its file. */
export const noFile = () =>
  new AppError(
    generalErrors.BadRequest,
    `the form has no part ${uploadField}; send the archive as the file ${uploadField}`,
    { details: { field: uploadField } },
  )

/** The refusal of a form that has a part twice. */
export const secondPart = (field: string) =>
  new AppError(generalErrors.BadRequest, `the form has more than one part ${field}; send one`, {
    details: { field },
  })

const tooLarge = (limitBytes: number) =>
  new AppError(
    generalErrors.PayloadTooLarge,
    `the file is larger than the ${limitBytes} bytes that are accepted`,
    {
      details: { limitBytes },
    },
  )
