import { basename, dirname } from 'node:path'
import type { HostFiles } from '../files.ts'
import type { Mount } from './mounts.ts'

/** Finds the physical disks of a mounted file system: several for a volume that spans disks, none for tmpfs. */
export async function disksOfMount(files: HostFiles, mount: Mount): Promise<readonly string[]> {
  const devices = await devicesOfMount(files, mount)
  const names = await Promise.all(devices.map((path) => disksUnder(files, path)))
  return [...new Set(names.flat())]
}

async function devicesOfMount(files: HostFiles, mount: Mount): Promise<readonly string[]> {
  if (!mount.device.startsWith('0:')) return present([await files.link(`/sys/dev/block/${mount.device}`)])
  if (mount.fileSystemType !== 'btrfs') return []
  // btrfs has a device number of its own; its member disks are in /sys/fs/btrfs, by file system.
  const node = (await files.link(mount.source)) ?? mount.source
  for (const fileSystem of await files.names('/sys/fs/btrfs')) {
    const folder = `/sys/fs/btrfs/${fileSystem}/devices`
    const members = await files.names(folder)
    if (members.includes(basename(node))) {
      return present(await Promise.all(members.map((member) => files.link(`${folder}/${member}`))))
    }
  }
  return []
}

/** Follows a block device down to its disks: a partition to its disk, device mapper and md to their members. */
async function disksUnder(files: HostFiles, path: string): Promise<readonly string[]> {
  const parts = await files.names(`${path}/slaves`)
  if (parts.length > 0) {
    const below = present(await Promise.all(parts.map((part) => files.link(`${path}/slaves/${part}`))))
    return (await Promise.all(below.map((part) => disksUnder(files, part)))).flat()
  }
  if ((await files.text(`${path}/partition`)) !== undefined) return disksUnder(files, dirname(path))
  return [basename(path)]
}

function present<T>(values: readonly (T | undefined)[]): readonly T[] {
  return values.filter((value) => value !== undefined)
}
