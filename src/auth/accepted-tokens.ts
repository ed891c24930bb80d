import { createBoundedMap } from '../base/bounded-map.ts'
import { setBackMs } from '../base/time.ts'
import type { HostRole } from '../base/role.ts'
import type { AccessClaims } from './access-token.ts'

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
export interface AcceptedTokens {
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
