import { randomBytes } from 'node:crypto'
import jwt from '@fastify/jwt'
import { fastify } from 'fastify'
import { isValidAt, setBackMs } from '../../base/time.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'

/** What a token of a user says. */
export interface UserClaims {
  /** Uid of the user. */
  readonly sub: string
  readonly jti: string
  /** Generation of the user's tokens. */
  readonly gen: number
  /** Seconds since 1970. */
  readonly iat: number
  readonly exp: number
}

/** Tokens of users: valid for 15 minutes, unless they are revoked or the user's generation has changed. */
export interface UserTokens {
  /** @param session of the token that it replaces; by default it begins a new one */
  make(uid: string, generation: number, session?: string): string
  /** @returns undefined for a token that is altered, expired, revoked, or from a time that is yet to come */
  read(token: string): UserClaims | undefined
  /** Ends a token; what is no valid token is left alone. @returns what the token said, if it was valid */
  revoke(token: string): UserClaims | undefined
  /** Forgets revoked tokens that have expired long ago. */
  sweep(): void
}

/** The session of a token; a token that replaces it has the same. */
export const sessionOf = ({ jti }: Pick<UserClaims, 'jti'>): string => jti.slice(0, sessionCharacters)

const sessionCharacters = 16
const lifeSeconds = 15 * 60

// Longer than they last: a clock that was ahead for a while, and a restart, must not make a revoked token valid again.
const keptMs = 30 * 86_400_000

/**
 * By @fastify/jwt, with HS256 only on both sides: issuer and verifier are one process, so an asymmetric key would have no benefit, and
 * accepting a second algorithm would enable attacks.
 */
export async function createUserTokens({
  key,
  database: { sql },
  clock,
}: {
  readonly key: Buffer
  readonly database: Database
  readonly clock: Clock
}): Promise<UserTokens> {
  // An instance that serves no requests: the tokens are needed before the app that uses them.
  const app = fastify()
  await app.register(jwt, {
    secret: key,
    sign: { algorithm: 'HS256' },
    // The times are compared here, since this clock is that of the tests too.
    verify: {
      algorithms: ['HS256'],
      cache: false,
      ignoreExpiration: true,
      requiredClaims: ['sub', 'jti', 'gen'],
    },
  })
  await app.ready()
  const isRevoked = sql.prepare('SELECT 1 FROM revoked_token WHERE id = ?')
  const revoke = sql.prepare('INSERT OR IGNORE INTO revoked_token (id, expires_at) VALUES (?, ?)')
  const sweep = sql.prepare('DELETE FROM revoked_token WHERE expires_at <= ?')

  /**
   * When each token was revoked, by the monotonic clock; the oldest first. A clock that is far ahead has the sweep forget tokens that
   * have not expired.
   */
  const justRevoked = new Map<string, number>()

  function read(token: string): UserClaims | undefined {
    let claims: unknown
    try {
      claims = app.jwt.verify(token)
    } catch {
      // The caller does not need to know why a token is invalid.
      return undefined
    }
    if (!isUserClaims(claims) || !isValidAt(clock.now(), claims)) return undefined
    return justRevoked.has(claims.jti) || isRevoked.get(claims.jti) !== undefined ? undefined : claims
  }

  return {
    make(sub, gen, session = randomBytes(12).toString('base64url')) {
      const iat = Math.floor(clock.now() / 1_000)
      // Short, since a token may be a part of a path, whose parameters have at most 256 characters.
      return app.jwt.sign({
        sub,
        jti: session + randomBytes(6).toString('base64url'),
        gen,
        iat,
        exp: iat + lifeSeconds,
      })
    },
    read,
    revoke(token) {
      const claims = read(token)
      if (!claims) return undefined
      revoke.run(claims.jti, claims.exp * 1_000)
      justRevoked.set(claims.jti, clock.monotonic())
      return claims
    },
    sweep() {
      sweep.run(clock.now() - keptMs)
      for (const [id, at] of justRevoked) {
        if (clock.monotonic() - at < lifeSeconds * 1_000 + setBackMs) break
        justRevoked.delete(id)
      }
    },
  }
}

// The library checks only the configured claims; the shape is checked here.
function isUserClaims(value: unknown): value is UserClaims {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { sub, jti, gen, iat, exp } = value as Record<string, unknown>
  return (
    typeof sub === 'string' &&
    typeof jti === 'string' &&
    Number.isInteger(gen) &&
    Number.isInteger(iat) &&
    Number.isInteger(exp)
  )
}
