import type { Logger } from './log.ts'
import { createTally, createWindow } from '../base/tally.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'

/** A sink of log lines; the logger is one. */
export type Lines = Readonly<Record<Level, (fields: object, message: string) => void>>

/** The journal lines that callers without a session cause. */
export interface AnonymousLog extends Lines {
  /** Counts a line that is written regardless of the limit: the copy of an audit record. */
  reserve(): void
  /** Logs the omitted lines since the last summary. */
  stop(): void
}

const windowMs = 1_000
// At most ten lines a second. Three of them are reserved for errors, since an operator has to act on them, and one for lines
// that are not limited: the summaries of omitted lines.
const mostInWindow = { debug: 6, info: 6, warn: 6, error: 9 } as const satisfies Record<Level, number>

/**
 * Bounds the log lines of a flood of requests without a session: a line beyond the limit is omitted and counted, and one
 * line a minute says how many there were of each message. The journal's own limit is off for this unit, since it would
 * drop copies of audit records too.
 * @param monotonic milliseconds
 */
export function createAnonymousLog(log: Logger, monotonic: () => number): AnonymousLog {
  const window = createWindow(windowMs, monotonic)
  const leftOut = createTally((counts) =>
    log.warn(
      { counts },
      'lines about callers without a session were left out, since there were more than ten in a second',
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
