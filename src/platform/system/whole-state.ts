import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SystemEntry } from '../../audit/own-entries.ts'
import { program } from '../../base/program.ts'
import { uidOf } from '../../base/uid.ts'
import { StartRefused } from '../../errors/start-error.ts'
import { noteName } from '../../store/database-name.ts'
import { isThere } from '../../system/files.ts'

/** The folders of the state that have a folder for each row. */
const keptFolders = ['packs', 'profiles', 'clusters']

/**
 * The error for a state that is not whole. A platform does not begin anew by itself, unlike a host, which has to answer: its users, projects
 * and hosts would be gone without a word, and the next backup would be of nothing.
 * @param problem the damage or the missing part
 */
export const notWhole = (problem: string): StartRefused =>
  new StartRefused(
    [
      `${problem}. The platform does not start on it, and nothing was changed or removed. With a backup: ${program.ctl} restore FILE.`,
      `Without one: ${program.ctl} recover takes over what can still be read.`,
      `To begin with no users, projects and hosts, and the former state put aside: ${program.ctl} fresh-start.`,
      `Then: systemctl start ${program.daemon}. See dmesg --level=err: the disk may be failing`,
    ].join(' '),
  )

/** Whether there are folders that were named by rows of a database. */
export async function hasKeptFolders(stateDirectory: string): Promise<boolean> {
  for (const folder of keptFolders) {
    const path = join(stateDirectory, folder)
    const names = (await isThere(path)) ? await readdir(path) : []
    if (names.some((name) => uidOf(name) !== undefined)) return true
  }
  return false
}

/** The problem of a private key that the platform has made and that is gone: hosts have pinned its certificate. A recovery may leave it out. */
export async function findLostKey(stateDirectory: string): Promise<string | undefined> {
  const file = join(stateDirectory, 'tls', 'key.pem')
  const isExpected = !(await isThere(join(stateDirectory, noteName)))
  return isExpected && !(await isThere(file)) ? `the private key ${file} is missing` : undefined
}

/** Records in the trail that the state was recovered or put aside, once the platform runs again. */
export async function recordRecovery(
  stateDirectory: string,
  record: (entry: SystemEntry) => void,
): Promise<void> {
  const file = join(stateDirectory, noteName)
  if (!(await isThere(file))) return
  record({ action: 'update', kind: 'state', message: (await readFile(file, 'utf8')).slice(0, 1_000) })
  await rm(file, { force: true })
}
