import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { Secrets } from '../secrets/secrets.ts'
import type { HostRole } from '../base/role.ts'
import { createSignedClaims } from '../credentials/signed-claims.ts'
import type { JsonObject } from '../base/json.ts'
import { createBoundedMap } from '../base/bounded-map.ts'
import { setBackMs } from '../base/time.ts'

/** The keys of the room. */
interface AuthKeys {
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
interface RefreshClaims {
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

/** Claims of an access token. */
interface AccessClaims {
  /** Name of the account as NSS returns it. */
  readonly sub: string
  /** `<session uid>.<generation>`. */
  readonly jti: string
  /** Seconds since 1970. */
  readonly iat: number
  readonly exp: number
  readonly role: HostRole
}

/** Signs and verifies access tokens. */
export interface AccessTokens {
  sign(claims: AccessClaims): string
  /** @returns undefined for a token that is altered, expired or from another issuer */
  verify(token: string): AccessClaims | undefined
}

export async function createAccessTokens(key: Buffer): Promise<AccessTokens> {
  const { sign, read } = await createSignedClaims({
    key,
    required: ['sub', 'jti', 'iat', 'exp', 'role'],
    isExpiryChecked: true,
  })
  return {
    sign,
    verify(token) {
      const claims = read(token)
      return isAccessClaims(claims) ? claims : undefined
    },
  }
}

// The library checks only that there are such claims; their types are checked here.
function isAccessClaims(value: JsonObject | undefined): value is JsonObject & AccessClaims {
  if (value === undefined) return false
  const { sub, jti, iat, exp, role } = value
  return (
    typeof sub === 'string' &&
    typeof jti === 'string' &&
    Number.isInteger(iat) &&
    Number.isInteger(exp) &&
    (role === 'admin' || role === 'viewer')
  )
}

/** The user behind an accepted token. */
export interface SessionCaller {
  readonly userName: string
  readonly role: HostRole
  readonly sessionUid: string
}

/**
 * Caches access tokens whose signature needs no check: it was valid before, or the daemon has just made it. A signature
 * check costs more than the rest of a read request. The validity period is checked on each call. Tokens are removed
 * together with their session, or when the session loses its role.
 */
interface AcceptedTokens {
  /** The user behind a token; undefined when the token is not valid now, or its signature must be checked first. */
  callerOf(token: string, now: number): SessionCaller | undefined
  /** @returns the user, if the token is valid now */
  accept(
    token: string,
    caller: SessionCaller,
    time: Pick<AccessClaims, 'iat' | 'exp'>,
    now: number,
  ): SessionCaller | undefined
  remove(isGone: (caller: SessionCaller) => boolean): void
}

interface Accepted {
  readonly caller: SessionCaller
  readonly validFrom: number
  readonly expiresAt: number
}

const rememberedTokens = 10_000

export function createAcceptedTokens(): AcceptedTokens {
  const accepted = createBoundedMap<Accepted>({
    maximum: rememberedTokens,
    worth: ({ expiresAt }, now) => Math.max(0, expiresAt - now),
    compared: 32,
  })
  return {
    callerOf(token, now) {
      const known = accepted.get(token)
      if (!known) return undefined
      if (known.expiresAt > now && known.validFrom <= now) return known.caller
      accepted.delete(token)
      return undefined
    },
    accept(token, caller, { iat, exp }, now) {
      const [validFrom, expiresAt] = [iat * 1_000 - setBackMs, exp * 1_000]
      if (expiresAt <= now || validFrom > now) return undefined
      accepted.set(token, { caller, validFrom, expiresAt }, now)
      return caller
    },
    remove(isGone) {
      for (const [token, { caller }] of accepted.entries()) if (isGone(caller)) accepted.delete(token)
    },
  }
}
