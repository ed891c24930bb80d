import { watch, type FSWatcher } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from './log.ts'

export interface FolderWatchOptions {
  /** Absolute paths, each behind the folders it lies in, with the names in it that matter. */
  readonly folders: ReadonlyMap<string, RegExp>
  /** Something with one of these names came, went or changed. */
  readonly onChange: () => void
  readonly log: Logger
  /** Until the next try, where the kernel gives no watch. */
  readonly retryMs?: number
}

/** Watches of folders that need not be there yet. */
export interface FolderWatch {
  /** False while the kernel gives no watch for one of them. A folder that is not there has nothing to tell. */
  isWatching(): boolean
  stop(): void
}

/**
 * Watches folders by inotify(7). A folder that comes later, or anew in the place of another, is watched when the folder it
 * lies in tells of it, so that one has to be among them.
 */
export function watchFolders({ folders, onChange, log, retryMs = 60_000 }: FolderWatchOptions): FolderWatch {
  const watchers = new Map<string, FSWatcher>()
  const refused = new Set<string>()
  let retry: NodeJS.Timeout | undefined

  const open = (folder: string, names: RegExp) => {
    try {
      const watcher = watch(folder, { persistent: false }, (event, name) => {
        if (name !== null && !names.test(name)) return
        if (event === 'rename') renew(join(folder, name ?? ''))
        onChange()
      })
      watchers.set(
        folder,
        watcher.on('error', (error) => refuse(folder, error)),
      )
      refused.delete(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') refused.delete(folder)
      else refuse(folder, error)
    }
  }
  const refuse = (folder: string, error: unknown) => {
    close(folder)
    if (refused.size === 0) {
      log.warn(
        { err: error, folder },
        'a folder is not watched, and what it tells is read every few seconds; make room for watches with: sysctl fs.inotify.max_user_instances=1024',
      )
    }
    refused.add(folder)
    retry ??= setTimeout(() => {
      retry = undefined
      openMissing()
      onChange()
    }, retryMs).unref()
  }
  const close = (folder: string) => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }
  const openMissing = () => {
    for (const [folder, names] of folders) if (!watchers.has(folder)) open(folder, names)
  }
  /** What was watched at this path, and below it, may be another folder now. */
  const renew = (path: string) => {
    for (const folder of folders.keys()) if (`${folder}/`.startsWith(`${path}/`)) close(folder)
    openMissing()
  }

  openMissing()
  return {
    isWatching: () => refused.size === 0,
    stop() {
      clearTimeout(retry)
      for (const folder of folders.keys()) close(folder)
    },
  }
}
