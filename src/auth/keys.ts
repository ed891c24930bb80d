import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { Secrets } from '../secrets/secrets.ts'

/** Keys of the room. */
export interface AuthKeys {
  /** Signs access tokens. */
  readonly access: Buffer
  /** Makes refresh tokens. */
  readonly refresh: KeyObject
  /** Makes account marks. */
  readonly mark: KeyObject
  /** Stands for user names that were typed, where failures are counted. */
  readonly guess: KeyObject
}

/** The keys of this room, each for one use. */
export const deriveKeys = ({ derive }: Secrets): AuthKeys => ({
  access: derive('access token'),
  // As objects: from bytes, Node makes one for each code, which takes as long as the code.
  refresh: createSecretKey(derive('refresh token')),
  mark: createSecretKey(derive('account mark')),
  guess: createSecretKey(derive('guessed user')),
})

/** What a refresh token is about, once its code was checked. */
export interface RefreshClaims {
  readonly sessionUid: string
  /** Counts the renewals of the session. */
  readonly generation: number
}

/**
 * A refresh token: opaque to clients, session, generation and a 256-bit code. It can be made again for the client
 * whose reply was lost, and an old one can be recognised however old it is.
 */
export function makeRefreshToken(key: KeyObject, { sessionUid, generation }: RefreshClaims): string {
  const claims = `${sessionUid}.${generation}`
  return `${Buffer.from(claims).toString('base64url')}.${codeOf(key, claims).toString('base64url')}`
}

/** The session that a refresh token says it is of; not yet checked. */
export function sessionOfRefreshToken(token: string): string | undefined {
  if (token.length > longestRefreshToken) return undefined
  return readClaims(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString())?.sessionUid
}

/** The same of an access token (RFC 7519, claim `jti`). */
export function sessionOfAccessToken(token: string): string | undefined {
  if (token.length > longestAccessToken) return undefined
  const claims = Buffer.from(token.split('.', 2)[1] ?? '', 'base64url').toString()
  return /"jti":"([0-9a-f-]{36})\.\d{1,9}"/.exec(claims)?.[1]
}

/** @returns nothing for a token that is not one of ours */
export function readRefreshToken(key: KeyObject, token: string): RefreshClaims | undefined {
  const [encoded, code, ...rest] = token.split('.')
  if (!encoded || !code || rest.length > 0 || token.length > longestRefreshToken) return undefined
  const claims = Buffer.from(encoded, 'base64url').toString()
  const given = Buffer.from(code, 'base64url')
  const expected = codeOf(key, claims)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
  return readClaims(claims)
}

const longestRefreshToken = 512
// A name of an account may have 256 bytes; in JSON and base64url, that is as much again.
const longestAccessToken = 2_048

function readClaims(claims: string): RefreshClaims | undefined {
  const [, sessionUid, generation] = /^([0-9a-f-]{36})\.(\d{1,9})$/.exec(claims) ?? []
  return sessionUid && generation ? { sessionUid, generation: Number(generation) } : undefined
}

const codeOf = (key: KeyObject, claims: string) => createHmac('sha256', key).update(claims).digest()
