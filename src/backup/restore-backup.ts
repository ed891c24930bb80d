import { randomBytes } from 'node:crypto'
import { renameSync } from 'node:fs'
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
  type FileHandle,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from 'pino'
import { program } from '../base/program.ts'
import { timeInName } from '../base/time.ts'
import { systemReason } from '../errors/system-reason.ts'
import { describeTooOld } from '../store/database.ts'
import { newestSchema, type Migrations } from '../store/structure.ts'
import { databaseName } from '../store/database-name.ts'
import { lockName, lockState, StateInUse, type StateLock } from '../store/state-lock.ts'
import { sweepTemporary, syncFolder, syncTree } from '../system/files.ts'
import { openRegularFile } from '../system/regular-file.ts'
import { unpackMembers, type Member } from './members.ts'
import { BackupRefused, RestoredInPart } from './refused.ts'
import { unseal, type About, type Unsealed } from './sealed-file.ts'
import {
  clearUnfinishedRestore,
  findUnfinishedRestore,
  markName,
  newStaging,
  removeStagings,
} from './unfinished-restore.ts'

export interface RestoreOptions {
  readonly file: string
  readonly passphrase: string
  readonly stateDirectory: string
  readonly configFile: string
  readonly migrations: Migrations
  readonly now: number
  readonly log: Logger
  /** Called with each temporary file and folder before it is made. */
  readonly onBegin: (temporary: string) => void
}

export interface Restored {
  readonly about: About
  /** Path of the former state; absent where there was none. */
  readonly formerState?: string
  /** Configuration and other files that were replaced, with the name that the former file has now. */
  readonly replaced: readonly { readonly path: string; readonly former?: string }[]
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** A file outside of the state folder, complete under its temporary name. */
interface Placed {
  readonly temporary: string
  readonly path: string
  readonly isNew: boolean
}

/**
 * Replaces the state by the one in a backup. The whole file is checked before anything is written, all is written beside before anything is
 * moved, and the former state is put aside. The files of an interrupted restore stay until then, so that the daemon does not start before a
 * restore is complete.
 * @throws BackupRefused, also while the daemon runs, and the system's error, for example `ENOSPC`; nothing was changed then
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { file, passphrase, stateDirectory, log } = options
  const isMade = await makeFolder(stateDirectory)
  const present = await requireMovable(stateDirectory)
  const lock = lockForRestore(stateDirectory, log)
  try {
    const handle = await openRegularFile(file)
    try {
      const unsealed = await unseal(handle, passphrase)
      await checkWhole(unsealed)
      return await replaceState(options, unsealed, present)
    } finally {
      await handle.close()
    }
  } finally {
    if (isMade && (await isUnused(stateDirectory))) await rm(stateDirectory, { recursive: true })
    lock.release()
  }
}

/** @returns the owner of the folder @throws BackupRefused for one that cannot be moved aside, or moved from beside */
export async function requireMovable(stateDirectory: string): Promise<Owner> {
  const present = await lstat(stateDirectory)
  if (!present.isDirectory())
    throw new BackupRefused(
      `${stateDirectory} is not a folder, and a link cannot be put aside; name the folder itself as state.directory`,
    )
  if ((await stat(dirname(stateDirectory))).dev !== present.dev)
    throw new BackupRefused(
      `${stateDirectory} is a mount of its own and cannot be put aside; move what is in it to a folder below it, and name that as state.directory`,
    )
  return present
}

/** Makes a missing state folder: without one there is nothing to lock. @returns whether it was missing */
const makeFolder = (stateDirectory: string): Promise<boolean> =>
  mkdir(stateDirectory, { mode: 0o700 }).then(
    () => true,
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      return false
    },
  )

export function lockForRestore(stateDirectory: string, log: Logger): StateLock {
  try {
    return lockState(stateDirectory, log)
  } catch (error) {
    if (!(error instanceof StateInUse)) throw error
    throw new BackupRefused(
      `${error.message}; if none runs, another restore or a change of the secret is at work: wait for it`,
    )
  }
}

/** Whether no program has kept anything in a state folder. */
export const isUnused = async (stateDirectory: string): Promise<boolean> =>
  (await readdir(stateDirectory)).every((name) => name === lockName)

/** Reads the file to its end. */
async function checkWhole({ about, content }: Unsealed): Promise<void> {
  if (about.program !== program.daemon)
    throw new BackupRefused(`the file is a backup of ${about.program}, not of ${program.daemon}`)
  const found: string[] = []
  await unpackMembers(content(), async ({ place, path }) => {
    if (place === 'state') found.push(path)
  })
  if (!found.includes(databaseName)) throw new BackupRefused('the file has no database')
}

