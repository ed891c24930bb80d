import { createReadStream } from 'node:fs'
import { readdir, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Compared } from '../../base/described-change.ts'
import { createLock } from '../../base/lock.ts'
import { formatTime } from '../../base/time.ts'
import { defaultLimits } from '../../archive/limits.ts'
import { chooseVersion, newestVersion } from '../../definition/read/choose-version.ts'
import {
  exportFiles,
  profilePacks,
  type ExaminedExport,
  type ProfileSource,
} from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Seal } from '../../secrets/seal.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { sizeOf } from '../../system/files.ts'
import { freeBytesOf, receiveBody, receivedFile } from '../../upload/receive.ts'
import type { RunningUploads } from '../../upload/running.ts'
import type { Staged } from '../../upload/staging.ts'
import { platformErrors } from '../codes.ts'
import type { PlatformSettings } from '../config.ts'
import type { ExaminationCaller, Examinations, ProfileText } from '../examinations.ts'
import type { KeptFolders } from '../kept-folders.ts'
import type { PackRecord, PackStore } from '../packs/store.ts'
import type { RequireProject } from '../projects/projects.ts'
import type { ClusterProfile, Variable } from './schemas.ts'
import { requireBytes } from '../scope-counts.ts'
import { restoreSecrets } from './kept-secrets.ts'
import {
  type UsingCluster,
  comparedProfile,
  profileList,
  toClusterProfile,
  headColumns,
  toProfileHead,
  type ProfileHead,
  type ProfileRecord,
  type ProfileStore,
} from './store.ts'
import { nameTaken } from '../names.ts'

export interface ProfilesOptions {
  readonly store: ProfileStore
  readonly folders: KeptFolders
  readonly packs: Pick<PackStore, 'named'>
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly examinations: Pick<Examinations, 'profile'>
  /** Uploads of packs and profiles together. */
  readonly uploads: Pick<RunningUploads, 'run'>
  readonly settings: Pick<PlatformSettings['packs'], 'reserveBytes' | 'scopeLimitBytes'>
  /** Seals variables; their defaults may be secret. */
  readonly seal: Seal
  /** The clusters that use a profile. */
  readonly usesOf: (uid: string) => readonly UsingCluster[]
  readonly clock: Pick<Clock, 'now'>
}

/** A profile that is arriving. */
export interface ProfileBody {
  /** Content-Length, if the client sent it. */
  readonly expectedBytes: number | undefined
  /** Passes the chunks on as they arrive, and awaits what it gets for each. */
  readonly read: (onChunk: (chunk: Buffer) => Promise<void>, signal: AbortSignal) => Promise<void>
}

export type ExportFormat = keyof typeof exportFiles

/** The cluster profiles of the platform. */
export interface Profiles {
  /**
   * Receives a profile as it was exported, JSON or YAML, examines it in a process of its own, and keeps it.
   * @throws AppError of `receiveBody` and of the examination; ProfileExists, LimitReached
   */
  receive(
    body: ProfileBody,
    how: { readonly projectUid: string; readonly isPublished: boolean },
    caller: ExaminationCaller,
  ): Promise<ProfileHead>
  readonly list: SqlList<ClusterProfile>
  inScope(projectUid: string): SqlCondition
  /** @throws AppError NotFound for a profile of another scope too */
  get(uid: string, projectUid: string): ProfileRecord
  /** A profile as the audit trail compares it. @throws AppError NotFound */
  compared(uid: string, projectUid: string): Compared
  /** The reply about one profile, JSON. @param withValues whether its packs have their values. @throws AppError NotFound */
  open(uid: string, projectUid: string, withValues: boolean): Readable
  /**
   * The profile as it was imported, but for its uid and times; the one reply with its sensitive values.
   * @throws AppError NotFound, SecretReplaced
   */
  export(uid: string, projectUid: string, format: ExportFormat): Readable
  /** @throws AppError NotFound, ProfilePublished, BadRequest, LimitReached, and why the examination refuses them */
  setVariables(
    uid: string,
    projectUid: string,
    variables: readonly Variable[],
    caller: ExaminationCaller & {
      /** Called in turn with other changes; throws where the caller meant another state. */
      readonly requireMatch?: () => void
    },
  ): Promise<void>
  /** @throws AppError NotFound, ProfileInUse */
  remove(uid: string, projectUid: string, requireMatch?: () => void): Promise<void>
  /** The profile with this uid, of the project or of the tenant. */
  findUsable(uid: string, projectUid: string): ProfileRecord | undefined
  /** Source for the definition of a cluster; with its sensitive values. @throws AppError SecretReplaced */
  sourceOf(profile: ProfileRecord): ProfileSource
  /** For each pack of a profile the one that it means now: of its project, otherwise of the tenant; the newest where several fit its tag. */
  packsOf(profile: ProfileHead): readonly (PackRecord | undefined)[]
  /** Names of the profiles that use a pack. */
  usesOfPack(pack: PackRecord): readonly string[]
  /** Names of resources that block the deletion of a project. */
  usesOfProject(projectUid: string): readonly string[]
}

