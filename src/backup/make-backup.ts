// `backup` and `restore` of edgeplatformctl become `backup.cjs` (`src/edgeplatformd/backup.ts`), since they read and write files of the platform.
// `backup/sealed-file.ts` is the format of the file: pieces, each with a tag, its number and whether it is the last one, so that no part can be
// changed, moved or left out; `members.ts` is its content. `restore-backup.ts` reads the whole file once before it writes, writes beside,
// and then renames. From before the first rename until all is in place there is a mark (`unfinished-restore.ts`), with which the daemon
// does not start. The next restore leaves it until its own state is in place, and names the former state of the interrupted one as its own;
// so it never goes back. A restore holds the locks of the state folder, which it makes if there is none, and of the folder that takes its
// place.

import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile, realpath, rm, stat, statfs } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { backup as copyDatabase, DatabaseSync } from 'node:sqlite'
import { program } from '../base/program.ts'
import { nextSecretFile, secretFile } from '../secrets/secret-file.ts'
import { placeFile } from '../system/place-file.ts'
import { FileRefused, readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { isThere, sweepTemporary, syncFolder } from '../system/files.ts'
import { gone, packMembers, type Source } from './members.ts'
import { BackupRefused } from './refused.ts'
import { seal } from './sealed-file.ts'
import { asideName, databaseName, headName } from '../store/database-name.ts'
import { reserveName } from '../store/disk-reserve.ts'
import { lockName } from '../store/state-lock.ts'
import { markName } from './unfinished-restore.ts'

export interface BackupOptions {
  readonly file: string
  readonly passphrase: string
  readonly stateDirectory: string
  /** The configuration file; its drop-ins are in `config.d` beside it. */
  readonly configFile: string
  /** Files that the configuration names, for example the pair of an administrator. */
  readonly namedFiles: readonly string[]
  readonly programVersion: string
  readonly now: number
  /** Called with each temporary file before it is made. */
  readonly onBegin: (temporary: string) => void
}

export interface BackupMade {
  readonly members: number
  readonly sizeBytes: number
}

// These may be larger than memory. Their folders are moved into place whole and never change, but one may be deleted.
const isKeptFile = (path: string) => /^(packs|profiles|clusters)\/(?!staging\/)/.test(path)
// Not of the state: the lock of a process, the mark of a restore, files being received, unfinished files, damaged databases that were put
// aside, and files of SQLite that belong to the present database. A pack may have a file with any name.
const isLeftOut = (path: string) =>
  !isKeptFile(path) &&
  (path === lockName ||
    path === reserveName ||
    path === markName ||
    /^(packs|profiles|clusters)\/staging\//.test(path) ||
    [databaseName, `${databaseName}-wal`, `${databaseName}-shm`, `${databaseName}-journal`].includes(path) ||
    path.startsWith(`${databaseName}.`) ||
    path === usingName ||
    path === headName ||
    path.startsWith(`${asideName}/`) ||
    /(^|\/)\.[^/]+\.[0-9a-f]{16}\.tmp(-\w+)?$/.test(path))
// A backup of the database takes that much at most, and the platform needs some too.
const spareBytes = 64 * 1_048_576
const allPages = 2 ** 30

/**
 * Writes a backup while the daemon runs, or while it does not. The database is copied in one read transaction, which does not hold up the
 * daemon; the copy is in the state folder, which is as private as the database itself, until the backup is made.
 * @throws BackupRefused, and the system's error, for example `ENOSPC`; a former file at the path is then unchanged
 */
export async function makeBackup(options: BackupOptions): Promise<BackupMade> {
  const { file, stateDirectory } = options
  await requireOutside(stateDirectory, file)
  if (!(await isThere(join(stateDirectory, databaseName)))) return make(options)
  const marked = await sweepUnfinished(stateDirectory, file)
  try {
    return await make(options)
  } finally {
    marked.close()
  }
}

async function make(options: BackupOptions): Promise<BackupMade> {
  const { file, stateDirectory, passphrase, programVersion, now, onBegin } = options
  const secret = await readSecret(stateDirectory)
  const database = join(stateDirectory, databaseName)
  const sizes = await Promise.all(
    [database, `${database}-wal`].map((path) => stat(path).then(({ size }) => size, absent(0))),
  )
  if (sizes[0] === 0)
    throw new BackupRefused(
      `${database} does not exist or is empty: the platform has not run here, or its state.directory is another one`,
    )
  const needed = sizes.reduce((sum, size) => sum + size, 0) + spareBytes
  const { bavail, bsize } = await statfs(stateDirectory)
  if (bavail * bsize < needed)
    throw new BackupRefused(
      `the disk of ${stateDirectory} has ${bavail * bsize} bytes free, and a copy of the database needs ${needed} for a while; make room: df -h ${stateDirectory}`,
    )
  // The name is one that the daemon removes at its start, should this process be killed.
  const copy = join(stateDirectory, `.${databaseName}.${randomBytes(8).toString('hex')}.tmp`)
  for (const suffix of ['', '-journal', '-wal', '-shm']) onBegin(copy + suffix)
  try {
    await copyInto(database, copy).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SQLITE_ERROR') throw error
      const { message } = error as Error
      throw new BackupRefused(
        `the database cannot be copied in ${stateDirectory}: ${message}; see df -h ${stateDirectory}, and dmesg --level=err`,
      )
    })
    const { size: copiedBytes } = await stat(copy)
    const sources: Source[] = [
      { place: 'state', path: databaseName, mode: 0o600, from: { file: copy, sizeBytes: copiedBytes } },
      ...(await filesOfState(stateDirectory)),
      ...(await filesOfConfiguration(options.configFile)),
      ...(await namedFiles(options)),
    ]
    // The database was copied before the secret was read, and is sealed with one of them.
    if (!(await readSecret(stateDirectory)).equals(secret))
      throw new BackupRefused('the secret of the platform was changed while the backup was made; try again')
    const about = { program: program.daemon, programVersion, madeAt: new Date(now).toISOString() }
    let sizeBytes = 0
    await placeFile({
      path: file,
      temporary: `.${await unfinishedName(stateDirectory)}.${randomBytes(8).toString('hex')}.tmp`,
      mode: 0o600,
      onBegin,
      async write(handle) {
        for await (const part of seal(passphrase, about, packMembers(sources))) {
          await handle.writeFile(part)
          sizeBytes += part.length
        }
        await handle.sync()
      },
    })
    await syncFolder(dirname(resolve(file)))
    return { members: sources.length, sizeBytes }
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(copy + suffix, { force: true })
  }
}