async function replaceState(options: RestoreOptions, unsealed: Unsealed, present: Owner): Promise<Restored> {
  const { stateDirectory, configFile, migrations, now, log, onBegin } = options
  const unfinished = await findUnfinishedRestore(stateDirectory)
  await clearUnfinishedRestore(stateDirectory, unfinished)
  const owner = unfinished?.former === undefined ? present : await stat(unfinished.former)
  // Else the folder at the path is left over, or was made by systemd or for the lock.
  const hasState = !unfinished && !(await isUnused(stateDirectory))
  const suffix = randomBytes(8).toString('hex')
  const staging = newStaging(stateDirectory)
  const placed: Placed[] = []
  let stamp: string
  let former: string | undefined
  let lock: StateLock
  onBegin(staging)
  try {
    await mkdir(staging, { mode: 0o700 })
    await unpackMembers(unsealed.content(), async (member, bytes) => {
      if (member.place === 'state') {
        const path = join(staging, member.path)
        await mkdir(dirname(path), { recursive: true, mode: 0o700 })
        await writeMember(path, member, bytes)
        return
      }
      const path = member.place === 'path' ? member.path : join(dirname(configFile), member.path)
      const temporary = join(dirname(path), `.${basename(path)}.${suffix}.tmp`)
      onBegin(temporary)
      await sweepTemporary(dirname(path), basename(path))
      await mkdir(dirname(path), { recursive: true, mode: 0o755 })
      placed.push({ temporary, path, isNew: !(await isPresent(path)) })
      await writeMember(temporary, member, bytes)
      if (member.place === 'path') await chown(temporary, owner.uid, owner.gid)
    })
    checkDatabase(join(staging, databaseName), migrations)
    stamp = await freeStamp([stateDirectory, ...placed.map(({ path }) => path)], now)
    former = hasState ? formerName(stateDirectory, stamp) : unfinished?.former
    await writeFile(join(staging, markName), former ?? '', { mode: 0o600 })
    await writeFile(join(staging, lockName), '', { mode: 0o600 })
    await ownTree(staging, owner)
    await syncTree(staging)
    // The lock of the present folder goes away with it. Last, since a file loses all locks of a process that closes it once.
    lock = lockState(staging, log)
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    for (const { temporary } of placed) await rm(temporary, { force: true })
    throw error
  }
  try {
    const aside = hasState && former !== undefined ? former : newStaging(stateDirectory)
    await exchange(stateDirectory, staging, aside, placed)
    const replaced = await placeAll(stateDirectory, former, placed, stamp)
    return { about: unsealed.about, replaced, ...(former === undefined ? {} : { formerState: former }) }
  } finally {
    lock.release()
  }
}

/** The last steps, once the state is in place. @throws RestoredInPart */
async function placeAll(
  stateDirectory: string,
  former: string | undefined,
  placed: readonly Placed[],
  stamp: string,
): Promise<Restored['replaced']> {
  const finish = async () => {
    await rm(join(stateDirectory, markName), { force: true })
    await syncFolder(stateDirectory)
    // Folders that cannot be removed are left for the next restore.
    await removeStagings(stateDirectory).catch(() => undefined)
  }
  // Also where a file could not be put into place: it is completed by hand then.
  const placing = place(placed, stamp).finally(finish)
  return placing.catch((error: unknown) => {
    throw new RestoredInPart(
      `the state is restored${former === undefined ? '' : `, and the former one is in ${former}`}; but a file of the configuration could not be put into place: ${systemReason(error as NodeJS.ErrnoException)}. Complete it by hand: ${placed.map(({ temporary, path }) => `${temporary} is to be ${path}`).join(', ')}`,
      { cause: error },
    )
  })
}

/**
 * Both moves are made at once: a signal between them would have the new folder removed.
 * @param aside new path of the present folder
 */
export async function exchange(
  stateDirectory: string,
  staging: string,
  aside: string,
  placed: readonly Placed[],
): Promise<void> {
  try {
    renameSync(stateDirectory, aside)
    try {
      renameSync(staging, stateDirectory)
    } catch (error) {
      renameSync(aside, stateDirectory)
      throw error
    }
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    for (const { temporary } of placed) await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(dirname(stateDirectory))
}

export const formerName = (path: string, stamp: string) => `${path}.before-${stamp}`

/**
 * The time of the restore, for the names of files put aside. A number follows it where one of the names is taken, as by a restore that
 * was interrupted in the same second.
 */
export async function freeStamp(paths: readonly string[], now: number): Promise<string> {
  const second = timeInName(now)
  for (let attempt = 1; ; attempt += 1) {
    const stamp = attempt === 1 ? second : `${second}-${attempt}`
    const taken = await Promise.all(paths.map((path) => isPresent(formerName(path, stamp))))
    if (!taken.includes(true)) return stamp
  }
}

/** Moves the other files into place; a file that differs is kept beside under another name. */
async function place(placed: readonly Placed[], stamp: string): Promise<Restored['replaced']> {
  const replaced: { path: string; former?: string }[] = []
  for (const { temporary, path, isNew } of placed) {
    if (!isNew && (await readFile(path)).equals(await readFile(temporary))) {
      await rm(temporary)
      continue
    }
    // The daemon reads names that end in .yaml alone.
    const former = formerName(path, stamp)
    // There is a file at the path at any time: without its configuration, the daemon would take the defaults.
    if (!isNew) await link(path, former)
    await rename(temporary, path)
    await syncFolder(dirname(path))
    replaced.push({ path, ...(isNew ? {} : { former }) })
  }
  return replaced
}

async function writeMember(path: string, { mode }: Member, bytes: AsyncIterable<Buffer>): Promise<void> {
  const file: FileHandle = await open(path, 'wx', 0o600)
  try {
    for await (const part of bytes) await file.writeFile(part)
    await file.chmod(mode & 0o755)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** @throws BackupRefused for a database that the daemon would refuse, or put aside as damaged */
function checkDatabase(path: string, migrations: Migrations): void {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const check = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
    if (check.quick_check !== 'ok')
      throw new BackupRefused(`the database of the backup is damaged: ${check.quick_check}`)
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as {
      user_version: number
    }
    const newest = newestSchema(migrations)
    if (version > newest)
      throw new BackupRefused(
        `the database of the backup has schema ${version}, and this program knows up to ${newest}: install the version that made it`,
      )
    if (version < migrations.first)
      throw new BackupRefused(describeTooOld('database of the backup', version, migrations))
  } finally {
    database.close()
  }
}

export async function ownTree(folder: string, { uid, gid }: Owner): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    await lchown(join(entry.parentPath, entry.name), uid, gid)
  await lchown(folder, uid, gid)
  await chmod(folder, 0o700)
}

const isPresent = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )
