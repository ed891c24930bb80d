import jwt from '@fastify/jwt'
import { fastify } from 'fastify'
import { isRecord, type JsonObject } from '../base/json.ts'

interface SignedClaimsOptions {
  readonly key: Buffer
  /** Claims without which a token is refused. Their types are checked by the caller. */
  readonly required: readonly string[]
  /** Whether the library compares `exp` with the clock of this machine; otherwise the caller does that with its own. */
  readonly isExpiryChecked: boolean
}

/** Tokens of one kind: claims that this process signs, and reads when they come back. */
interface SignedClaims {
  sign(claims: object): string
  /** @returns undefined for a token that is altered, of another kind, without its claims or, if that is checked, expired */
  read(token: string): JsonObject | undefined
}

/**
 * Tokens by @fastify/jwt, with HS256 only on both sides: issuer and verifier are one process, so an asymmetric key would have no benefit,
 * and accepting a second algorithm would enable attacks. Each kind has a key of its own, so that no token of one kind is one of another.
 */
export async function createSignedClaims({
  key,
  required,
  isExpiryChecked,
}: SignedClaimsOptions): Promise<SignedClaims> {
  // An instance that serves no requests: tokens are needed before the app that uses them, and the library is a part of one.
  const app = fastify()
  await app.register(jwt, {
    secret: key,
    sign: { algorithm: 'HS256' },
    verify: {
      algorithms: ['HS256'],
      cache: false,
      ignoreExpiration: !isExpiryChecked,
      requiredClaims: [...required],
    },
  })
  await app.ready()
  return {
    sign: (claims) => app.jwt.sign({ ...claims }),
    read(token) {
      try {
        const claims: unknown = app.jwt.verify(token)
        // The payload may be an array, which skips the checks of the library.
        return isRecord(claims) ? claims : undefined
      } catch {
        // The caller does not need to know why a token is invalid.
        return undefined
      }
    },
  }
}
