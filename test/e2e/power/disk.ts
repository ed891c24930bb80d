import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../host/eventually.ts'
import { output, run } from '../host/process.ts'

/**
 * How the file system treats what is not synced. `ordered` is the default of ext4: a cut leaves new files empty. With `writeback`
 * it leaves files that have their size and other bytes, as XFS and disks with a cache do.
 */
export type JournalMode = 'ordered' | 'writeback'

/** An ext4 file system on a loop device, whose power can be cut. */
export interface Disk {
  /** A folder of the test, on a disk whose power is not cut. */
  readonly home: string
  /** Where it is mounted. */
  readonly folder: string
  mount(mode: JournalMode): Promise<void>
  /** Nothing that is not on the disk now gets there any more; each later write fails. */
  cut(): Promise<void>
  unmount(): Promise<void>
  /** Removes it and the folder of the test. */
  remove(): Promise<void>
}

const options = {
  ordered: 'loop,commit=1',
  // Without delayed allocation the size of a file is in the journal before its bytes are on the disk.
  writeback: 'loop,commit=1,data=writeback,nodelalloc',
}

const prefix = 'edgehostd-power-'

/** Makes a folder on the machine with such a file system; root only. */
export async function createDisk(megabytes: number): Promise<Disk> {
  await sweep()
  const home = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`))
  const [image, folder] = [join(home, 'disk'), join(home, 'mounted')]
  // What is unmounted below goes from the mount namespaces of other daemons too, where it would stay in use.
  await output('mount', ['--bind', '--make-shared', home, home])
  await mkdir(folder)
  await output('truncate', ['-s', `${megabytes}M`, image])
  await output('mkfs.ext4', ['-q', '-b', '4096', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image])
  return {
    home,
    folder,
    async mount(mode) {
      await output('mount', ['-o', options[mode], image, folder])
    },
    async cut() {
      // Without its flag -f the journal is not written either.
      await output('xfs_io', ['-x', '-c', 'shutdown', folder])
    },
    async unmount() {
      await output('umount', [folder])
    },
    remove: () => remove(home),
  }
}

async function remove(home: string): Promise<void> {
  // Its daemon has ended, or is about to.
  await eventually(() => unmountAll(home))
  await rm(home, { recursive: true, force: true })
}

async function unmountAll(home: string, ...options: string[]): Promise<void> {
  for (const folder of [join(home, 'mounted'), home]) {
    if ((await run('mountpoint', ['-q', folder])).exitCode === 0) await output('umount', [...options, folder])
  }
}

/** Removes what killed tests have left, as far as it can: another test may do the same, and their daemons may still run. */
async function sweep(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue
    const home = join(tmpdir(), name)
    await unmountAll(home, '--lazy')
      .then(() => rm(home, { recursive: true, force: true }))
      .catch(() => undefined)
  }
}
