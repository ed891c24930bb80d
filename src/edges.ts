import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { ClusterProfileDetail } from './definition/schemas.ts'
import { createHostFiles, type HostFiles } from './host/files.ts'
import type { Snapshot } from './host/snapshot.ts'
import { systemClock, type Clock } from './system/clock.ts'
import { createFollower, type CommandFollower } from './system/follower.ts'
import type { Logger } from './system/log.ts'
import { createRunner, type CommandRunner } from './system/runner.ts'
import { createStrangerLog, type StrangerLog } from './system/stranger-log.ts'

/** Where the daemon ends and the machine begins; a test replaces some of it. */
export interface Edges {
  readonly runner: CommandRunner
  readonly follower: CommandFollower
  readonly clock: Clock
  /** What the kernel tells of the machine. */
  readonly files: HostFiles
  /** Facts that are known beforehand, in the place of those of this machine. */
  readonly facts: Partial<Snapshot> | undefined
  /** Takes the lines that callers without a session cause, and bounds them. */
  readonly strangers: StrangerLog
  /** Folder of passwd, shadow and group; `undefined` is /etc. */
  readonly etc: string | undefined
  /** Cores of the machine. */
  readonly cores: number
  /** What systemd says to the process. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Path of `examine.cjs`. */
  readonly examineProgram: string
  /** Path of `inventory.cjs`. */
  readonly inventoryProgram: string
  /** Profiles of the running cluster; nothing where there is no cluster. */
  readonly running: () => readonly ClusterProfileDetail[] | undefined
  /** How long a request may last after its session has ended, milliseconds; `undefined` is the default. */
  readonly longRequestMs: number | undefined
}

/** This machine. */
export const hostEdges = (log: Logger): Edges => ({
  runner: createRunner(log),
  follower: createFollower({ log }),
  clock: systemClock,
  files: createHostFiles(),
  strangers: createStrangerLog(log, () => systemClock.monotonic()),
  facts: undefined,
  etc: undefined,
  cores: availableParallelism(),
  environment: process.env,
  examineProgram: join(import.meta.dirname, 'examine.cjs'),
  inventoryProgram: join(import.meta.dirname, 'inventory.cjs'),
  // No cluster can be created yet.
  running: () => undefined,
  longRequestMs: undefined,
})
