import type { HostRole } from '../base/role.ts'
import jwt from '@fastify/jwt'
import { fastify } from 'fastify'

/** Claims of an access token. */
export interface AccessClaims {
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

/**
 * Access tokens by @fastify/jwt, with HS256 only on both sides: issuer and verifier are one process, so an asymmetric
 * key would have no benefit, and accepting a second algorithm would enable attacks.
 */
export async function createAccessTokens(key: Buffer): Promise<AccessTokens> {
  // An instance that serves no requests: the tokens are needed before the app that uses them.
  const app = fastify()
  await app.register(jwt, {
    secret: key,
    sign: { algorithm: 'HS256' },
    verify: { algorithms: ['HS256'], cache: false, requiredClaims: ['sub', 'jti', 'iat', 'exp', 'role'] },
  })
  await app.ready()
  return {
    sign: (claims) => app.jwt.sign({ ...claims }),
    verify(token) {
      try {
        const claims: unknown = app.jwt.verify(token)
        return isAccessClaims(claims) ? claims : undefined
      } catch {
        // The caller does not need to know why a token is invalid.
        return undefined
      }
    },
  }
}

// The library checks only the configured claims; the shape is checked here. An array payload, for example, skips its
// claim checks.
function isAccessClaims(value: unknown): value is AccessClaims {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { sub, jti, iat, exp, role } = value as Record<string, unknown>
  return (
    typeof sub === 'string' &&
    typeof jti === 'string' &&
    Number.isInteger(iat) &&
    Number.isInteger(exp) &&
    (role === 'admin' || role === 'viewer')
  )
}
