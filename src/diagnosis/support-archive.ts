// The support archive that the API generates: made by the program of `edgehostctl support` (the verb `make-support-archive`), one at a time, kept
// until the next one or for a time. `archive.json` beside it says what became of it, also after a restart of the daemon, which ends the wait for the
// program.

import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { timeInName } from '../base/time.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { storageFull } from '../errors/system-reason.ts'
import type { Clock } from '../system/clock.ts'
import { readJsonFile, replaceFile, spaceOf } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import type { Verbs, VerbCaller } from '../verbs/call.ts'
import type { DiagnosisSettings } from './config.ts'
import type { LogsStatus } from './schemas.ts'
import { archiveFile, makeSupportArchive } from './verbs.ts'

interface SupportArchiveOptions {
  readonly verbs: Verbs
  readonly stateDirectory: string
  readonly settings: DiagnosisSettings['archive']
  readonly hostName: () => string
  readonly clock: Clock
  readonly log: Logger
}

/** Content of `archive.json`. */
interface Record {
  readonly uid: string
  readonly state: 'InProgress' | 'Completed' | 'Failed'
  readonly message: string
  /** Milliseconds since 1970: its begin, and then its end. */
  readonly at: number
  /** Its name as the file of a client. */
  readonly name: string
}

export interface SupportArchive {
  /** Reads the record of an earlier run of the daemon, and removes what it does not name. */
  prepare(): Promise<void>
  /**
   * Begins an archive; while one is being made, it is that one.
   * @throws AppError StorageFull
   */
  generate(caller: VerbCaller): Promise<{ readonly uid: string; readonly isNew: boolean }>
  status(): LogsStatus
  /** The archive; the caller closes it. @throws AppError NotFound */
  open(): Promise<{
    readonly file: FileHandle
    readonly sizeBytes: number
    readonly uid: string
    readonly name: string
  }>
  /** Removes an archive whose time is over. */
  removeOld(): Promise<void>
}

// Beside the archive.
const spareBytes = 67_108_864
const hourMs = 3_600_000

export function createSupportArchive(options: SupportArchiveOptions): SupportArchive {
  const { verbs, stateDirectory, settings, hostName, clock, log } = options
  const folder = dirname(archiveFile(stateDirectory, ''))
  const recordFile = join(folder, 'archive.json')
  let record: Record | undefined

  async function put(next: Record): Promise<void> {
    await replaceFile(recordFile, JSON.stringify(next), 0o600)
    record = next
  }

  /** Removes all files but these. */
  async function clear(...kept: readonly string[]): Promise<void> {
    for (const name of await readdir(folder).catch(() => []))
      if (!kept.includes(name)) await rm(join(folder, name), { recursive: true, force: true })
  }

  async function make(begun: Record, caller: VerbCaller): Promise<void> {
    const { uid } = begun
    try {
      const { problems } = await verbs.call(
        makeSupportArchive,
        { uid, limitBytes: settings.limitBytes },
        caller,
      )
      const left = problems === 0 ? '' : `; ${problems} sources could not be read, see its README.txt`
      await put({ ...begun, state: 'Completed', message: `the archive is ready${left}`, at: clock.now() })
    } catch (error) {
      log.warn({ err: error }, 'the support archive could not be made')
      const message = `the archive could not be made: ${(error as Error).message}`
      await rm(archiveFile(stateDirectory, uid), { force: true }).catch(() => undefined)
      await put({ ...begun, state: 'Failed', message, at: clock.now() }).catch(() => undefined)
    }
  }

  const removeOld = async () => {
    if (record === undefined || record.state === 'InProgress') return
    const ageMs = clock.now() - record.at
    if (ageMs < settings.keptHours * hourMs && ageMs >= -hourMs) return
    await clear()
    record = undefined
  }

  return {
    async prepare() {
      record = await readJsonFile<Record>(recordFile).catch(() => undefined)
      if (record?.state === 'InProgress') {
        const message = 'edgehostd was restarted while the archive was made; generate it again'
        await put({ ...record, state: 'Failed', message, at: clock.now() })
      }
      await clear('archive.json', ...(record?.state === 'Completed' ? [`${record.uid}.tar`] : []))
      await removeOld()
    },
    async generate(caller) {
      if (record?.state === 'InProgress') return { uid: record.uid, isNew: false }
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const uid = randomUUID()
      const name = `edgehostd-support-${hostName().replace(/[^\w.-]/g, '-')}-${timeInName(clock.now())}.tar`
      const begun: Record = { uid, state: 'InProgress', message: '', at: clock.now(), name }
      const before = record
      // At once, so that a second request finds it.
      record = begun
      try {
        await clear()
        const free = (await spaceOf(folder))?.freeBytes ?? Infinity
        const missing = settings.limitBytes + spareBytes - free
        if (missing > 0) throw storageFull(missing, undefined, folder)
        await put(begun)
      } catch (error) {
        record = before?.state === 'Completed' ? undefined : before
        throw error
      }
      void make(begun, caller)
      return { uid, isNew: true }
    },
    status() {
      if (record === undefined) return { status: 'Unknown', msg: 'no archive was generated' }
      return { status: record.state, msg: record.message, uid: record.uid }
    },
    async open() {
      if (record?.state !== 'Completed')
        throw new AppError(
          generalErrors.NotFound,
          record?.state === 'InProgress'
            ? 'the archive is being made; ask for generate-logs-status'
            : `there is no archive${record === undefined ? '' : ` (${record.message})`}; generate one with POST generate-logs`,
        )
      const { uid, name } = record
      const file = await open(archiveFile(stateDirectory, uid)).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        throw new AppError(
          generalErrors.NotFound,
          'the archive is not there any more; generate one with POST generate-logs',
        )
      })
      try {
        return { file, sizeBytes: (await file.stat()).size, uid, name }
      } catch (error) {
        await file.close()
        throw error
      }
    },
    removeOld,
  }
}
