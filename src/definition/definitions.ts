import { join } from 'node:path'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { SigningKey } from '../upload/signing.ts'
import { AppError } from '../errors/app-error.ts'
import type { Room } from '../room.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { DefinitionSettings } from './config.ts'
import { definitionRoutes } from './routes.ts'
import type { ClusterProfileDetail } from './schemas.ts'
import { openDefinitionStore } from './slots/definition-store.ts'
import { createDefinitionTable } from './slots/definition-table.ts'
import { createEmbedded } from './slots/embedded.ts'
import { createExaminer } from './slots/examiner.ts'
import { createJudgeValues } from './slots/judge-values.ts'
import { createSlots } from './slots/slots.ts'
import { createUploads } from './slots/uploads.ts'

export interface DefinitionsOptions {
  readonly settings: DefinitionSettings
  readonly stateDirectory: string
  readonly database: Database
  readonly runner: CommandRunner
  /** Path of `examine.cjs`. */
  readonly program: string
  readonly signingKey: SigningKey | undefined
  /** Profiles of the running cluster; undefined if there is no cluster. */
  readonly running: () => readonly ClusterProfileDetail[] | undefined
  readonly version: string
  /** Writes an audit record for a change that the daemon makes by itself. */
  readonly record: (entry: SystemEntry) => void
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Opens the store, removes what a killed daemon left there, and builds the room on it. */
export async function createDefinitions(options: DefinitionsOptions): Promise<Room> {
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
  // Uploads end with a refusal. `stop` waits until they have ended, stalled ones too.
  let uploadsEnded: Promise<void> | undefined
  options.stopping.addEventListener('abort', () => void (uploadsEnded = uploads.stop()))
  const slots = createSlots({ store, embedded, judgeValues: createJudgeValues({ store, examiner }), running })
  return {
    async routes(app) {
      await app.register(definitionRoutes, { slots, receive: uploads.receive })
    },
    // So that the first request for the embedded definition does not have to wait.
    background: () =>
      void embedded.refresh().catch((error: unknown) => {
        // The daemon stopped meanwhile.
        if (error instanceof AppError) return
        log.error(
          { err: error },
          `the embedded definition could not be checked; see: ls -l ${settings.embeddedFile}`,
        )
      }),
    stop: () => uploadsEnded ?? uploads.stop(),
  }
}
