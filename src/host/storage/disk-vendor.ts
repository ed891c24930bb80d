import { basename } from 'node:path'
import type { HostFiles } from '../files.ts'
import { mmcVendorOf } from './mmc-vendors.ts'
import { storageVendorOf } from '../pci-vendors.ts'
import { readUdevNames } from '../udev-database.ts'

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
