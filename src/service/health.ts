import type { Logger } from '../system/log.ts'

/** What has to hold, each under the name the journal calls it by when it does not. */
export type Checks = Readonly<Record<string, () => boolean>>

/** The answers of `GET /healthz` and `GET /readyz`. */
export interface Health {
  /** Whether the daemon moves; if not, a restart helps. */
  isAlive(): boolean
  /** Whether it can do all its work now. */
  isReady(): boolean
  /** Names of the checks that fail now; without a word in the journal. */
  failing(): string[]
}

/**
 * Asks the checks. Whoever may ask is not known, so the answer is yes or no; which check it was says the journal, one
 * line for each change however often it is asked.
 */
export function createHealth({ alive, ready, log }: { alive: Checks; ready: Checks; log: Logger }): Health {
  const failingOf = (checks: Checks) => Object.keys(checks).filter((name) => checks[name]?.() !== true)
  const answerOf = (what: string, checks: Checks) => {
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
  const all = { ...alive, ...ready }
  return {
    isAlive: answerOf('alive', alive),
    isReady: answerOf('ready', all),
    failing: () => failingOf(all),
  }
}
