import { createHash } from 'node:crypto'
import type { Fields } from './json-fields.ts'
import { annotations as keys, isForeignLayer } from './media-types.ts'
import { refuseBundle, showText } from './refusal.ts'

/** The reference of a document to a blob: digest, size and media type. */
export interface Descriptor {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly sizeBytes: number
  readonly mediaType: string
  readonly artifactType: string | undefined
  readonly platform: Platform | undefined
  readonly annotations: ReadonlyMap<string, string>
  /** In an index: not an image, but BuildKit's statement about the origin and the content of one. */
  readonly isAttestation: boolean
  /** A layer that tools leave out because it may not be distributed. */
  readonly isForeign: boolean
  /** Its place, for messages. */
  readonly place: string
}

/** Machines of an image, in the words of Go: `linux`, `amd64`. */
export interface Platform {
  readonly os: string
  readonly architecture: string
  readonly variant?: string
}

const sha256 = /^sha256:[0-9a-f]{64}$/
/** Whether a text is a digest that this host uses: SHA-256. */
export const isDigest = (text: string): boolean => sha256.test(text)

/** The digest of bytes. */
export const digestOf = (bytes: Uint8Array): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const platformWord = /^[a-z0-9][\w.-]{0,62}$/i
const unknownWord = 'unknown'
const mediaTypeForm = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+;=" -]{1,255}$/

/**
 * Checks a descriptor.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md
 * @throws AppError with the field
 */
export function parseDescriptor(fields: Fields): Descriptor {
  const digest = fields.text('digest')
  if (!isDigest(digest))
    throw refuseBundle(
      'DigestUnsupported',
      `${fields.place}.digest`,
      `is ${showText(JSON.stringify(digest.slice(0, 150)))}; it must be sha256: and 64 hexadecimal digits in lower case`,
    )
  const mediaType = fields.text('mediaType')
  if (!mediaTypeForm.test(mediaType))
    throw refuseBundle(
      'FieldInvalid',
      `${fields.place}.mediaType`,
      `is ${showText(JSON.stringify(mediaType.slice(0, 150)))}; it must be a media type`,
    )
  const sizeBytes = fields.count('size')
  checkEmbedded(fields, digest, sizeBytes)
  const platform = fields.optionalObject('platform')
  const annotations = fields.texts('annotations')
  return {
    digest,
    sizeBytes,
    mediaType,
    artifactType: fields.optionalText('artifactType') || undefined,
    platform: parsePlatform(platform),
    annotations,
    isAttestation: annotations.get(keys.referenceType) === 'attestation-manifest' || isUnknown(platform),
    isForeign: isForeignLayer(mediaType),
    place: fields.place,
  }
}

/** `data` is a copy of the blob; a client may use it instead, so it must be the blob. */
function checkEmbedded(fields: Fields, digest: string, sizeBytes: number): void {
  const data = fields.optionalText('data')
  if (data === undefined) return
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length !== sizeBytes || digestOf(bytes) !== digest)
    throw refuseBundle(
      'FieldInvalid',
      `${fields.place}.data`,
      'is not the blob that the digest names; build the bundle again',
    )
}

/** The platform of a descriptor or of an image configuration; undefined if it is missing, incomplete or `unknown`. */
export function parsePlatform(fields: Fields | undefined): Platform | undefined {
  const [os, architecture] = [fields?.optionalText('os'), fields?.optionalText('architecture')]
  const variant = fields?.optionalText('variant')
  if (!isPlatformWord(os) || !isPlatformWord(architecture)) return undefined
  return { os, architecture, ...(isPlatformWord(variant) ? { variant } : {}) }
}

// Tools that copy an index may leave out the annotations, not the platform.
const isUnknown = (fields: Fields | undefined): boolean =>
  fields?.optionalText('os') === unknownWord && fields.optionalText('architecture') === unknownWord

const isPlatformWord = (word: string | undefined): word is string =>
  word !== undefined && word !== unknownWord && platformWord.test(word)
