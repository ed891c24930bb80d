import { parseMounts } from '../../content/store/mount.ts'

/**
 * Mounts in folders, those that were mounted last first.
 * @param table /proc/self/mountinfo, proc_pid_mountinfo(5)
 */
export function mountsBelow(table: string, folders: readonly string[]): readonly string[] {
  const mounts = parseMounts(table).map(({ mountPoint }) => mountPoint)
  // The folders themselves may be mounts of an administrator.
  return mounts.filter((mount) => folders.some((folder) => mount.startsWith(`${folder}/`))).toReversed()
}
