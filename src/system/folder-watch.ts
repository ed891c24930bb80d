import { watch, type FSWatcher } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from './log.ts'

export interface FolderWatchOptions {
  /** Absolute paths, each after its parent folders, with the names in it that matter. */
  readonly folders: ReadonlyMap<string, RegExp>
  /** An entry with one of these names was created, removed or changed. */
  readonly onChange: () => void
  readonly log: Logger
  /** Time until the next try where the kernel refuses a watch. */
  readonly retryMs?: number
}

/** Watches of folders that need not exist yet. */
export interface FolderWatch {
  /** False while the kernel refuses a watch of one of the folders. A missing folder counts as watched. */
  isWatching(): boolean
  stop(): void
}

/**
 * Watches folders by inotify(7). A folder that is created or replaced later is watched as soon as the watch of its parent
 * folder reports it, so the parent has to be in `folders` too.
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
        'a folder cannot be watched, so the facts that depend on it are read every few seconds; allow more watches with: sysctl fs.inotify.max_user_instances=1024',
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
  /** The folders at this path and below it may have been replaced. */
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
