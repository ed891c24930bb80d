import { createBoundedMap } from '../base/bounded-map.ts'
import type { Role } from '../base/role.ts'
import { setBackMs } from './end-reason.ts'
import type { AccessClaims } from './access-token.ts'

/** The user behind an accepted token. */
export interface SessionCaller {
  readonly userName: string
  readonly role: Role
  readonly sessionUid: string
}

/**
 * Access tokens that need no look at their signature: it was right once, or is our own. Such a look costs more than the
 * rest of a read. Their time is compared each time, and they go with their session or its role.
 */
export interface AcceptedTokens {
  /** The user behind a token; nothing where its time is not now, or it must be looked at first. */
  callerOf(token: string, now: number): SessionCaller | undefined
  /** @returns the user, where its time is now */
  accept(
    token: string,
    caller: SessionCaller,
    time: Pick<AccessClaims, 'iat' | 'exp'>,
    now: number,
  ): SessionCaller | undefined
  forget(isGone: (caller: SessionCaller) => boolean): void
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
    forget(isGone) {
      for (const [token, { caller }] of accepted.entries()) if (isGone(caller)) accepted.delete(token)
    },
  }
}
