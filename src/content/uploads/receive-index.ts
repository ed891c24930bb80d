import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { labelOf } from '../../upload/file-label.ts'
import { secondPart, signatureField, type UploadPart } from '../../upload/receive.ts'
import {
  createSignatureCheck,
  readSignature,
  requireSignature,
  type SigningKey,
} from '../../upload/signing.ts'
import { bundleErrors } from '../format/codes.ts'
import { bundleLimits } from '../format/limits.ts'
import type { PostedIndex } from './blob-uploads.ts'

/** The part with the bytes of index.json. */
export const indexField = 'index'
const nameField = 'name'
const nameBytes = 1_024

/**
 * Reads the form that begins an upload. With a signing key the signature is verified before anything else looks at the index.
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
