import type { Ground } from '../../root/room.ts'
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
import { freeBytesOf, receiveUpload, type UploadPart, uploadField } from '../../upload/receive.ts'
import { type RunningUpload, type RunningUploads, createRunningUploads } from '../../upload/running.ts'
import type { Staged } from '../../upload/staging.ts'
import { platformErrors } from '../codes.ts'
import type { PlatformSettings } from '../config.ts'
import {
  type ExaminationCaller,
  type Examinations,
  createExaminations,
  mostUploads,
} from '../examinations.ts'
import { type KeptFolders, openKeptFolders } from '../kept-folders.ts'
import type { RequireProject } from '../projects/projects.ts'
import type { PackSummary } from './schemas.ts'
import { requireBytes } from '../scope-counts.ts'
import { nameTaken } from '../names.ts'
import {
  packList,
  toPackSummary,
  packColumns,
  toPackRecord,
  type PackRecord,
  type PackStore,
  createPackStore,
} from './store.ts'
import { createProfiles, type Profiles } from '../profiles/profiles.ts'
import { type UsingCluster, createProfileStore } from '../profiles/store.ts'
import { sealedColumns, sealOf } from '../system/secret.ts'

interface PacksOptions {
  readonly store: PackStore
  readonly folders: KeptFolders
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly examinations: Pick<Examinations, 'pack'>
  /** Uploads of packs and profiles together. */
  readonly uploads: Pick<RunningUploads, 'run'>
  readonly settings: PlatformSettings['packs']
  /** Names of the profiles that use a pack, and of the clusters that were made of it. */
  readonly usesOf: (pack: PackRecord) => readonly string[]
  readonly clock: Pick<Clock, 'now'>
}

/** A form with a pack that is arriving; see `UploadOptions`. */
interface PackForm {
  readonly parts: (signal: AbortSignal) => AsyncIterable<UploadPart>
  readonly expectedBytes: number | undefined
  readonly caller: ExaminationCaller
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
  /** Names of resources that block the deletion of a project. */
  usesOfProject(projectUid: string): readonly string[]
}

function createPacks(options: PacksOptions): Packs {
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
    { parts, expectedBytes, caller }: PackForm,
    projectUid: string,
    staged: Staged,
    { signal, place }: RunningUpload,
  ): Promise<PackRecord> {
    const { uid, folder } = staged
    const { file } = await receiveUpload({
      parts: parts(signal),
      folder,
      limitBytes,
      reserveBytes,
      expectedBytes,
      place,
      signal,
      signingKey: undefined,
      freeBytes: () => freeBytesOf(folder),
    })
    const order = { file, folder, uid, limits: packArchiveLimits, reserveBytes }
    const found = await examinations.pack(order, { ...caller, signal })
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
      uploads.run(form.caller, async (upload) => {
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
      resource: packList,
      table: 'pack',
      columns: packColumns,
      count: store.counts.all,
      sql: database.sql,
      read,
      toItem: (row) => toPackSummary(toPackRecord(row)),
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

interface PackPartsOptions {
  readonly requireProject: RequireProject
  /** Path of `examine.cjs`. */
  readonly program: string
  /** The clusters that use a profile. */
  readonly usesOf: (profileUid: string) => readonly UsingCluster[]
  /** The clusters that were made of a pack. */
  readonly madeOf: (packUid: string) => readonly UsingCluster[]
}

/** Packs, and the profiles that are made of them. */
export interface PackParts {
  readonly packs: Packs
  readonly profiles: Profiles
  readonly examinations: Examinations
  /** Names of resources that block the deletion of a project. */
  usesOf(projectUid: string): readonly string[]
  stop(): Promise<void>
}

/** Creates the parts in the order of their dependencies, and removes what a killed daemon left. */
export async function createPackParts(
  ground: Ground<{ readonly platform: Pick<PlatformSettings, 'packs'> }>,
  { requireProject, program, usesOf, madeOf }: PackPartsOptions,
): Promise<PackParts> {
  const { stateDirectory, database, completeUntil, read, secrets, runner, stopping, clock, log } = ground
  const settings = ground.config.platform.packs
  const examinations = createExaminations({ runner, program, log })
  const { maximum, maximumPerUser: ofUser, waitSeconds } = settings
  const uploads = createRunningUploads({
    what: 'packs and cluster profiles',
    field: uploadField,
    maximum,
    ofUser,
    ofAll: mostUploads,
    waitSeconds,
    log,
  })
  const packStore = createPackStore(database)
  const profileStore = createProfileStore(database)
  const profileFolders = await openKeptFolders({
    completeUntil,
    log,
    folder: join(stateDirectory, 'profiles'),
    named: profileStore.filesUids().map(({ filesUid }) => filesUid),
    onMissing(filesUid) {
      const { uid = '' } = profileStore.filesUids().find((each) => each.filesUid === filesUid) ?? {}
      const { name, version } = profileStore.find(uid) ?? {}
      profileStore.remove(uid)
      log.error({ name, version }, 'the files of a cluster profile are missing; import it again')
    },
  })
  const packFolders = await openKeptFolders({
    completeUntil,
    log,
    folder: join(stateDirectory, 'packs'),
    named: packStore.uids(),
    onMissing(uid) {
      const { name, version } = packStore.find(uid) ?? {}
      packStore.remove(uid)
      log.error({ name, version }, 'the files of a pack are missing; upload it again')
    },
  })
  const profiles = createProfiles({
    store: profileStore,
    folders: profileFolders,
    packs: packStore,
    database,
    read,
    examinations,
    uploads,
    requireProject,
    settings,
    usesOf,
    clock,
    seal: sealOf(secrets, sealedColumns.profileVariables),
  })
  const packs = createPacks({
    store: packStore,
    folders: packFolders,
    database,
    read,
    requireProject,
    examinations,
    uploads,
    settings,
    clock,
    usesOf: (pack) => [
      ...profiles.usesOfPack(pack),
      ...madeOf(pack.uid).map(({ name }) => `the cluster ${name}`),
    ],
  })
  const stop = async () => {
    await Promise.all([uploads.stop(), examinations.stop()])
  }
  stopping.addEventListener('abort', () => void stop(), { once: true })
  return {
    packs,
    profiles,
    examinations,
    stop,
    usesOf: (projectUid) => [...packs.usesOfProject(projectUid), ...profiles.usesOfProject(projectUid)],
  }
}
