import { readdir, readFile, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { NamedFileUnusable } from '../../errors/start-error.ts'

/** A line of /proc/self/mountinfo, proc_pid_mountinfo(5). */
export interface Mount {
  /** Major and minor number of the device. */
  readonly device: string
  /** The folder of the file system that is mounted. */
  readonly root: string
  readonly mountPoint: string
  readonly type: string
}

export function parseMounts(text: string): Mount[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ')
      const [, , device = '', root = '', mountPoint = ''] = fields
      const type = fields[fields.indexOf('-') + 1] ?? ''
      return { device, root: unescape(root), mountPoint: unescape(mountPoint), type }
    })
}

// Space, tab, line feed and backslash are octal.
const unescape = (text: string) =>
  text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The mount that a folder lies in; of several on one place, the last one is visible. */
export function mountOf(mounts: readonly Mount[], folder: string): Mount | undefined {
  let found: Mount | undefined
  for (const mount of mounts) {
    const isAbove = mount.mountPoint === '/' || `${folder}/`.startsWith(`${mount.mountPoint}/`)
    if (isAbove && mount.mountPoint.length >= (found?.mountPoint.length ?? 0)) found = mount
  }
  return found
}

/**
 * Whether a file system is mounted at the folder itself. A unit that may write there has the folder mounted on itself
 * (`ReadWritePaths`), which does not count.
 */
export function isMounted(mounts: readonly Mount[], folder: string): boolean {
  const mount = mountOf(mounts, folder)
  if (mount?.mountPoint !== folder || mount.type === 'autofs') return false
  const below = mountOf(
    mounts.filter(({ mountPoint }) => mountPoint !== folder),
    folder,
  )
  if (below?.device !== mount.device) return true
  return mount.root !== join(below.root, relative(below.mountPoint, folder))
}

/**
 * @throws NamedFileUnusable if nothing is mounted at the folder; the error EACCES where only root may look at it
 */
export async function requireMount(folder: string): Promise<void> {
  // Reading a folder has an automount done.
  await readdir(folder).catch(() => undefined)
  const real = await realpath(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw error
    return folder
  })
  if (!isMounted(parseMounts(await readFile('/proc/self/mountinfo', 'utf8')), real))
    throw new NamedFileUnusable(
      `content.requireMount: no file system is mounted at ${folder}; see findmnt ${folder}, mount the disk and start the daemon again with systemctl start edgehostd`,
    )
}
