import { copyFile, link, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Logger } from 'pino'
import { secretFile } from '../secrets/secret-file.ts'
import type { Migrations } from '../store/structure.ts'
import { asideName, databaseName, headName, noteName } from '../store/database-name.ts'
import { reserveName } from '../store/disk-reserve.ts'
import { lockName, lockState } from '../store/state-lock.ts'
import { isThere, syncFolder, syncTree } from '../system/files.ts'
import { BackupRefused } from './refused.ts'
import {
  exchange,
  formerName,
  freeStamp,
  isUnused,
  lockForRestore,
  ownTree,
  requireMovable,
} from './restore-backup.ts'
import { salvage, type Salvaged } from './salvage.ts'
import {
  clearUnfinishedRestore,
  findUnfinishedRestore,
  markName,
  newStaging,
  removeStagings,
} from './unfinished-restore.ts'

export interface ReplaceOptions {
  readonly stateDirectory: string
  readonly now: number
  readonly log: Logger
  /** Called with each temporary folder before it is made. */
  readonly onBegin: (temporary: string) => void
}

/**
 * Puts the state aside, and an empty folder in its place.
 * @returns the path of the former state
 * @throws BackupRefused, also while the daemon runs, and the system's error; nothing was changed then
 */
export const beginAnew = (options: ReplaceOptions): Promise<string> =>
  replace(options, async (_former, staging) => {
    await writeFile(join(staging, noteName), 'Begin with an empty state; the former one was put aside', {
      mode: 0o600,
    })
  })

/** Result of a recovery. */
export interface Recovered {
  readonly formerState: string
  readonly tables: readonly Salvaged[]
  readonly isSecretNew: boolean
  readonly isPairNew: boolean
}

export interface RecoverOptions extends ReplaceOptions {
  readonly migrations: Migrations
  /** Whether the secret of a state folder can be used; without it a new one is made. */
  readonly isSecretUsable: (stateDirectory: string) => Promise<boolean>
  readonly makeSecret: () => Buffer
  /** Whether the pair in a folder can be used; otherwise the next start makes a new one. */
  readonly isPairUsable: (directory: string) => Promise<boolean>
}

/**
 * Makes a state from the readable parts of a damaged one: each row of its database that can be reached, its files, a new secret or pair
 * where the present one cannot be used. The former state is put aside whole.
 * @throws BackupRefused where nothing can be read, and as `beginAnew`
 */
export async function recoverState(options: RecoverOptions): Promise<Recovered> {
  let tables: Salvaged[] = []
  let isSecretNew = false
  let isPairNew = false
  const formerState = await replace(options, async (former, staging) => {
    const database = join(former, databaseName)
    const { size } = await stat(database).catch(() => ({ size: 0 }))
    if (size === 0)
      throw new BackupRefused(
        `${database} is missing or empty: there is nothing to recover; restore a backup`,
      )
    const copy = join(staging, 'salvage.db')
    // Of a copy, since an opened database is changed. Its log has the last commits.
    for (const suffix of ['', '-wal'])
      await copyFile(database + suffix, copy + suffix).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      })
    tables = salvage(copy, join(staging, databaseName), options.migrations)
    for (const suffix of ['', '-wal', '-shm']) await rm(copy + suffix, { force: true })
    isSecretNew = !(await options.isSecretUsable(former))
    isPairNew = !(await options.isPairUsable(join(former, 'tls')))
    await linkTree(former, staging, (path) => isTaken(path, { isSecretNew, isPairNew }))
    if (isSecretNew) await writeFile(join(staging, secretFile), options.makeSecret(), { mode: 0o600 })
    const damaged = tables.filter(({ isWhole }) => !isWhole).map(({ table }) => table)
    const lost = damaged.length === 0 ? 'every table was read' : `rows are missing of ${damaged.join(', ')}`
    await writeFile(
      join(staging, noteName),
      `Take over what could be read of a damaged state: ${lost}${isSecretNew ? '; a new secret' : ''}${isPairNew ? '; a new certificate' : ''}`,
      { mode: 0o600 },
    )
  })
  return { formerState, tables, isSecretNew, isPairNew }
}

function isTaken(
  path: string,
  { isSecretNew, isPairNew }: { isSecretNew: boolean; isPairNew: boolean },
): boolean {
  if ([lockName, markName, headName, noteName, reserveName].includes(path) || path.startsWith(databaseName))
    return false
  if (path === asideName || path.startsWith(`${asideName}/`)) return false
  if (path === secretFile && isSecretNew) return false
  return !(isPairNew && path.startsWith('tls/'))
}

/** Files of the state are replaced and never changed in place, so the two folders can share them. */
async function linkTree(from: string, to: string, isWanted: (path: string) => boolean): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const path = relative(from, join(entry.parentPath, entry.name))
    if (!isWanted(path)) continue
    const target = join(to, path)
    if (entry.isDirectory()) await mkdir(target, { recursive: true, mode: 0o700 })
    if (!entry.isFile()) continue
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    await link(join(from, path), target)
  }
}

async function replace(
  { stateDirectory, now, log, onBegin }: ReplaceOptions,
  fill: (former: string, staging: string) => Promise<void>,
): Promise<string> {
  if (!(await isThere(stateDirectory)))
    throw new BackupRefused(`${stateDirectory} is missing: there is no state`)
  await requireMovable(stateDirectory)
  const lock = lockForRestore(stateDirectory, log)
  try {
    const unfinished = await findUnfinishedRestore(stateDirectory)
    if (!unfinished && (await isUnused(stateDirectory)))
      throw new BackupRefused(
        `${stateDirectory} has no state: the platform begins with an empty one by itself`,
      )
    await clearUnfinishedRestore(stateDirectory, unfinished)
    const source = unfinished?.former ?? stateDirectory
    const owner = await stat(source)
    const staging = newStaging(stateDirectory)
    onBegin(staging)
    const stamp = await freeStamp([stateDirectory], now)
    const former = unfinished?.former ?? formerName(stateDirectory, stamp)
    let nextLock
    try {
      await mkdir(staging, { mode: 0o700 })
      await fill(source, staging)
      await writeFile(join(staging, markName), former, { mode: 0o600 })
      await writeFile(join(staging, lockName), '', { mode: 0o600 })
      await ownTree(staging, owner)
      await syncTree(staging)
      nextLock = lockState(staging, log)
    } catch (error) {
      await rm(staging, { recursive: true, force: true })
      throw error
    }
    try {
      const aside = unfinished?.former === undefined ? former : newStaging(stateDirectory)
      await exchange(stateDirectory, staging, aside, [])
      await rm(join(stateDirectory, markName), { force: true })
      await syncFolder(stateDirectory)
      await removeStagings(stateDirectory).catch(() => undefined)
    } finally {
      nextLock.release()
    }
    return former
  } finally {
    lock.release()
  }
}
