import type { Check } from '../root/room.ts'
import type { Logger } from '../system/log.ts'

/** The health of the daemon, for `GET /healthz`, `GET /readyz` and the watchdog. */
export interface Health {
  /** Whether the daemon is alive; if not, a restart helps. */
  isAlive(): boolean
  /** The same as `isAlive`, without a line in the journal, for the watchdog. */
  mayFeedWatchdog(): boolean
  /** Whether the daemon can do all its work now. */
  isReady(): boolean
  /** Names of the checks that prevent it; without a line in the journal. */
  failing(): string[]
  /** Names of the other checks that fail: the daemon works, and an operator has to act. */
  notes(): string[]
}

/**
 * Evaluates the checks. Callers are unauthenticated, so the reply only says yes or no; the journal names the failed check,
 * with one line for each change, however often a caller asks.
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
        // During the start a failing check is normal, so it is no warning.
        if (!isWell) log[wasWell ? 'warn' : 'info']({ failed }, `not ${what}`)
        else if (known !== undefined) log.info(what)
        known = failed.join()
        wasWell ||= isWell
      }
      return isWell
    }
  }
  const alive = all.filter(({ kind }) => kind === 'alive')
  const ready = all.filter(({ kind }) => kind !== 'note')
  const notes = all.filter(({ kind }) => kind === 'note')
  return {
    isAlive: answerOf('alive', alive),
    mayFeedWatchdog: () => failingOf(alive).length === 0,
    isReady: answerOf('ready', ready),
    failing: () => failingOf(ready),
    notes: () => failingOf(notes),
  }
}
