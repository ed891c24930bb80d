import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { ClusterOfSlots } from '../definition/definitions.ts'
import { createHostFiles, type HostFiles } from '../host/files.ts'
import type { Snapshot } from '../host/snapshot.ts'
import { systemClock, type Clock } from '../system/clock.ts'
import { answersNames } from '../network/trial/outside.ts'
import type { NetworkOptions } from '../network/room.ts'
import { createFollower, type CommandFollower } from '../system/follower.ts'
import type { Logger } from '../system/log.ts'
import { createRunner, type CommandRunner, type CommandStreamer } from '../system/runner.ts'
import type { PlatformClient } from '../uplink/client.ts'
import { createAnonymousLog, type AnonymousLog } from '../system/anonymous-log.ts'

/** The machine as the daemon sees it; a test replaces parts of it. */
export interface Edges {
  readonly runner: CommandRunner
  readonly follower: CommandFollower
  /** Passes on the lines of programs as they come. */
  readonly streamer: CommandStreamer
  readonly clock: Clock
  /** Files in which the kernel describes the machine. */
  readonly files: HostFiles
  /** Facts that replace those read from this machine. */
  readonly facts: Partial<Snapshot> | undefined
  /** Log for lines that callers without a session cause; it bounds their number. */
  readonly anonymousLog: AnonymousLog
  /** Folder of passwd, shadow and group; `undefined` is /etc. */
  readonly etc: string | undefined
  readonly cores: number
  /** Architecture of this machine, as OCI images name it. */
  readonly architecture: string
  /** Id of this boot of the kernel. */
  readonly bootId: string
  /** Environment variables of systemd. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Path of `examine.cjs`. */
  readonly examineProgram: string
  /** Path of `content.cjs`. */
  readonly contentProgram: string
  /** Path of `inventory.cjs`. */
  readonly inventoryProgram: string
  /** Path of `prepare.cjs`. */
  readonly prepareProgram: string
  /** Path of `step.cjs`. */
  readonly stepProgram: string
  /** Path of `keeper.cjs`. */
  readonly keeperProgram: string
  /** Path of `verb.cjs`. */
  readonly verbProgram: string
  /** Path of `support.cjs`. */
  readonly supportProgram: string
  /** Folder of the pages for browsers. */
  readonly pagesFolder: string
  /** Path of `platform.cjs`. */
  readonly platformProgram: string
  /** Folder of the open change of the network. */
  readonly networkFolder: string
  /** Replaces the files and programs that the network is read from. */
  readonly network: Pick<NetworkOptions, 'files' | 'runner' | 'findDevice'> | undefined
  /** Whether a name server of this host answers. */
  readonly answersNames: () => Promise<boolean>
  /** Folder below which container runtimes are searched for. */
  readonly runtimeRoot: string
  /** Replaces what definitions ask of the cluster. */
  readonly clusterOfSlots: ClusterOfSlots | undefined
  /** Replaces the calls to the platform; `undefined` is the network. */
  readonly platformClient: PlatformClient | undefined
  /** Replaces the time between these calls. */
  readonly platformPause: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined
  /** Time that a request may last after the end of its session, milliseconds; `undefined` is the default. */
  readonly longRequestMs: number | undefined
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Without one, each start counts as a boot.
    return randomUUID()
  }
}

/** This machine. */
export const hostEdges = (log: Logger): Edges => ({
  runner: createRunner(log),
  follower: createFollower({ log }),
  streamer: createRunner(log),
  clock: systemClock,
  files: createHostFiles(),
  anonymousLog: createAnonymousLog(log, () => systemClock.monotonic()),
  facts: undefined,
  etc: undefined,
  cores: availableParallelism(),
  // Go's names, which OCI uses (github.com/opencontainers/image-spec, image-index.md), where they differ from Node's.
  architecture: { x64: 'amd64', ia32: '386' }[process.arch as string] ?? process.arch,
  bootId: readBootId(),
  environment: process.env,
  examineProgram: join(import.meta.dirname, 'examine.cjs'),
  contentProgram: join(import.meta.dirname, 'content.cjs'),
  inventoryProgram: join(import.meta.dirname, 'inventory.cjs'),
  prepareProgram: join(import.meta.dirname, 'prepare.cjs'),
  stepProgram: join(import.meta.dirname, 'step.cjs'),
  keeperProgram: join(import.meta.dirname, 'keeper.cjs'),
  verbProgram: join(import.meta.dirname, 'verb.cjs'),
  network: undefined,
  supportProgram: join(import.meta.dirname, 'support.cjs'),
  pagesFolder: join(import.meta.dirname, 'console'),
  platformProgram: join(import.meta.dirname, 'platform.cjs'),
  networkFolder: '/run/edgehostd-network',
  answersNames,
  runtimeRoot: '/',
  clusterOfSlots: undefined,
  platformClient: undefined,
  platformPause: undefined,
  longRequestMs: undefined,
})
