import { join } from 'node:path'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { SigningKey } from '../upload/signing.ts'
import { AppError } from '../errors/app-error.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { ArchiveLimits } from '../archive/limits.ts'
import type { ClusterProfileDetail } from './schemas.ts'
import { openDefinitionStore } from './slots/definition-store.ts'
import { createDefinitionTable } from './slots/definition-table.ts'
import { createEmbedded } from './slots/embedded.ts'
import { createExaminer, type ExaminationLimits } from './slots/examiner.ts'
import { createJudgeValues } from './slots/judge-values.ts'
import { createSlots, type Slots } from './slots/slots.ts'
import { createUploads, type TakeUpload, type UploadSettings } from './slots/uploads.ts'

/** What an administrator may choose; the section `definitions` of the configuration. */
export interface DefinitionSettings {
  readonly embeddedFile: string
  readonly upload: UploadSettings
  readonly check: ExaminationLimits
  readonly archive: Partial<ArchiveLimits>
}

export interface DefinitionsOptions {
  readonly settings: DefinitionSettings
  readonly stateDirectory: string
  readonly database: Database
  readonly runner: CommandRunner
  /** Path of `examine.cjs`. */
  readonly program: string
  readonly signingKey: SigningKey | undefined
  /** Profiles of the running cluster; nothing where there is no cluster. */
  readonly running: () => readonly ClusterProfileDetail[] | undefined
  readonly version: string
  /** Records what the daemon decides by itself. */
  readonly record: (entry: SystemEntry) => void
  readonly clock: Clock
  readonly log: Logger
}

/** The definitions of this host, put together. */
export interface Definitions {
  readonly slots: Slots
  readonly take: TakeUpload
  /** Looks at the embedded definition, so that nobody has to wait for it. Never fails. */
  start(): Promise<void>
  /** Ends uploads, with a refusal, and what is being checked. A client that stands still is waited for. */
  stop(): Promise<void>
}

/** Opens the store, clears away what a killed daemon left, and builds what works on it. */
export async function createDefinitions(options: DefinitionsOptions): Promise<Definitions> {
  const { settings, database, runner, program, signingKey, running, version, record, clock, log } = options
  const store = await openDefinitionStore({
    folder: join(options.stateDirectory, 'definitions'),
    table: createDefinitionTable(database),
    log,
  })
  const examiner = createExaminer({ runner, program, settings: settings.check, log })
  const shared = { store, examiner, limits: settings.archive, clock }
  const embedded = createEmbedded({
    ...shared,
    file: settings.embeddedFile,
    reserveBytes: settings.upload.reserveBytes,
    version,
    record,
    log,
  })
  const uploads = createUploads({
    ...{ ...shared, settings: settings.upload, signingKey },
    slotOf: () => (running() ? 'update' : 'overridden'),
  })
  return {
    slots: createSlots({ store, embedded, judgeValues: createJudgeValues({ store, examiner }), running }),
    take: uploads.take,
    start: () =>
      embedded.refresh().catch((error: unknown) => {
        // The stop ended it.
        if (error instanceof AppError) return
        log.error(
          { err: error },
          `the embedded definition could not be looked at; see: ls -l ${settings.embeddedFile}`,
        )
      }),
    stop: uploads.stop,
  }
}
