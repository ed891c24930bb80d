import { basename } from 'node:path'
import { readDiskVendor, type Controller } from './disk-vendor.ts'
import type { HostFiles } from '../files.ts'
import { toGiB } from '../memory.ts'
import type { Mount } from './mounts.ts'
import { disksOfMount } from './volumes.ts'

/** A physical disk and the mounted file systems on it. */
export interface Disk {
  /** The kernel's name, for example `sda`. */
  readonly name: string
  readonly controller?: Controller
  readonly vendor?: string
  /** Whole GiB. */
  readonly size: number
  readonly fileSystems: readonly FileSystem[]
}

export interface FileSystem {
  readonly fileSystemType: string
  /** One character for each byte. */
  readonly mountPoint: string
}

/**
 * Reads disks from /sys/block.
 * @param mounts the mounts of the host, which are assigned to their disks
 */
export async function readDisks(files: HostFiles, mounts: readonly Mount[]): Promise<readonly Disk[]> {
  const disks = await listDisks(files)
  const under = new Map<string, FileSystem[]>(disks.map(({ name }) => [name, []]))
  const first = new Map(disks.flatMap(({ name, paths }) => paths.map((path) => [path, name] as const)))
  for (const mount of mounts) {
    const names = await disksOfMount(files, mount)
    const { fileSystemType, mountPoint } = mount
    for (const name of new Set(names.map((each) => first.get(each)))) {
      if (name !== undefined) under.get(name)?.push({ fileSystemType, mountPoint })
    }
  }
  return disks.map(({ name, disk }) => ({ name, ...disk, fileSystems: under.get(name) ?? [] }))
}

interface BlockDisk {
  readonly name: string
  /** The names of all its paths: its own and, with device-mapper multipath, those of the other paths. */
  readonly paths: readonly string[]
  readonly disk: Omit<Disk, 'name' | 'fileSystems'>
}

// Not counted as disks: optical, floppy, flash without wear levelling, network block devices, and eMMC's boot and RPMB
// areas, which the kernel lists as disks of their own.
const noDisk = /^(sr|fd|mtdblock|rbd|nbd|drbd)\d|^mmcblk\d+(boot|gp|rpmb)/

async function listDisks(files: HostFiles): Promise<readonly BlockDisk[]> {
  const names = (await files.names('/sys/block')).filter((name) => !noDisk.test(name))
  const found = await Promise.all(names.map((name) => readDisk(files, name)))
  // By length first: sdz comes before sdaa, nvme2n1 before nvme10n1.
  const disks = found
    .filter((disk) => disk !== undefined)
    .sort((a, b) => a.name.length - b.name.length || (a.name < b.name ? -1 : 1))
  const once = new Map<string, BlockDisk>()
  for (const { multipath = '', ...disk } of disks) {
    const key = multipath || disk.name
    const known = once.get(key)
    once.set(key, known ? { ...known, paths: [...known.paths, disk.name] } : { ...disk, paths: [disk.name] })
  }
  return [...once.values()]
}

/** undefined for a device that is no physical disk, and for a drive without a medium. */
async function readDisk(
  files: HostFiles,
  name: string,
): Promise<(Omit<BlockDisk, 'paths'> & { readonly multipath: string | undefined }) | undefined> {
  const path = await files.link(`/sys/block/${name}`)
  // loop, ram, zram, dm and md are virtual. So is the one node of an NVMe disk with several paths; its paths are hidden,
  // so the node counts as the disk.
  if (!path || (path.startsWith('/sys/devices/virtual/') && !path.includes('/nvme-subsystem/')))
    return undefined
  if ((await files.text(`${path}/hidden`))?.trim() === '1') return undefined
  // Always in units of 512 bytes, regardless of the disk's block size.
  const sectors = Number(await files.text(`${path}/size`))
  if (!(sectors > 0)) return undefined
  const controller = controllerOf(name, path, basename((await files.link(`${path}/device/subsystem`)) ?? ''))
  const vendor = await readDiskVendor(files, path, controller)
  const disk = {
    ...(controller ? { controller } : {}),
    size: toGiB(sectors * 512),
    ...(vendor ? { vendor } : {}),
  }
  return { name, multipath: await readMultipath(files, path), disk }
}

/**
 * The bus of a disk.
 * @param path its folder under /sys/devices, which names the buses from the root to the disk
 * @param subsystem the subsystem of its device
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

/** The id of the device-mapper multipath map that a disk belongs to (dm-mpath.rst); undefined where it belongs to none. */
async function readMultipath(files: HostFiles, path: string): Promise<string | undefined> {
  for (const holder of await files.names(`${path}/holders`)) {
    const uuid = (await files.text(`/sys/block/${holder}/dm/uuid`))?.trim()
    if (uuid?.startsWith('mpath-')) return uuid
  }
  return undefined
}
