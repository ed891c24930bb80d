import { randomBytes } from 'node:crypto'
import { access, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { program } from '../base/program.ts'
import { StartError } from '../errors/start-error.ts'
import { databaseName } from '../store/database-name.ts'

/**
 * A file in a state folder whose restore is not finished: in the one that is being made, and after it was moved into place until all other
 * files are in theirs. It has the path of the former state folder, or nothing.
 */
export const markName = 'unfinished-restore'

/** A new name beside the state folder, for the one that takes its place. */
export const newStaging = (stateDirectory: string): string =>
  `${stateDirectory}.restore-${randomBytes(8).toString('hex')}`

/** Folders that a restore has begun to make. */
async function listStagings(stateDirectory: string): Promise<string[]> {
  const [folder, name] = [dirname(stateDirectory), `${basename(stateDirectory)}.restore-`]
  const names = await readdir(folder)
  return names
    .filter((each) => each.startsWith(name) && /^[0-9a-f]{16}$/.test(each.slice(name.length)))
    .map((each) => join(folder, each))
}

/**
 * To be called before the state is opened: a daemon that opened it between the steps of a restore would begin with an empty database, or run
 * with the state of the backup and the configuration of before.
 * @throws StartError where a restore was interrupted after it has begun to change something
 */
export async function requireFinishedRestore(stateDirectory: string): Promise<void> {
  // The daemon may not be allowed to read what is beside its state folder.
  const stagings = await listStagings(stateDirectory).catch((): string[] => [])
  const isBetween = stagings.length > 0 && !(await isPresent(join(stateDirectory, databaseName)))
  if (!isBetween && !(await isPresent(join(stateDirectory, markName)))) return
  throw new StartError(
    `a restore of ${stateDirectory} was interrupted: run it again with ${program.ctl} restore, then systemctl start ${program.daemon}. Until then the daemon does not start, and nothing is lost`,
  )
}

/** Makes the state folder that of before a restore that was interrupted, and removes what that has left. */
export async function undoUnfinishedRestore(stateDirectory: string): Promise<void> {
  const isMarked = await isPresent(join(stateDirectory, markName))
  if (isMarked) await rename(stateDirectory, newStaging(stateDirectory))
  const isBetween = !(await isPresent(join(stateDirectory, databaseName)))
  for (const staging of isBetween ? await listStagings(stateDirectory) : []) {
    const former = await readFile(join(staging, markName), 'utf8').catch(() => '')
    if (former === '' || !(await isPresent(former))) continue
    // An empty one, which systemd has made.
    if (await isPresent(stateDirectory)) await rename(stateDirectory, newStaging(stateDirectory))
    await rename(former, stateDirectory)
    break
  }
  for (const staging of await listStagings(stateDirectory)) await rm(staging, { recursive: true })
}

const isPresent = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
