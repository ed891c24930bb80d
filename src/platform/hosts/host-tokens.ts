import jwt from '@fastify/jwt'
import { fastify } from 'fastify'
import { isValidAt } from '../../base/time.ts'
import type { Clock } from '../../system/clock.ts'

/** What the token of a host says. */
export interface HostClaims {
  /** Uid of the host. */
  readonly sub: string
  /** Generation of the login that gave it. */
  readonly gen: number
}

/** Tokens of hosts: valid for 15 minutes. */
export interface HostTokens {
  make(uid: string, generation: number): string
  /** @returns undefined for a token that is altered or expired, or from a time that is yet to come */
  read(token: string): HostClaims | undefined
}

const lifeSeconds = 15 * 60

/** By @fastify/jwt, with HS256 and a key of its own, so that no token of a user is one of a host. */
export async function createHostTokens({
  key,
  clock,
}: {
  readonly key: Buffer
  readonly clock: Clock
}): Promise<HostTokens> {
  const app = fastify()
  await app.register(jwt, {
    secret: key,
    sign: { algorithm: 'HS256' },
    // The times are compared here, since this clock is that of the tests too.
    verify: { algorithms: ['HS256'], cache: false, ignoreExpiration: true, requiredClaims: ['sub', 'gen'] },
  })
  await app.ready()
  return {
    make(sub, gen) {
      const iat = Math.floor(clock.now() / 1_000)
      return app.jwt.sign({ sub, gen, iat, exp: iat + lifeSeconds })
    },
    read(token) {
      try {
        const { sub, gen, iat, exp } = app.jwt.verify<Partial<Record<string, unknown>>>(token)
        if (typeof sub !== 'string' || ![gen, iat, exp].every(Number.isInteger)) return undefined
        const isValid = isValidAt(clock.now(), { iat: iat as number, exp: exp as number })
        return isValid ? { sub, gen: gen as number } : undefined
      } catch {
        return undefined
      }
    },
  }
}
