import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { packArchiveLimits } from '../../archive/limits.ts'
import { packContent, packReply } from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { freeBytesOf, receiveUpload, type UploadPart } from '../../upload/receive.ts'
import type { RunningUpload, RunningUploads } from '../../upload/running.ts'
import type { Staged } from '../../upload/staging.ts'
import { platformErrors } from '../codes.ts'
import type { PlatformSettings } from '../config.ts'
import type { Asker, Examinations } from '../examinations.ts'
import type { KeptFolders } from '../kept-folders.ts'
import type { RequireProject } from '../projects/projects.ts'
import type { PackSummary } from '../schemas/packs.ts'
import { requireBytes } from '../scope-counts.ts'
import { nameTaken } from '../taken-names.ts'
import { packList, toPackSummary } from './pack-list.ts'
import { packColumns, toPackRecord, type PackRecord, type PackStore } from './pack-store.ts'

export interface PacksOptions {
  readonly store: PackStore
  readonly folders: KeptFolders
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly examinations: Pick<Examinations, 'pack'>
  /** Those of packs and profiles together. */
  readonly uploads: Pick<RunningUploads, 'run'>
  readonly settings: PlatformSettings['packs']
  /** Names of the profiles that use a pack, and of the clusters that were made of it. */
  readonly usesOf: (pack: PackRecord) => readonly string[]
  readonly clock: Pick<Clock, 'now'>
}

/** A form with a pack that is arriving; see `UploadOptions`. */
export interface PackForm {
  readonly parts: (signal: AbortSignal) => AsyncIterable<UploadPart>
  readonly expectedBytes: number | undefined
  readonly asker: Asker
}

/** The packs that were given to the platform. */
export interface Packs {
  /**
   * Receives the folder of a pack, examines it in a process of its own, and keeps it.
   * @throws AppError of `receiveUpload` and of the examination; PackExists, LimitReached
   */
  receive(form: PackForm, projectUid: string): Promise<PackRecord>
  readonly list: SqlList<PackSummary>
  inScope(projectUid: string): SqlCondition
  /** @throws AppError NotFound for a pack of another scope too */
  get(uid: string, projectUid: string): PackRecord
  /** The reply about one pack, JSON. @throws AppError NotFound */
  open(uid: string, projectUid: string): Promise<Readable>
  /** @throws AppError NotFound, PackInUse */
  remove(uid: string, projectUid: string): Promise<void>
  /** Whether it was not deleted meanwhile. */
  has(pack: Pick<PackRecord, 'uid'>): boolean
  /** The folder with the files of a pack, for `definition build`. */
  folderOf(pack: Pick<PackRecord, 'uid'>): string
  /** Names of what keeps a project from being deleted. */
  usesOfProject(projectUid: string): readonly string[]
}

export function createPacks(options: PacksOptions): Packs {
  const { store, folders, database, read, requireProject, examinations, uploads, settings, usesOf, clock } =
    options
  const { limitBytes, scopeLimitBytes, reserveBytes } = settings

  function get(uid: string, projectUid: string): PackRecord {
    const pack = store.find(uid)
    if (pack?.projectUid !== projectUid)
      throw new AppError(generalErrors.NotFound, 'there is no pack with this uid in this scope')
    return pack
  }

  function requireNew(
    projectUid: string,
    { name, version, sizeBytes }: Pick<PackRecord, 'name' | 'version' | 'sizeBytes'>,
  ): void {
    store.counts.requireRoom(projectUid)
    requireBytes('packs', { taken: store.bytesIn(projectUid), more: sizeBytes, limit: scopeLimitBytes })
    if (store.named(projectUid, name).some((each) => each.version === version))
      throw new AppError(platformErrors.PackExists, `there is a pack ${name} ${version} in this scope`)
    const taken = store.findTaken(projectUid, name)
    if (taken !== undefined && taken !== name)
      throw nameTaken(platformErrors.PackExists, 'pack', { name, taken }, 'in this scope')
  }

  async function receiveInto(
    { parts, expectedBytes, asker }: PackForm,
    projectUid: string,
    staged: Staged,
    { signal, place }: RunningUpload,
  ): Promise<PackRecord> {
    const { uid, folder } = staged
    const { file } = await receiveUpload({
      ...{ parts: parts(signal), folder, limitBytes, reserveBytes, expectedBytes, place, signal },
      ...{ signingKey: undefined, freeBytes: () => freeBytesOf(folder) },
    })
    const order = { file, folder, uid, limits: packArchiveLimits, reserveBytes }
    const found = await examinations.pack(order, { ...asker, signal })
    await rm(file)
    signal.throwIfAborted()
    requireNew(projectUid, found)
    const pack: PackRecord = { ...found, uid, projectUid, createdAt: clock.now() }
    await folders.keep(staged, () => {
      database.transaction(() => {
        signal.throwIfAborted()
        requireProject(projectUid)
        requireNew(projectUid, found)
        store.add(pack)
      })
    })
    return pack
  }

  return {
    get,
    receive: (form, projectUid) =>
      uploads.run(form.asker, async (upload) => {
        const staged = await folders.stage()
        try {
          return await receiveInto(form, projectUid, staged, upload)
        } catch (error) {
          await folders.removeStaged(staged)
          // If the upload was ended, the client gets that reason, not an error that followed from it.
          throw upload.signal.aborted ? upload.signal.reason : error
        }
      }),
    list: createSqlList({
      ...{ resource: packList, table: 'pack', columns: packColumns, count: store.counts.all },
      ...{ sql: database.sql, read, toItem: (row) => toPackSummary(toPackRecord(row)) },
    }),
    inScope: store.counts.condition,
    async open(uid, projectUid) {
      get(uid, projectUid)
      return (await folders.open(uid, packReply)).createReadStream()
    },
    async remove(uid, projectUid) {
      database.transaction(() => {
        const pack = get(uid, projectUid)
        const uses = usesOf(pack)
        if (uses.length > 0)
          throw new AppError(
            platformErrors.PackInUse,
            `${pack.name} ${pack.version} is used by ${uses.join(', ')}`,
          )
        store.remove(uid)
      })
      await folders.remove(uid)
    },
    has: ({ uid }) => store.find(uid) !== undefined,
    folderOf: ({ uid }) => join(folders.folder, uid, packContent),
    usesOfProject: (projectUid) => store.counts.usesOf(projectUid, 'pack'),
  }
}
