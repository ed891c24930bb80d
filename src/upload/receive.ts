import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { storageFull } from '../errors/storage-full.ts'
import { letBuffersGo } from './buffer-garbage.ts'
import { createArchiveFile, type ArchiveFile } from './upload-file.ts'
import { labelOf } from './file-label.ts'
import { createSignatureCheck, readSignature, requireSignature, type SigningKey } from './signing.ts'

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

export interface UploadOptions {
  /** The parts of the form, in order of arrival. */
  readonly parts: AsyncIterable<UploadPart>
  /** The folder for the file, which is named `receivedFile`; the folder must exist, the file must not. */
  readonly folder: string
  /** Maximum size of the file in bytes. */
  readonly limitBytes: number
  /** Bytes that must stay free on the disk. */
  readonly reserveBytes: number
  /** Free bytes on the disk of the folder. */
  readonly freeBytes: () => Promise<number>
  /** Content-Length, if the client sent it: the size of the body, slightly more than that of the file. */
  readonly expectedBytes: number | undefined
  /** Called after each write with the number of bytes that can be read. */
  readonly onWritten?: (sizeBytes: number) => void
  /** Aborts the upload with its reason, an AppError. */
  readonly signal?: AbortSignal
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
 * @throws AppError BadRequest, PayloadTooLarge, StorageFull, SignatureMissing, SignatureInvalid; after any error the
 * file is removed, and the rest of the body is left unread
 */
export async function receiveUpload(options: UploadOptions): Promise<Upload> {
  const { parts, folder, limitBytes, expectedBytes = 0, signingKey } = options
  if (expectedBytes > limitBytes + formBytes) throw tooLarge(limitBytes)
  await checkFreeBytes(options, 0)
  const hash = createHash('sha256')
  const check = signingKey && createSignatureCheck(signingKey)
  const file = join(folder, receivedFile)
  const archive = await createArchiveFile({
    folder,
    file,
    onWritten: options.onWritten,
    onBatch(batch) {
      hash.update(batch)
      check?.update(batch)
    },
  })
  try {
    const { sizeBytes, fileName, signature } = await readForm(parts, archive, options)
    await archive.flush()
    if (check) requireSignature(check, signature)
    await archive.finish()
    return { file, sizeBytes, sha256: hash.digest('hex'), fileName }
  } catch (error) {
    await archive.remove()
    throw error
  }
}

async function readForm(parts: AsyncIterable<UploadPart>, archive: ArchiveFile, options: UploadOptions) {
  let uploaded: { sizeBytes: number; fileName: string } | undefined
  let signature: Buffer | undefined
  for await (const { fieldName, fileName, content } of parts) {
    if (fieldName === uploadField) {
      if (uploaded) throw secondPart(uploadField)
      uploaded = { sizeBytes: await readFile(content, archive, options), fileName: labelOf(fileName) }
    } else if (fieldName === signatureField) {
      if (signature) throw secondPart(signatureField)
      signature = await readSignature(content)
    }
  }
  if (!uploaded) throw noFile()
  return { ...uploaded, signature }
}

async function readFile(
  content: AsyncIterable<Buffer>,
  archive: ArchiveFile,
  options: UploadOptions,
): Promise<number> {
  let sizeBytes = 0
  let checkAt = betweenChecksBytes
  for await (const chunk of content) {
    options.signal?.throwIfAborted()
    sizeBytes += chunk.length
    if (sizeBytes > options.limitBytes) throw tooLarge(options.limitBytes)
    await archive.write(chunk)
    letBuffersGo(chunk.length)
    if (sizeBytes < checkAt) continue
    checkAt = sizeBytes + betweenChecksBytes
    await checkFreeBytes(options, sizeBytes)
  }
  return sizeBytes
}

async function checkFreeBytes(
  { freeBytes, reserveBytes, expectedBytes = 0 }: UploadOptions,
  writtenBytes: number,
): Promise<void> {
  const missing = reserveBytes + Math.max(0, expectedBytes - writtenBytes) - (await freeBytes())
  if (missing > 0) throw storageFull(missing)
}

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