/**
 * Name of a half-written backup, whatever the name of the backup: a backup with a date in its name never has the name of one that was
 * killed. It is the same for one state folder of one machine only, since several platforms may write into one shared folder.
 */
async function unfinishedName(stateDirectory: string): Promise<string> {
  const machine = await readFile('/etc/machine-id', 'utf8').catch(() => '')
  const place = JSON.stringify([machine.trim(), hostname(), await realpath(stateDirectory)])
  return `${program.folder}-backup-${createHash('sha256').update(place).digest('hex').slice(0, 16)}`
}

/** Name of an empty file in the state folder that each backup locks with others. */
const usingName = `.${databaseName}.backups`
/** Longest wait of a backup until another one has removed the copies of killed ones; each is as large as the database. */
const sweepMs = 30_000
const unfinishedCopy = new RegExp(`^\\.${databaseName.replace('.', '\\.')}\\.[0-9a-f]{16}\\.tmp(-\\w+)?$`)

/**
 * Removes the files of killed backups: copies of the database in the state folder, and half written files beside the one that is to be
 * made. Where another backup is being made, nothing is removed.
 * @returns the shared lock, which marks this backup as running
 */
async function sweepUnfinished(stateDirectory: string, file: string): Promise<DatabaseSync> {
  const path = join(stateDirectory, usingName)
  const using = new DatabaseSync(path, { timeout: sweepMs })
  try {
    using.exec('PRAGMA journal_mode = MEMORY')
    // During the sweep, too: another backup that begins meanwhile waits with its copy, which would be removed.
    const alone = lockAlone(path)
    try {
      if (alone) {
        for (const name of await readdir(stateDirectory))
          if (unfinishedCopy.test(name)) await rm(join(stateDirectory, name), { force: true })
        const folder = dirname(resolve(file))
        await sweepTemporary(folder, await unfinishedName(stateDirectory))
        // As an earlier version named it.
        await sweepTemporary(folder, basename(file))
      }
    } finally {
      alone?.close()
    }
    // A shared lock, which the kernel releases when the process ends in any way.
    using.exec('BEGIN')
    using.prepare('SELECT count(*) FROM sqlite_schema').get()
    return using
  } catch (error) {
    using.close()
    throw error
  }
}

