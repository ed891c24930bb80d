import { lstat, mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withLock } from '../ctl/folder.ts'
import { systemReason } from '../errors/system-reason.ts'
import { replaceFile, sweepTemporary, syncFolder } from '../system/files.ts'
import { FileRefused } from '../system/regular-file.ts'
import { platformFolder } from '../uplink/host-key.ts'

/** Paths of the files that `platform connect` writes. */
export interface Places {
  readonly dropIn: string
  readonly authorities: string
  readonly token: string
  /** Held by a connect or a disconnect while it works. */
  readonly lock: string
}

/** @param configFile the configuration file of the daemon; drop-ins are in `config.d` beside it. @param lockFolder made for root alone */
export const placesOf = (
  configFile: string,
  stateDirectory: string,
  lockFolder = '/run/edgehostctl',
): Places => ({
  dropIn: join(dirname(configFile), 'config.d', '50-platform.yaml'),
  authorities: join(dirname(configFile), 'platform-ca.pem'),
  token: join(stateDirectory, platformFolder, 'registration-token'),
  // Neither of the configuration nor of the state: a refused connect leaves both as they were.
  lock: join(lockFolder, 'connect.lock'),
})

/** A file before it is in place. */
export const staged = (path: string): string => `${path}.new`

export interface Contents {
  readonly token: string
  /** PEM; undefined where no authorities are pinned. */
  readonly authorities: string | undefined
  readonly dropIn: string
}

/** Files that are written beside their places, to be checked before they take effect. */
export interface StagedFiles {
  /**
   * Puts all in place. The drop-in is the one step: before it nothing names the other files, and these are on the disk when it comes.
   */
  commit(): Promise<void>
  discard(): Promise<void>
}

/**
 * Writes all beside its place, the drop-in too, under a name that the daemon does not read: a folder that is full or read-only shows here,
 * before anything is in place.
 * @throws FileRefused for a file that cannot be written; nothing is left then
 */
export async function stageFiles(places: Places, contents: Contents): Promise<StagedFiles> {
  const { token, authorities, dropIn } = places
  const put = async (path: string, text: string, mode: number) => {
    try {
      await mkdir(dirname(path), { recursive: true, mode: path === token ? 0o700 : 0o755 })
      await syncFolder(dirname(dirname(path)))
      await replaceFile(staged(path), text, mode)
    } catch (error) {
      // The first error counts, not leftovers in a folder that cannot be written.
      await discardStaged(places).catch(() => undefined)
      const { syscall } = error as NodeJS.ErrnoException
      if (syscall === undefined) throw error
      const reason = systemReason(error as NodeJS.ErrnoException)
      throw new FileRefused(path, `cannot be written: ${reason}. Nothing was changed`)
    }
  }
  if (contents.token !== '') await put(token, `${contents.token}\n`, 0o600)
  if (contents.authorities !== undefined) await put(authorities, contents.authorities, 0o644)
  await put(dropIn, contents.dropIn, 0o644)
  return {
    async commit() {
      if (contents.token !== '') await moveInto(token)
      if (contents.authorities !== undefined) await moveInto(authorities)
      await moveInto(dropIn)
      if (contents.authorities === undefined) await rm(authorities, { force: true })
      if (contents.token === '') await rm(token, { force: true })
    },
    discard: () => discardStaged(places),
  }
}

/** Removes the files of an interrupted connect. */
export async function discardStaged({ token, authorities, dropIn }: Places): Promise<void> {
  for (const path of [staged(token), staged(authorities), staged(dropIn)])
    await sweepTemporary(dirname(path), basename(path))
  for (const path of [token, authorities, dropIn]) await rm(staged(path), { force: true })
}

/** Removes a connection; the drop-in first, which is the one step. Key and uid of the host stay in the state folder. */
export async function removeFiles(places: Places): Promise<void> {
  await rm(places.dropIn, { force: true })
  await syncFolder(dirname(places.dropIn)).catch(ignoreMissing)
  await rm(places.authorities, { force: true })
  await rm(places.token, { force: true })
  await discardStaged(places)
}

/** Does its work while no other connect or disconnect runs on this host. @throws Failure where one runs */
export const inTurn = <T>({ lock }: Places, work: () => Promise<T>): Promise<T> =>
  withLock(lock, work, {
    timeoutMs: 0,
    held: 'another platform connect or disconnect runs on this host; wait until it has ended',
  })

/** @throws FileRefused where a place has no file of ours but a link or a folder */
export async function requireReplaceable({ token, authorities, dropIn }: Places): Promise<void> {
  for (const path of [token, authorities, dropIn]) {
    const present = await lstat(path).catch(ignoreMissing)
    if (present && !present.isFile())
      throw new FileRefused(
        path,
        'is not a regular file; move it away, and connect again. Nothing was changed',
      )
  }
}

async function moveInto(path: string): Promise<void> {
  await rename(staged(path), path)
  await syncFolder(dirname(path))
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
