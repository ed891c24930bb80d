import type { Check } from '../room.ts'
import type { Logger } from '../system/log.ts'

/** The answers of `GET /healthz` and `GET /readyz`. */
export interface Health {
  /** Whether the daemon moves; if not, a restart helps. */
  isAlive(): boolean
  /** The same without a word in the journal, for the watchdog. */
  moves(): boolean
  /** Whether it can do all its work now. */
  isReady(): boolean
  /** Names of the checks that fail now; without a word in the journal. */
  failing(): string[]
}

/**
 * Asks the checks. Callers are unauthenticated, so the reply only says yes or no; the journal names the failed check, one
 * line for each change however often it is asked.
 */
export function createHealth({ checks: all, log }: { checks: readonly Check[]; log: Logger }): Health {
  const failingOf = (checks: readonly Check[]) =>
    checks.filter(({ holds }) => !holds()).map(({ name }) => name)
  const answerOf = (what: string, checks: readonly Check[]) => {
    let known: string | undefined
    let wasWell = false
    return () => {
      const failed = failingOf(checks)
      const isWell = failed.length === 0
      if (failed.join() !== known) {
        // On the way up it is no wonder.
        if (!isWell) log[wasWell ? 'warn' : 'info']({ failed }, `not ${what}`)
        else if (known !== undefined) log.info(what)
        known = failed.join()
        wasWell ||= isWell
      }
      return isWell
    }
  }
  const alive = all.filter(({ kind }) => kind === 'alive')
  return {
    isAlive: answerOf('alive', alive),
    moves: () => failingOf(alive).length === 0,
    isReady: answerOf('ready', all),
    failing: () => failingOf(all),
  }
}
