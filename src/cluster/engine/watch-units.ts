import { watchFolders } from '../../system/folder-watch.ts'
import type { Logger } from '../../system/log.ts'
import { units } from './paths.ts'

export interface UnitWatchOptions {
  /** A unit of the engine was started, has ended, or was started again. */
  readonly onChange: () => void
  readonly log: Logger
  /** Folder in which systemd keeps a link `invocation:<unit>` for each unit that runs. */
  readonly folder?: string
}

const names = new RegExp(`^invocation:(${Object.values(units).join('|').replaceAll('.', '\\.')})$`)

/**
 * Watches the units of the engine by inotify, since a minimal host has no bus.
 * @returns a function that ends it
 */
export function watchUnits({ onChange, log, folder = '/run/systemd/units' }: UnitWatchOptions): () => void {
  return watchFolders({ folders: new Map([[folder, names]]), onChange, log }).stop
}
