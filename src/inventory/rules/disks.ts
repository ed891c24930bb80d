import { usableVendor, vendorOfModel } from '../../host/storage/disk-vendor.ts'
import type { Disk } from '../../host/storage/disks.ts'
import { storageVendorOf } from '../../host/pci-vendors.ts'
import { celsiusOf, integerOf, known, numberOf, rawList, rawOf, serialOf, textOf, type Raw } from './clean.ts'

export interface DiskSources {
  /** The disk by the kernel's files, read by the same rules as for `edgehosts/current`. */
  readonly disk: Disk
  /** Its entry of `lsblk --json`; without fields where lsblk does not list the disk. */
  readonly block: Raw
  /** `smartctl --json`; without fields where it was not run, or gave no answer. */
  readonly smart: Raw
}

/** The entries of `lsblk --json --bytes --nodeps` by the name of the disk. */
export function blocksOf(lsblk: unknown): ReadonlyMap<string, Raw> {
  const blocks = rawList(rawOf(lsblk).blockdevices, 4_096)
  return new Map(blocks.map((block) => [String(block.name), block]))
}

/** One disk, each field from its best source. */
export function diskOf({ disk, block, smart }: DiskSources) {
  const { name, controller, vendor } = disk
  return {
    name,
    ...known({
      controller,
      kind: kindOf(disk, block, smart),
      vendor: textOf(vendor ?? smartVendor(smart)),
      model: textOf(smart.model_name) ?? textOf(smart.scsi_product) ?? textOf(block.model),
      serial: serialOf(smart.serial_number) ?? serialOf(block.serial),
      firmware: textOf(smart.firmware_version) ?? textOf(smart.scsi_revision) ?? textOf(block.rev),
      sizeBytes: integerOf(block.size),
    }),
    ...smartOf(smart),
  }
}

/**
 * The kernel counts a disk as rotating unless the disk reports otherwise. Disks on USB and virtual disks seldom do, so for
 * these only smartctl counts.
 */
function kindOf({ controller }: Disk, block: Raw, smart: Raw): 'HDD' | 'SSD' | undefined {
  const rate = smart.rotation_rate
  if (typeof rate === 'number') return rate > 0 ? 'HDD' : 'SSD'
  if (controller === 'NVME') return 'SSD'
  if (controller !== 'SATA' && controller !== 'SCSI') return undefined
  const rota = block.rota
  return rota === true || rota === '1' ? 'HDD' : rota === false || rota === '0' ? 'SSD' : undefined
}

/** The maker by smartctl: SCSI's vendor, the family of an ATA model, or the PCI id of an NVMe controller. */
function smartVendor(smart: Raw): string | undefined {
  const scsi = smart.scsi_vendor
  if (typeof scsi === 'string') return scsi.trim() === 'ATA' ? undefined : usableVendor(scsi)
  const id = numberOf(rawOf(smart.nvme_pci_vendor).id)
  if (id !== undefined) return storageVendorOf(`0x${id.toString(16).padStart(4, '0')}`)
  const family = textOf(smart.model_family) ?? ''
  if (family.startsWith('Western Digital ')) return 'Western Digital'
  // A family such as "SandForce Driven SSDs" covers many makers.
  return /\b(based|driven)\b/i.test(family) ? undefined : vendorOfModel(family)
}

/** The health that a disk reports. smartctl uses the same fields for NVMe's log page, ATA's attributes and SCSI's pages. */
function smartOf(smart: Raw) {
  const passed = rawOf(smart.smart_status).passed
  const nvme = rawOf(smart.nvme_smart_health_information_log)
  const values = {
    temperatureCelsius: celsiusOf(rawOf(smart.temperature).current),
    powerOnHours: integerOf(rawOf(smart.power_on_time).hours),
    usedPercent: numberOf(nvme.percentage_used) ?? numberOf(rawOf(smart.endurance_used).current_percent),
  }
  const isKnown = Object.values(values).some((value) => value !== undefined)
  const state =
    typeof passed === 'boolean'
      ? passed
        ? ('passed' as const)
        : ('failed' as const)
      : isAsleep(smart)
        ? ('standby' as const)
        : isKnown
          ? ('unknown' as const)
          : undefined
  return state === undefined ? {} : { smart: { state, ...known(values) } }
}

const messagesOf = (smart: Raw) =>
  rawList(rawOf(smart.smartctl).messages, 64).map(({ string }) => String(string))

/** Whether smartctl did not wake the disk: with `-n standby` it ends with "Device is in STANDBY mode, exit(2)". */
export const isAsleep = (smart: Raw): boolean =>
  messagesOf(smart).some((message) => /^Device is in (STANDBY|SLEEP)\b/.test(message))

/** Why smartctl has no answer; undefined where it has one, and for a disk behind a USB bridge that does not support SMART. */
export function smartProblem(smart: Raw): string | undefined {
  // Bit 0 of the exit status: error in the command line; bit 1: the device could not be opened.
  const status = Number(rawOf(smart.smartctl).exit_status ?? 0)
  if ((status & 3) === 0 || isAsleep(smart)) return undefined
  if (messagesOf(smart).some((message) => message.includes('Unknown USB bridge'))) return undefined
  return textOf(messagesOf(smart)[0]) ?? `smartctl ended with ${status}`
}
