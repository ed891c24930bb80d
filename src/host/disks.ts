import { basename, dirname } from 'node:path'
import type { HostFiles } from './files.ts'
import { toGiB } from './memory.ts'
import { hostMounts, readMounts, type Mount } from './mounts.ts'
import { storageVendorOf } from './pci-vendors.ts'

/** A physical disk and the mounted file systems that live on it. Spaces are whole GiB. */
export interface Disk {
  readonly controller?: Controller
  readonly vendor?: string
  readonly size: number
  readonly partitions: readonly Partition[]
}

export interface Partition {
  readonly fileSystemType: string
  readonly mountPoint: string
  /** The three are absent where the file system cannot be asked without danger. */
  readonly totalSpace?: number
  readonly usedSpace?: number
  readonly freeSpace?: number
}

export type Controller = 'SCSI' | 'NVME' | 'SATA' | 'VIRTIO' | 'USB' | 'MMC'

/** The part of statfs(2) that is used; blocks are of `bsize` bytes. */
export type Statfs = (path: string) => Promise<{
  readonly bsize: number
  readonly blocks: number
  readonly bfree: number
  readonly bavail: number
}>

/** Reads disks from /sys/block, their file systems from mountinfo and how full those are from statfs(2). */
export async function readDisks(files: HostFiles, statfs: Statfs): Promise<readonly Disk[]> {
  const disks = await listDisks(files)
  const under = new Map<string, Partition[]>(disks.map(({ name }) => [name, []]))
  for (const mount of hostMounts(await readMounts(files))) {
    const names = (await disksOfMount(files, mount)).filter((name) => under.has(name))
    if (names.length === 0) continue
    // One after the other: a disk that does not answer holds one thread of the pool, not all of them.
    const partition = await readPartition(mount, statfs)
    for (const name of names) under.get(name)?.push(partition)
  }
  return disks.map(({ name, disk }) => ({ ...disk, partitions: under.get(name) ?? [] }))
}

async function readPartition(mount: Mount, statfs: Statfs): Promise<Partition> {
  const { fileSystemType, mountPoint } = mount
  // A FUSE file system is answered by a program, which may hang.
  if (fileSystemType.startsWith('fuse')) return { fileSystemType, mountPoint }
  const { bsize, blocks, bfree, bavail } = await statfs(mountPoint)
  return {
    fileSystemType,
    freeSpace: toGiB(bavail * bsize),
    mountPoint,
    totalSpace: toGiB(blocks * bsize),
    usedSpace: toGiB((blocks - bfree) * bsize),
  }
}

interface BlockDisk {
  /** The kernel's name, for example `sda`. */
  readonly name: string
  readonly disk: Omit<Disk, 'partitions'>
}

// Optical, floppy, flash without wear levelling, network block devices, and eMMC's boot and RPMB areas,
// which the kernel lists as disks of their own.
const noDisk = /^(sr|fd|mtdblock|rbd|nbd|drbd)\d|^mmcblk\d+(boot|gp|rpmb)/

async function listDisks(files: HostFiles): Promise<readonly BlockDisk[]> {
  const names = (await files.names('/sys/block')).filter((name) => !noDisk.test(name))
  const disks = await Promise.all(names.map((name) => readDisk(files, name)))
  // By length first: sdz comes before sdaa, nvme2n1 before nvme10n1.
  return disks
    .filter((disk) => disk !== undefined)
    .sort((a, b) => a.name.length - b.name.length || (a.name < b.name ? -1 : 1))
}

/** undefined for what is no physical disk, and for a drive without a medium. */
async function readDisk(files: HostFiles, name: string): Promise<BlockDisk | undefined> {
  const path = await files.link(`/sys/block/${name}`)
  // loop, ram, zram, dm and md are virtual; so is the one node of an NVMe disk with several paths, whose
  // paths are hidden in turn.
  if (!path || (path.startsWith('/sys/devices/virtual/') && !path.includes('/nvme-subsystem/')))
    return undefined
  if ((await files.text(`${path}/hidden`))?.trim() === '1') return undefined
  // Always in units of 512 bytes, whatever the disk's block size.
  const sectors = Number(await files.text(`${path}/size`))
  if (!(sectors > 0)) return undefined
  const controller = controllerOf(name, path, basename((await files.link(`${path}/device/subsystem`)) ?? ''))
  const vendor = await readVendor(files, path, controller)
  const size = toGiB(sectors * 512)
  return { name, disk: { ...(controller ? { controller } : {}), size, ...(vendor ? { vendor } : {}) } }
}

/**
 * The bus a disk hangs on.
 * @param path its folder under /sys/devices: the chain of buses down to it
 * @param subsystem of its device
 */
export function controllerOf(name: string, path: string, subsystem: string): Controller | undefined {
  if (name.startsWith('nvme')) return 'NVME'
  if (name.startsWith('mmcblk')) return 'MMC'
  if (/\/usb\d+\//.test(path)) return 'USB'
  if (/\/ata\d+\//.test(path)) return 'SATA'
  if (subsystem === 'virtio') return 'VIRTIO'
  if (subsystem === 'scsi') return 'SCSI'
  return undefined
}

async function readVendor(files: HostFiles, path: string, controller: Controller | undefined) {
  switch (controller) {
    case 'SCSI':
    case 'USB':
      // INQUIRY's vendor field, padded with blanks.
      return (await files.text(`${path}/device/vendor`))?.trim()
    case 'NVME':
      return storageVendorOf((await files.text(`${path}/device/device/vendor`))?.trim() ?? '')
    // ATA has no vendor field (the kernel fills in "ATA"); virtio's is the id of the transport.
    case 'SATA':
    case 'VIRTIO':
    case 'MMC':
    case undefined:
      return undefined
  }
}

/** The physical disks a mounted file system lives on: several for a volume that spans disks, none for tmpfs. */
async function disksOfMount(files: HostFiles, mount: Mount): Promise<readonly string[]> {
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

/** Follows a block device down to disks: partition to disk, device mapper and md to what they are made of. */
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
