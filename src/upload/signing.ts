import { createHash, createPublicKey, createVerify, type KeyObject } from 'node:crypto'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { AppError } from '../errors/app-error.ts'
import { uploadErrors } from './codes.ts'
import { ConfigurationError } from '../errors/start-error.ts'

/** The public key that uploads are checked with. */
export interface SigningKey {
  readonly key: KeyObject
  /** For people, for example `RSA, 4096 bits` or `EC, prime256v1`. */
  readonly kind: string
  /** The PEM text shown by the API, independent of how the key was configured. */
  readonly pem: string
  readonly description: string
}

/** Verifies a detached signature while the content is streamed. */
export interface SignatureCheck {
  update: (chunk: Uint8Array) => void
  /** Whether the signature matches the content so far. Call it once. */
  verify: (signature: Buffer) => boolean
}

/** The public key in the configuration cannot be used to check uploads. */
export class SigningKeyUnusable extends ConfigurationError {
  constructor(problem: string) {
    super(`content.signing.publicKey: ${problem}`)
  }
}

const leastRsaBits = 2_048
const leastCurveBits = 256
/** Maximum size of a signature in bytes, in any encoding. */
export const signatureLimitBytes = 16_384

const makeKey =
  'make a pair with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem; ' +
  'openssl pkey -in key.pem -pubout | base64 -w 0'

/**
 * Parses the public key of the configuration.
 * @param base64EncodedValue base64 of a PEM public key (SubjectPublicKeyInfo, or PKCS #1 for RSA), or the PEM itself;
 * RSA of at least 2,048 bits, or EC on a named curve of at least 256 bits
 * @returns undefined when the value is empty: uploads are not checked then
 * @throws SigningKeyUnusable with the problem and a command that helps. The message never repeats the value: it may
 * be a private key that was put there by mistake
 */
export function parseSigningKey({
  base64EncodedValue,
  description,
}: {
  readonly base64EncodedValue: string
  readonly description: string
}): SigningKey | undefined {
  const value = base64EncodedValue.trim()
  if (value === '') return undefined
  const pem = pemOf(value)
  const key = parse(pem)
  return {
    key,
    kind: kindOf(key),
    pem: `${pem}\n`,
    description,
  }
}

function pemOf(value: string): string {
  if (value.startsWith('-----BEGIN ')) return value
  const text = isBase64(value) ? Buffer.from(value, 'base64').toString('latin1').trim() : ''
  if (text.startsWith('-----BEGIN ')) return text
  throw new SigningKeyUnusable(
    'the public key is neither a PEM nor the base64 of one; encode it with: openssl pkey -pubin -in public.pem | base64 -w 0',
  )
}

function parse(pem: string): KeyObject {
  const label = /^-----BEGIN ([A-Z0-9 ]{1,40})-----/.exec(pem)?.[1] ?? ''
  // Node would accept its public half, and the private key would be in the configuration and in the API.
  if (label.includes('PRIVATE KEY'))
    throw new SigningKeyUnusable(
      'the public key is a private one, which does not belong on this host; replace it by: openssl pkey -in key.pem -pubout | base64 -w 0',
    )
  if (label.includes('CERTIFICATE'))
    throw new SigningKeyUnusable(
      'the public key is a certificate; extract the key with: openssl x509 -in certificate.pem -noout -pubkey | base64 -w 0',
    )
  if (pem.split('-----BEGIN ').length > 2)
    throw new SigningKeyUnusable(
      'the public key has more than one PEM block; keep only the key that signs uploads',
    )
  try {
    return createPublicKey({ key: pem, format: 'pem' })
  } catch {
    throw new SigningKeyUnusable(
      'the public key is damaged or of an unknown type; inspect it with: openssl pkey -pubin -in public.pem -noout -text',
    )
  }
}

function kindOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): string {
  if (type === 'rsa') {
    const { modulusLength: bits = 0 } = details
    if (bits >= leastRsaBits) return `RSA, ${bits} bits`
    throw new SigningKeyUnusable(
      `the public key is RSA of ${bits} bits, which is too short; use ${leastRsaBits} bits or more: openssl genrsa -out key.pem 3072`,
    )
  }
  if (type === 'ec') {
    const { namedCurve } = details
    if (namedCurve === undefined)
      throw new SigningKeyUnusable(`the public key is EC without a named curve; ${makeKey}`)
    // prime256v1, secp384r1, brainpoolP512r1: the name contains the size, and Node reports it nowhere else.
    if (Number(/\d{2,3}/.exec(namedCurve)?.[0]) >= leastCurveBits) return `EC, ${namedCurve}`
    throw new SigningKeyUnusable(
      `the public key is EC on the curve ${namedCurve}, which is too small; ${makeKey}`,
    )
  }
  throw new SigningKeyUnusable(
    `the public key is of the type ${type ?? 'secret'}; RSA and EC keys sign uploads: ${makeKey}`,
  )
}

/** SHA-256 of the SubjectPublicKeyInfo, hex: the same for every encoding of the key. */
export const fingerprintOf = ({ key }: SigningKey): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')

/** SHA-256 with RSA (PKCS #1 v1.5) or with ECDSA (DER), as made by `openssl dgst -sha256 -sign`. */
export function createSignatureCheck({ key }: SigningKey): SignatureCheck {
  const check = createVerify('sha256')
  return {
    update: (chunk) => void check.update(chunk),
    verify: (signature) => check.verify(key, signature),
  }
}

/**
 * Decodes a signature as a client sends it: its bytes, or their hex or base64 text, possibly with line breaks. Other
 * content is treated as the bytes; a signature of random bytes does not look like text.
 * @throws AppError SignatureInvalid above 16 KiB
 */
export function parseSignature(bytes: Buffer): Buffer {
  if (bytes.length > signatureLimitBytes) throw signatureTooLong()
  const text = bytes.toString('latin1').replaceAll(/[ \t\r\n]/g, '')
  if (text === '') return Buffer.alloc(0)
  if (text.length % 2 === 0 && /^[0-9a-f]+$/i.test(text)) return Buffer.from(text, 'hex')
  return isBase64(text) ? Buffer.from(text, 'base64') : bytes
}

/** Reads a signature that a client sends. @throws as `parseSignature`, as soon as it is too long */
export async function readSignature(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const signature = createGrowingBuffer(signatureLimitBytes)
  for await (const chunk of content) if (!signature.add(chunk)) throw signatureTooLong()
  return parseSignature(signature.bytes())
}

/**
 * Compares the signature of an upload with the bytes read so far.
 * @param signature undefined if none was sent
 * @throws AppError SignatureMissing, SignatureInvalid
 */
export function requireSignature({ verify }: SignatureCheck, signature: Buffer | undefined): void {
  const details = { field: 'signature' }
  if (!signature?.length)
    throw new AppError(
      uploadErrors.SignatureMissing,
      'this host accepts signed uploads only; send the detached signature as the part signature',
      { details },
    )
  if (!verify(signature))
    throw new AppError(
      uploadErrors.SignatureInvalid,
      'the signature does not match this file (SHA-256) and the key of this host; sign exactly the file that is sent',
      { details },
    )
}

const signatureTooLong = () =>
  new AppError(
    uploadErrors.SignatureInvalid,
    `the signature is longer than ${signatureLimitBytes} bytes; send the output of openssl dgst -sha256 -sign`,
    { details: { field: 'signature' } },
  )

const isBase64 = (text: string) => /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)
