import { join } from 'node:path'
import type { HashCost } from '../credentials/password-hash.ts'
import { createAnonymousLog, type AnonymousLog } from '../system/anonymous-log.ts'
import { systemClock, type Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { createRunner, type CommandRunner } from '../system/runner.ts'

/** The machine as the platform sees it; a test replaces parts of it. */
export interface PlatformEdges {
  readonly runner: CommandRunner
  readonly clock: Clock
  /** Log for lines that callers without a session cause; it bounds their number. */
  readonly anonymousLog: AnonymousLog
  /** Path of `examine.cjs`. */
  readonly examineProgram: string
  /** Folder of the pages for browsers. */
  readonly pagesFolder: string
  /** The cost of new password hashes; `credentials/password-hash.ts` has the default. */
  readonly passwordCost?: HashCost
  /** Environment variables of systemd. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** This machine. */
export const platformEdges = (log: Logger): PlatformEdges => ({
  runner: createRunner(log),
  clock: systemClock,
  anonymousLog: createAnonymousLog(log, () => systemClock.monotonic()),
  examineProgram: join(import.meta.dirname, 'examine.cjs'),
  // In dist/ the folder `console` has those of a host.
  pagesFolder: join(import.meta.dirname, 'platform-console'),
  environment: process.env,
})
