import { basename, dirname } from 'node:path'
import type { HostFiles } from '../files.ts'
import { storageVendorOf, readUdevNames } from '../devices.ts'
import type { Mount } from '../../system/mountinfo.ts'
import { toGiB } from '../machine.ts'

// Names of the manufacturer ids of eMMC and SD cards, which are numbered separately (JESD84-B51 7.2.1, SD Physical Layer
// 5.2). Neither list is public: these are the ids that the kernel (drivers/mmc/core/card.h) and mmc-utils name. An id that
// several makers use, or that the two sources name differently, is left out.

const emmc: Readonly<Record<number, string>> = {
  0x11: 'Toshiba',
  0x13: 'Micron',
  0x15: 'Samsung',
  0x37: 'KingMax',
  0x45: 'SanDisk',
  0x70: 'Kingston',
  0x90: 'SK hynix',
  0xfe: 'Micron',
}

const sd: Readonly<Record<number, string>> = {
  0x01: 'Panasonic',
  0x03: 'SanDisk',
  0x08: 'Silicon Power',
  0x09: 'ATP',
  0x1c: 'Transcend',
  0x1e: 'Transcend',
  0x1f: 'Kingston',
  0x28: 'Lexar',
  0x30: 'SanDisk',
  0x31: 'Silicon Power',
  0x41: 'Kingston',
  0x5d: 'Swissbit',
  0x74: 'Transcend',
  0x76: 'Patriot',
  0x9e: 'PNY',
  0x9f: 'Kingston',
}

/**
 * The maker of a card.
 * @param type the attribute `type` in sysfs: `MMC` or `SD`
 * @param manufacturer the attribute `manfid` in sysfs, for example `0x000015`
 */
function mmcVendorOf(type: string, manufacturer: string): string | undefined {
  const id = Number(manufacturer || NaN)
  return type === 'MMC' ? emmc[id] : type === 'SD' ? sd[id] : undefined
}

/** The bus of a disk. */
export type Controller = 'SCSI' | 'NVME' | 'SATA' | 'VIRTIO' | 'USB' | 'MMC'

/**
 * Reads the maker of a disk, where the disk or its controller reports it.
 * @param path the disk's folder under /sys/devices
 */
export async function readDiskVendor(
  files: HostFiles,
  path: string,
  controller: Controller | undefined,
): Promise<string | undefined> {
  const value = async (name: string) => (await files.text(`${path}/device/${name}`))?.trim() ?? ''
  switch (controller) {
    case 'SCSI':
    case 'USB':
    case 'SATA': {
      const vendor = await value('vendor')
      // ATA has no vendor field: the kernel, and every SCSI to ATA translation, reports "ATA" (SAT-4 8.1.2).
      return vendor === 'ATA' || controller === 'SATA'
        ? vendorOfModel(await value('model'))
        : usableVendor(vendor)
    }
    case 'NVME':
      return readNvmeVendor(files, `${path}/device`)
    case 'MMC':
      return mmcVendorOf(await value('type'), await value('manfid'))
    // virtio has only the vendor id of its transport.
    case 'VIRTIO':
    case undefined:
      return undefined
  }
}

/** @param device the controller of the disk; for a disk with several paths, the subsystem that contains its controllers */
async function readNvmeVendor(files: HostFiles, device: string): Promise<string | undefined> {
  const path = (await files.names(device)).find((name) => /^nvme\d+$/.test(name))
  const pciFunction = `${path === undefined ? device : `${device}/${path}`}/device`
  const id = (await files.text(`${pciFunction}/vendor`))?.trim()
  if (id === undefined) return undefined
  const address = basename((await files.link(pciFunction)) ?? '')
  return storageVendorOf(id) ?? (await readUdevNames(files, address)).vendor
}

// Words that are found in place of a maker: kinds of disk and of connection, and defaults of bridge chips.
const kinds =
  /^(ata|sata\d*|satadom|msata|nvme|ngff|m\.?2|mmc|sd|usb\d*|ssd|hdd|hd|disk|drive|solid|hard|harddisk|flash|memory|mass|storage|external|internal|industrial|portable|generic|removable)$/i

/** The maker in INQUIRY's vendor field (SPC-4 6.6.2); undefined where the field has none. */
export function usableVendor(field: string): string | undefined {
  const vendor = field.trim()
  return /[a-z]/i.test(vendor) && !isKind(vendor) ? vendor : undefined
}

/**
 * The maker in an ATA model: its first word where that is a name, of letters only, as in `Samsung SSD 870` or
 * `Micron_5300_MTFDDAK480TDS`. A model of one word, such as `ST4000NM0033`, names no maker.
 */
export function vendorOfModel(model: string): string | undefined {
  const [first = '', second] = model.trim().split(/[\s_]+/)
  if (second === undefined || !/^(?=..)[a-z]+(-[a-z]+)*$/i.test(first) || isKind(first)) return undefined
  return first
}

function isKind(word: string): boolean {
  return word.split(/[\s-]+/).some((part) => kinds.test(part))
}

/** Finds the physical disks of a mounted file system: several for a volume that spans disks, none for tmpfs. */
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

interface FileSystem {
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
  /** The names of all its paths: its own and, with device-mapper multipath, the other paths'. */
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
function controllerOf(name: string, path: string, subsystem: string): Controller | undefined {
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
