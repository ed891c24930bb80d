import { join } from 'node:path'
import type { Secrets } from '../../secrets/secrets.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { WorkerOptions } from '../../program/run-worker.ts'
import { createRunningUploads } from '../../upload/running.ts'
import type { PlatformSettings } from '../config.ts'
import { createExaminations, mostUploads, type Examinations } from '../examinations.ts'
import { uploadField } from '../../upload/receive.ts'
import { openKeptFolders } from '../kept-folders.ts'
import type { RequireProject } from '../projects/projects.ts'
import { createProfiles, type Profiles } from '../profiles/profiles.ts'
import type { UsingCluster } from '../profiles/profile-list.ts'
import { createProfileStore } from '../profiles/profile-store.ts'
import { sealedColumns, sealOf } from '../secret/sealed-columns.ts'
import { createPackStore } from './pack-store.ts'
import { createPacks, type Packs } from './packs.ts'

export interface PackPartsOptions {
  readonly stateDirectory: string
  readonly settings: PlatformSettings['packs']
  readonly database: Database
  /** See `LeftoverOptions`. */
  readonly completeUntil: number
  readonly read: Reader['read']
  readonly secrets: Secrets
  readonly requireProject: RequireProject
  /** Of `examine.cjs`. */
  readonly worker: WorkerOptions
  /** The clusters that use a profile. */
  readonly usesOf: (profileUid: string) => readonly UsingCluster[]
  /** The clusters that were made of a pack. */
  readonly madeOf: (packUid: string) => readonly UsingCluster[]
  /** Ends what is being received. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Packs, and the profiles that are made of them. */
export interface PackParts {
  readonly packs: Packs
  readonly profiles: Profiles
  readonly examinations: Examinations
  /** Names of what keeps a project from being deleted. */
  usesOf(projectUid: string): readonly string[]
  stop(): Promise<void>
}

/** Creates the parts in the order of their dependencies, and removes what a killed daemon left. */
export async function createPackParts(options: PackPartsOptions): Promise<PackParts> {
  const { stateDirectory, settings, database, read, secrets, requireProject, worker } = options
  const { usesOf, madeOf, stopping, clock, log } = options
  const examinations = createExaminations(worker)
  const { maximum, maximumPerUser: ofUser, waitSeconds } = settings
  const uploads = createRunningUploads({
    ...{ what: 'packs and cluster profiles', field: uploadField, maximum, ofUser, ofAll: mostUploads },
    ...{ waitSeconds, log },
  })
  const packStore = createPackStore(database)
  const profileStore = createProfileStore(database)
  const profileFolders = await openKeptFolders({
    completeUntil: options.completeUntil,
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
    completeUntil: options.completeUntil,
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
    ...{ store: profileStore, folders: profileFolders, packs: packStore, database, read, examinations },
    ...{
      uploads,
      requireProject,
      settings,
      usesOf,
      clock,
      seal: sealOf(secrets, sealedColumns.profileVariables),
    },
  })
  const packs = createPacks({
    ...{
      store: packStore,
      folders: packFolders,
      database,
      read,
      requireProject,
      examinations,
      uploads,
      settings,
      clock,
    },
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
    ...{ packs, profiles, examinations, stop },
    usesOf: (projectUid) => [...packs.usesOfProject(projectUid), ...profiles.usesOfProject(projectUid)],
  }
}