const limits = defaultLimits
/** The largest profile that is received, with the spaces that a text may have. */
const largestProfile = 33_554_432

export function createProfiles(options: ProfilesOptions): Profiles {
  const { store, folders, packs, database, read, requireProject } = options
  const { examinations, uploads, settings, seal, usesOf, clock } = options
  const { reserveBytes, scopeLimitBytes } = settings
  const oneChange = createLock()

  function get(uid: string, projectUid: string): ProfileRecord {
    const profile = store.find(uid)
    if (profile?.projectUid !== projectUid)
      throw new AppError(generalErrors.NotFound, 'there is no cluster profile with this uid in this scope')
    return profile
  }

  function packsOf({ projectUid, packs: references }: ProfileHead): (PackRecord | undefined)[] {
    return references.map(({ name, tag, version }) => {
      for (const scope of new Set([projectUid, ''])) {
        const present = packs.named(scope, name)
        const meant = chooseVersion(
          tag,
          version,
          present.map((each) => each.version),
          newestVersion,
        )
        const found = present.find((each) => each.version === meant)
        if (found) return found
      }
      return undefined
    })
  }

  const usesNow = (profile: ProfileHead) => ({
    clusters: usesOf(profile.uid),
    packUids: packsOf(profile).map((pack) => pack?.uid ?? ''),
  })

  function requireNew(projectUid: string, { name, version }: Pick<ProfileHead, 'name' | 'version'>): void {
    store.counts.requireRoom(projectUid)
    if (store.findNamed(projectUid, name, version))
      throw new AppError(
        platformErrors.ProfileExists,
        `there is a cluster profile ${name} ${version} in this scope`,
      )
    const taken = store.findTaken(projectUid, name)
    if (taken !== undefined && taken !== name)
      throw nameTaken(platformErrors.ProfileExists, 'cluster profile', { name, taken }, 'in this scope')
  }

  // By the uid of a folder, whose content never changes.
  const sizes = new Map<string, number>()

  /** Measures a staged folder, and the others of its scope, for `writeRow`. */
  async function measure(staged: Staged, projectUid: string): Promise<void> {
    sizes.set(staged.uid, await bytesIn(staged.folder))
    for (const { filesUid } of store.bytesIn(projectUid))
      if (!sizes.has(filesUid)) sizes.set(filesUid, await bytesIn(join(folders.folder, filesUid)))
  }

  /** Adds or replaces a profile of a scope, in a transaction. @throws AppError LimitReached */
  function writeRow(projectUid: string, write: () => void): void {
    const bytes = () =>
      store
        .bytesIn(projectUid)
        .reduce((sum, { filesUid, rowBytes }) => sum + rowBytes + (sizes.get(filesUid) ?? 0), 0)
    const taken = bytes()
    write()
    const more = bytes() - taken
    // A change that takes no more is made where the limit was lowered too.
    if (more > 0) requireBytes('cluster profiles', { taken, more, limit: scopeLimitBytes })
  }

  async function removeFiles(filesUid: string): Promise<void> {
    sizes.delete(filesUid)
    await folders.remove(filesUid)
  }

  /** Examines a profile in a new folder, which `keep` then takes; it is removed if that does not succeed. */
  async function stage<T>(
    textIn: (folder: string) => Promise<ProfileText>,
    { caller, isNew }: { readonly caller: ExaminationCaller; readonly isNew: boolean },
    keep: (staged: Staged, found: ExaminedExport) => Promise<T>,
  ): Promise<T> {
    const staged = await folders.stage()
    try {
      const { folder } = staged
      const text = await textIn(folder)
      const found = await examinations.profile({ folder, limits, reserveBytes, isNew }, text, caller)
      return await keep(staged, found)
    } catch (error) {
      sizes.delete(staged.uid)
      await folders.removeStaged(staged)
      throw error
    }
  }

  const sealed = ({ variables }: ExaminedExport) =>
    variables === undefined ? undefined : seal.seal(variables)

  async function add(
    staged: Staged,
    found: ExaminedExport,
    { projectUid, isPublished }: { readonly projectUid: string; readonly isPublished: boolean },
    signal: AbortSignal,
  ): Promise<ProfileHead> {
    requireNew(projectUid, found)
    await measure(staged, projectUid)
    const { name, version, type, cloudType, description, hasUserMacros, shownVariables } = found
    const now = clock.now()
    const metadata = JSON.parse(found.metadata) as { labels?: unknown; annotations?: unknown }
    const profile: ProfileRecord = {
      uid: staged.uid,
      filesUid: staged.uid,
      projectUid,
      name,
      version,
      type,
      cloudType,
      description,
      isPublished,
      hasUserMacros,
      shownVariables,
      packs: found.packs,
      labels: textsOf(metadata.labels),
      annotations: textsOf(metadata.annotations),
      metadata: found.metadata,
      variables: sealed(found),
      createdAt: now,
      modifiedAt: now,
    }
    await folders.keep(staged, () => {
      database.transaction(() => {
        signal.throwIfAborted()
        requireProject(projectUid)
        requireNew(projectUid, found)
        writeRow(projectUid, () => store.add(profile))
      })
    })
    return profile
  }

  /** The variables as they were exported, JSON, secrets included. */
  function variablesOf(profile: ProfileRecord): string | undefined {
    if (profile.variables === undefined) return undefined
    const opened = seal.open(profile.variables)
    if (opened === undefined)
      throw new AppError(
        platformErrors.SecretReplaced,
        `the sensitive values of ${profile.name} ${profile.version} cannot be read any more`,
      )
    return opened
  }

  async function* exported(profile: ProfileRecord, format: ExportFormat, variables: string | undefined) {
    const metadata = JSON.stringify({
      ...(JSON.parse(profile.metadata) as object),
      uid: profile.uid,
      creationTimestamp: formatTime(profile.createdAt),
      lastModifiedTimestamp: formatTime(profile.modifiedAt),
    })
    const isJson = format === 'json'
    yield Buffer.from(isJson ? `{"metadata":${metadata},` : `metadata: ${metadata}\n`)
    const file = await folders.open(profile.filesUid, exportFiles[format])
    for await (const chunk of file.createReadStream()) yield chunk as Buffer
    if (variables !== undefined)
      yield Buffer.from(isJson ? `,"variables":${variables}` : `  variables: ${variables}\n`)
    if (isJson) yield Buffer.from('}}\n')
  }

  /** The reply of `toClusterProfile`, with the packs as the examination has written them. */
  async function* replied(profile: ProfileRecord, withValues: boolean) {
    const { packUids, clusters } = usesNow(profile)
    const reply = toClusterProfile({ ...profile, packs: [] }, { clusters, packUids: [] })
    const versions = store.versions(profile.projectUid, profile.name)
    const text = JSON.stringify({ ...reply, spec: { ...reply.spec, versions } })
    // No text in JSON has quotes that are not escaped.
    const before = '"packs":['
    const at = text.indexOf(`${before}]`, text.indexOf('"spec":{')) + before.length
    yield Buffer.from(text.slice(0, at))
    const file = await folders.open(profile.filesUid, profilePacks)
    try {
      let position = 0
      for (const [index, { lineBytes }] of profile.packs.entries()) {
        const [packBytes, valuesBytes] = lineBytes
        const valuesAt = position + packBytes + 1
        yield Buffer.from(`${index === 0 ? '' : ','}{"packUid":"${packUids[index] ?? ''}",`)
        if (withValues) {
          yield Buffer.from('"values":')
          yield* readPieces(file, valuesAt, valuesBytes)
          yield Buffer.from(',')
        }
        // Without its bracket, which is before the uid.
        yield* readPieces(file, position + 1, packBytes - 1)
        position = valuesAt + valuesBytes + 1
      }
    } finally {
      await file.close()
    }
    yield Buffer.from(text.slice(at))
  }

  return {
    get,
    packsOf,
    receive: (body, how, caller) =>
      uploads.run(caller, ({ signal, place }) => {
        const receiveIn = async (folder: string) => {
          const file = await receiveBody(
            {
              folder,
              limitBytes: largestProfile,
              expectedBytes: body.expectedBytes,
              reserveBytes,
              freeBytes: () => freeBytesOf(folder),
              place,
              signal,
            },
            (onChunk) => body.read(onChunk, signal),
          )
          return readWhole(file)
        }
        return stage(receiveIn, { caller: { ...caller, signal }, isNew: true }, async (staged, found) => {
          await rm(join(staged.folder, receivedFile))
          return add(staged, found, how, signal)
        })
      }),
    list: createSqlList({
      resource: profileList,
      table: 'cluster_profile',
      columns: headColumns,
      count: store.counts.all,
      sql: database.sql,
      read,
      toItem(row) {
        const profile = toProfileHead(row)
        return toClusterProfile(profile, usesNow(profile))
      },
    }),
    inScope: store.counts.condition,
    compared(uid, projectUid) {
      const profile = get(uid, projectUid)
      const stored = profile.variables && seal.open(profile.variables)
      return comparedProfile(profile, stored === undefined ? undefined : (JSON.parse(stored) as Variable[]))
    },
    open: (uid, projectUid, withValues) =>
      Readable.from(replied(get(uid, projectUid), withValues), { objectMode: false }),
    export(uid, projectUid, format) {
      const profile = get(uid, projectUid)
      return Readable.from(exported(profile, format, variablesOf(profile)), { objectMode: false })
    },
    setVariables: (uid, projectUid, variables, caller) =>
      oneChange(async () => {
        const before = get(uid, projectUid)
        caller.requireMatch?.()
        requireDraft(before)
        const stored = JSON.parse(variablesOf(before) ?? '[]') as Variable[]
        const wanted = restoreSecrets(variables, { stored, shown: before.shownVariables })
        const text = async () => exported(before, 'json', JSON.stringify(wanted))
        await stage(text, { caller, isNew: false }, async (staged, found) => {
          await measure(staged, projectUid)
          await folders.keep(staged, () => {
            database.transaction(() => {
              caller.signal.throwIfAborted()
              requireDraft(get(uid, projectUid))
              writeRow(projectUid, () =>
                store.replace({
                  ...before,
                  filesUid: staged.uid,
                  packs: found.packs,
                  variables: sealed(found),
                  shownVariables: found.shownVariables,
                  modifiedAt: clock.now(),
                }),
              )
            })
          })
        })
        await removeFiles(before.filesUid)
      }),
    findUsable(uid, projectUid) {
      const profile = store.find(uid)
      return profile && ['', projectUid].includes(profile.projectUid) ? profile : undefined
    },
    sourceOf(profile) {
      const { uid, metadata, filesUid } = profile
      const variables = variablesOf(profile)
      const file = join(folders.folder, filesUid, exportFiles.json)
      const packVersions = packsOf(profile).map((pack) => pack?.version ?? '')
      return { uid, metadata, file, packVersions, ...(variables === undefined ? {} : { variables }) }
    },
    remove: (uid, projectUid, requireMatch) =>
      oneChange(async () => {
        const { filesUid } = database.transaction(() => {
          const profile = get(uid, projectUid)
          requireMatch?.()
          const clusters = usesOf(uid)
          if (clusters.length > 0)
            throw new AppError(
              platformErrors.ProfileInUse,
              `${profile.name} ${profile.version} is used by ${clusters.map(({ name }) => name).join(', ')}`,
            )
          store.remove(uid)
          return profile
        })
        await removeFiles(filesUid)
      }),
    usesOfPack: (pack) =>
      store
        .withPack(pack.name)
        .filter((profile) => packsOf(profile).some((each) => each?.uid === pack.uid))
        .map(({ name, version }) => `the cluster profile ${name} ${version}`),
    usesOfProject: (projectUid) => store.counts.usesOf(projectUid, 'cluster profile'),
  }
}

// Memory that a slow reader of a reply holds.
const pieceBytes = 65_536

/** Bytes of the files in a folder; 0 where a restored backup has none. */
async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => [])
  let bytes = 0
  for (const name of names) bytes += (await sizeOf(join(folder, name))) ?? 0
  return bytes
}

/** The bytes of a part of a file, in pieces. */
async function* readPieces(file: FileHandle, start: number, sizeBytes: number): AsyncGenerator<Buffer> {
  const end = start + sizeBytes
  for (let at = start; at < end;) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, end - at))
    const { bytesRead } = await file.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw new Error('a file of a profile is shorter than it was written')
    yield piece.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** The bytes of a file, which is opened when they are asked for: until then an examination waits, and may end. */
async function* readWhole(file: string): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(file)) yield chunk as Buffer
}

function requireDraft({ isPublished, name, version }: ProfileHead): void {
  if (isPublished)
    throw new AppError(
      platformErrors.ProfilePublished,
      `${name} ${version} is published and does not change; import another version`,
    )
}

const textsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof value === 'object' && value !== null ? value : {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