/** @returns the lock that no other backup shares, until it is closed; undefined where another one has the shared lock */
function lockAlone(path: string): DatabaseSync | undefined {
  const sql = new DatabaseSync(path, { timeout: 0 })
  try {
    sql.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return sql
  } catch {
    sql.close()
    return undefined
  }
}

/** Each later backup would have the former ones in it. */
async function requireOutside(stateDirectory: string, file: string): Promise<void> {
  const folder = dirname(resolve(file))
  const real = (path: string) => realpath(path).catch(() => path)
  const between = relative(await real(stateDirectory), await real(folder))
  if (between !== '..' && !between.startsWith('../'))
    throw new BackupRefused(
      `${file} would be in the state folder, and so a part of later backups; name a file outside of ${stateDirectory}`,
    )
}

/** @returns nothing where there is none yet */
async function readSecret(stateDirectory: string): Promise<Buffer> {
  if (await isThere(join(stateDirectory, nextSecretFile)))
    throw new BackupRefused(
      `the secret of the platform is being changed, or that was interrupted: complete it with ${program.ctl} secret change, then make the backup`,
    )
  return readFile(join(stateDirectory, secretFile)).catch(absent(Buffer.alloc(0)))
}

/** For a file that may be missing. */
const absent =
  <T>(instead: T) =>
  (error: unknown): T => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return instead
  }

async function copyInto(database: string, copy: string): Promise<void> {
  const previous = process.umask(0o077)
  const source = new DatabaseSync(database, { readOnly: true })
  try {
    await copyDatabase(source, copy, { rate: allPages })
  } finally {
    source.close()
    process.umask(previous)
  }
  const made = new DatabaseSync(copy)
  try {
    const check = made.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
    if (check.quick_check !== 'ok')
      throw new BackupRefused(
        `the database is damaged (${check.quick_check}); no backup was made. Check the disk: dmesg --level=err`,
      )
    // One file, without a log beside it.
    made.exec('PRAGMA journal_mode = DELETE')
  } finally {
    made.close()
  }
}

async function filesOfState(folder: string): Promise<Source[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(gone)
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !isLeftOut(path))
    .sort()
  return Promise.all(
    paths.map((path) =>
      isKeptFile(path)
        ? keptSource(path, join(folder, path))
        : sourceOf('state', path, join(folder, path)).catch(foreign),
    ),
  )
}

/** Files of ours that are not kept ones are small. */
function foreign(error: unknown): never {
  if (!(error instanceof FileRefused)) throw error
  throw new BackupRefused(
    `${error.message}, and is no file of ${program.daemon}: move it out of the state folder`,
  )
}

/** A file that is read while it is packed. */
async function keptSource(path: string, file: string): Promise<Source> {
  const { size, mode } = await stat(file).catch(gone)
  return { place: 'state', path, mode: mode & 0o777, from: { file, sizeBytes: size } }
}

async function filesOfConfiguration(configFile: string): Promise<Source[]> {
  const folder = dirname(configFile)
  const dropIns = await readdir(join(folder, 'config.d')).catch(absent<string[]>([]))
  const wanted = [
    configFile,
    ...dropIns
      .filter((name) => name.endsWith('.yaml'))
      .sort()
      .map((name) => join(folder, 'config.d', name)),
  ]
  const found: Source[] = []
  for (const file of wanted) {
    const source = await sourceOf('configuration', relative(folder, file), file).catch(absent(undefined))
    if (source) found.push(source)
  }
  return found
}

const namedFiles = ({ namedFiles: paths, stateDirectory }: BackupOptions): Promise<Source[]> =>
  Promise.all(
    paths
      .filter((path) => relative(stateDirectory, path).startsWith('..'))
      .map((path) => sourceOf('path', path, path)),
  )

async function sourceOf(place: Source['place'], path: string, file: string): Promise<Source> {
  const { bytes, stats } = await readRegularFile(file, textFileBytes)
  return { place, path, mode: stats.mode & 0o777, from: bytes }
}
