import { hash, randomBytes } from 'node:crypto'
import { setBackMs } from '../../base/time.ts'
import type { Clock } from '../../system/clock.ts'
import type { UserRecord, UserStore } from './user-store.ts'

/** Links by which a user sets a password: valid for a day, used once. The database has only their hashes. */
export interface PasswordLinks {
  /** Makes a link for a user, which ends the earlier one; it is shown once. */
  make(uid: string): void
  /** The link that was made and not shown yet. A restart forgets it, and an administrator makes another one. */
  takeUnshown(uid: string): string | undefined
  /** The user of a token; `undefined` for one that is unknown, used or too old. */
  find(token: string): UserRecord | undefined
}

const lifeMs = 86_400_000

/** @param origin the beginning of a link: `https://platform.plant.example` */
export function createPasswordLinks({
  store,
  clock,
  origin,
}: {
  readonly store: UserStore
  readonly clock: Clock
  readonly origin: () => string
}): PasswordLinks {
  const unshown = new Map<string, { readonly token: string; readonly until: number }>()
  return {
    make(uid) {
      const token = randomBytes(32).toString('base64url')
      const until = clock.now() + lifeMs
      store.setLink(uid, hashOf(token), until)
      unshown.set(uid, { token, until })
    },
    takeUnshown(uid) {
      const found = unshown.get(uid)
      unshown.delete(uid)
      if (found === undefined || found.until <= clock.now()) return undefined
      return `${origin()}/v1/auth/password/${found.token}/activate`
    },
    // One that ends later than any that is made now was made while the clock was ahead.
    find: (token) => store.findByLink(hashOf(token), clock.now(), clock.now() + lifeMs + setBackMs),
  }
}

const hashOf = (token: string) => hash('sha256', token, 'hex')
