import { seeDisk } from '../errors/advice.ts'
import type { Database } from '../store/database.ts'
import { isDatabaseError } from '../store/unwritable.ts'
import type { Logger } from '../system/log.ts'
import type { TrailStore } from './trail-store.ts'

/** What is recorded, but perhaps not on the disk yet, or of which no record comes. Each has its intent there. */
export interface Unsettled {
  add(uid: string): void
  /** To be done in a transaction that waits for the disk; `clear` when it is over. */
  removeIntents(): void
  clear(): void
  /** Waits for the disk. @returns false where that cannot be written */
  settle(): boolean
}

export function createUnsettled(store: TrailStore, { transaction }: Database, log: Logger): Unsettled {
  const uids = new Set<string>()
  // Said once, not each second.
  let isLate = false
  const removeIntents = () => uids.forEach((uid) => store.removeIntent(uid))

  return {
    add: (uid) => void uids.add(uid),
    removeIntents,
    clear: () => uids.clear(),
    settle() {
      try {
        if (uids.size > 0) transaction(removeIntents)
      } catch (error) {
        if (!isDatabaseError(error)) throw error
        if (!isLate)
          log.error(
            { err: error },
            `a power cut would take the newest records of the audit trail; ${seeDisk}`,
          )
        isLate = true
        return false
      }
      uids.clear()
      if (isLate) log.info('the newest records of the audit trail are on the disk now')
      isLate = false
      return true
    },
  }
}
