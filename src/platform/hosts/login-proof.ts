import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { isRecord } from '../../base/json.ts'

/** What a host signs at its login. */
export interface LoginProof {
  /** Uid of the host. */
  readonly sub: string
  readonly nonce: string
  /** The generation of its last login, as the host knows it. */
  readonly gen: number
}

const longestProof = 2_048
// Far from the numbers that are not exact, which the database gives back no more; the next generations still count up from it.
const largestGeneration = 2 ** 52
const header = { alg: 'EdDSA', typ: 'edge-login+jwt' } as const
const rawKeyBytes = 32
// RFC 8410, 4: the DER of an Ed25519 key is this and its 32 bytes.
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * The key of a host.
 * @param text base64url of its 32 bytes
 * @returns undefined for any other text
 */
export function parseHostKey(text: string): KeyObject | undefined {
  const raw = Buffer.from(text, 'base64url')
  if (raw.length !== rawKeyBytes || raw.toString('base64url') !== text) return undefined
  try {
    return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

/**
 * Reads a compact JWS (RFC 7515) with EdDSA (RFC 8037). Our own few lines: the one accepted algorithm and type are fixed, and the JWT library of
 * the tokens takes keys in PEM only.
 * @returns undefined for what this key has not signed, or what is no proof
 */
export function readLoginProof(text: string, key: KeyObject): LoginProof | undefined {
  if (text.length > longestProof) return undefined
  const parts = text.split('.')
  const [head = '', payload = '', signature = ''] = parts
  if (parts.length !== 3 || !isHeader(parseJson(head))) return undefined
  const signed = Buffer.from(signature, 'base64url')
  if (signed.toString('base64url') !== signature) return undefined
  if (!verify(null, Buffer.from(`${head}.${payload}`), key, signed)) return undefined
  const claims = parseJson(payload)
  return isProof(claims) ? { sub: claims.sub, nonce: claims.nonce, gen: claims.gen } : undefined
}

function parseJson(encoded: string): unknown {
  try {
    return JSON.parse(Buffer.from(encoded, 'base64url').toString()) as unknown
  } catch {
    return undefined
  }
}

// Exactly these two members: `crit`, `jwk` and others would ask for more than is done here.
const isHeader = (value: unknown): boolean =>
  isRecord(value) && Object.keys(value).length === 2 && value.alg === header.alg && value.typ === header.typ

function isProof(value: unknown): value is LoginProof {
  if (!isRecord(value)) return false
  const { sub, nonce, gen } = value
  const isText = typeof sub === 'string' && typeof nonce === 'string'
  return isText && Number.isInteger(gen) && (gen as number) >= 0 && (gen as number) <= largestGeneration
}
