import type { Logger } from './log.ts'
import { createTally } from '../base/tally.ts'
import { createWindow } from '../base/window.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'

/** Where lines go. The logger is one. */
export type Lines = Readonly<Record<Level, (fields: object, message: string) => void>>

/** The journal lines that callers without a session cause. */
export interface StrangerLog extends Lines {
  /** Takes the place of a line that is written whatever the limit says: the copy of an audit record. */
  reserve(): void
  /** Says what was left out since it was last said. */
  stop(): void
}

const windowMs = 1_000
// Of ten a second. Errors have places of their own, since an operator has to mend what they name. The last place is for
// lines that are written anyway: the sums of what was counted.
const mostInWindow = { debug: 6, info: 6, warn: 6, error: 9 } as const satisfies Record<Level, number>

/**
 * Bounds what a flood of requests without a session writes: a line beyond the limit is left out and counted, and one
 * line a minute says how many there were of each message. The journal's own limit is off for this unit, since it would
 * drop copies of audit records too.
 * @param monotonic milliseconds
 */
export function createStrangerLog(log: Logger, monotonic: () => number): StrangerLog {
  const window = createWindow(windowMs, monotonic)
  const leftOut = createTally((counts) =>
    log.warn(
      { counts },
      'lines about callers without a session were left out, being more than the journal takes in a second',
    ),
  )
  const lineOf =
    (level: Level) =>
    (fields: object, message: string): void => {
      if (!log.isLevelEnabled(level)) return
      if (window.count() >= mostInWindow[level]) {
        leftOut.add(message)
        return
      }
      window.add()
      log[level](fields, message)
    }
  return {
    debug: lineOf('debug'),
    info: lineOf('info'),
    warn: lineOf('warn'),
    error: lineOf('error'),
    reserve: window.add,
    stop: leftOut.stop,
  }
}
