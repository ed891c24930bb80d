import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { program } from '../base/program.ts'
import { StartRefused } from '../errors/start-error.ts'
import { databaseName } from '../store/database-name.ts'
import { lockName } from '../store/state-lock.ts'
import { isThere } from '../system/files.ts'

/**
 * A file in a state folder whose restore is not finished: in the one that is being made, and after it was moved into place until all other
 * files are in theirs. It has the path of the former state folder, or nothing.
 */
export const markName = 'unfinished-restore'

/** A new name beside the state folder, for the one that takes its place. */
export const newStaging = (stateDirectory: string): string =>
  `${stateDirectory}.restore-${randomBytes(8).toString('hex')}`

/** Folders that a restore has started to make. */
async function listStagings(stateDirectory: string): Promise<string[]> {
  const [folder, name] = [dirname(stateDirectory), `${basename(stateDirectory)}.restore-`]
  const names = await readdir(folder)
  return names
    .filter((each) => each.startsWith(name) && /^[0-9a-f]{16}$/.test(each.slice(name.length)))
    .map((each) => join(folder, each))
}

/**
 * To be called before the state is opened: a daemon that opened it between the steps of a restore would begin with an empty database, or
 * run with the state of the backup and the former configuration.
 * @throws StartRefused where a restore was interrupted after its first change
 */
export async function requireFinishedRestore(stateDirectory: string): Promise<void> {
  // The daemon may not be allowed to read the folder around its state folder.
  const stagings = await listStagings(stateDirectory).catch((): string[] => [])
  const isBetween = stagings.length > 0 && !(await isThere(join(stateDirectory, databaseName)))
  if (!isBetween && !(await isThere(join(stateDirectory, markName)))) return
  throw new StartRefused(
    `a restore of ${stateDirectory} was interrupted: run it again with ${program.ctl} restore (or recover or fresh-start, whichever it was), then systemctl start ${program.daemon}. Until then the daemon does not start, and nothing is lost`,
  )
}

/** Files of a restore that was interrupted after its first change. */
export interface UnfinishedRestore {
  /** Folder of its mark: the state folder, or one that was to take its place. */
  readonly folder: string
  /** Path of the former state; absent where there was none. */
  readonly former?: string
}

/** Looks for a restore that was interrupted after its first change. */
export async function findUnfinishedRestore(stateDirectory: string): Promise<UnfinishedRestore | undefined> {
  const formerOf = async (folder: string) => {
    const former = await readFile(join(folder, markName), 'utf8').catch(() => '')
    return former !== '' && (await isThere(former)) ? former : undefined
  }
  if (await isThere(join(stateDirectory, markName))) {
    const former = await formerOf(stateDirectory)
    return { folder: stateDirectory, ...(former === undefined ? {} : { former }) }
  }
  if (await isThere(join(stateDirectory, databaseName))) return undefined
  for (const folder of await listStagings(stateDirectory)) {
    const former = await formerOf(folder)
    if (former !== undefined) return { folder, former }
  }
  return undefined
}

/**
 * Makes room for the next restore: the files of interrupted ones are copies of a backup. The former state stays where it is, and the mark
 * too: should the next restore fail, the configuration may already be from the backup, and the daemon must not start.
 */
export async function clearUnfinishedRestore(
  stateDirectory: string,
  unfinished: UnfinishedRestore | undefined,
): Promise<void> {
  await removeStagings(stateDirectory, unfinished?.folder)
  if (!unfinished) return
  for (const name of await readdir(unfinished.folder))
    if (![markName, lockName].includes(name)) await rm(join(unfinished.folder, name), { recursive: true })
}

/** Removes the folders that restores have started to make. */
export async function removeStagings(stateDirectory: string, except?: string): Promise<void> {
  for (const staging of await listStagings(stateDirectory))
    if (staging !== except) await rm(staging, { recursive: true })
}
