import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { Secrets } from '../secrets/secrets.ts'

/** The keys of the room. */
export interface AuthKeys {
  /** Signs access tokens. */
  readonly access: Buffer
  /** Signs refresh tokens. */
  readonly refresh: KeyObject
  /** Computes account marks. */
  readonly mark: KeyObject
  /** Hashes typed user names for the failure counters. */
  readonly guess: KeyObject
}

/** Derives the keys of this room, each for one use. */
export const deriveKeys = ({ derive }: Secrets): AuthKeys => ({
  access: derive('access token'),
  // As key objects: from bytes, Node would create one for each code, which takes as long as the code itself.
  refresh: createSecretKey(derive('refresh token')),
  mark: createSecretKey(derive('account mark')),
  guess: createSecretKey(derive('guessed user')),
})

/** The content of a refresh token whose code was verified. */
export interface RefreshClaims {
  readonly sessionUid: string
  /** Number of renewals of the session. */
  readonly generation: number
}

/**
 * Makes a refresh token: opaque to clients, with session, generation and a 256-bit code. It can be made again for a
 * client whose reply was lost, and an old one can be recognised at any age.
 */
export function makeRefreshToken(key: KeyObject, { sessionUid, generation }: RefreshClaims): string {
  const claims = `${sessionUid}.${generation}`
  return `${Buffer.from(claims).toString('base64url')}.${codeOf(key, claims).toString('base64url')}`
}

/** The session named in a refresh token; not verified. */
export function sessionOfRefreshToken(token: string): string | undefined {
  if (token.length > longestRefreshToken) return undefined
  return parseClaims(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString())?.sessionUid
}

/** The session named in an access token (RFC 7519, claim `jti`); not verified. */
export function sessionOfAccessToken(token: string): string | undefined {
  if (token.length > longestAccessToken) return undefined
  const claims = Buffer.from(token.split('.', 2)[1] ?? '', 'base64url').toString()
  return /"jti":"([0-9a-f-]{36})\.\d{1,9}"/.exec(claims)?.[1]
}

/** @returns undefined for a token that this daemon did not make */
export function parseRefreshToken(key: KeyObject, token: string): RefreshClaims | undefined {
  const [encoded, code, ...rest] = token.split('.')
  if (!encoded || !code || rest.length > 0 || token.length > longestRefreshToken) return undefined
  const claims = Buffer.from(encoded, 'base64url').toString()
  const given = Buffer.from(code, 'base64url')
  const expected = codeOf(key, claims)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
  return parseClaims(claims)
}

const longestRefreshToken = 512
// The name of an account may have 256 bytes; JSON and base64url double that.
const longestAccessToken = 2_048

function parseClaims(claims: string): RefreshClaims | undefined {
  const [, sessionUid, generation] = /^([0-9a-f-]{36})\.(\d{1,9})$/.exec(claims) ?? []
  return sessionUid && generation ? { sessionUid, generation: Number(generation) } : undefined
}

const codeOf = (key: KeyObject, claims: string) => createHmac('sha256', key).update(claims).digest()
