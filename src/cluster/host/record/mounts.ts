import { readFile } from 'node:fs/promises'
import { parseMounts } from '../../../content/store/mount.ts'

/** Mount points of this process, the deepest last. */
export async function mountPoints(): Promise<readonly string[]> {
  const mounts = parseMounts(await readFile('/proc/self/mountinfo', 'utf8'))
  return mounts.map(({ mountPoint }) => mountPoint).sort()
}
