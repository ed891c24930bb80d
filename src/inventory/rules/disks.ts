import { usableVendor, vendorOfModel } from '../../host/storage/disk-vendor.ts'
import type { Disk } from '../../host/storage/disks.ts'
import { storageVendorOf } from '../../host/pci-vendors.ts'
import { integerOf, known, numberOf, rawList, rawOf, serialOf, textOf, type Raw } from './clean.ts'

export interface DiskSources {
  /** Of the kernel's files, by the same rules as in `edgehosts/current`. */
  readonly disk: Disk
  /** Its line of `lsblk --json`; no fields where lsblk does not have it. */
  readonly block: Raw
  /** `smartctl --json`; no fields where it was not asked, or gave no answer. */
  readonly smart: Raw
}

/** The lines of `lsblk --json --bytes --nodeps` by the names of the disks. */
export function blocksOf(lsblk: string): ReadonlyMap<string, Raw> {
  const blocks = rawList(rawOf(JSON.parse(lsblk)).blockdevices, 4_096)
  return new Map(blocks.map((block) => [String(block.name), block]))
}

/** One disk, of everything that knows it. */
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

/** The kernel takes a disk for one that turns until it says otherwise; those on USB, and virtual ones, seldom do. */
function kindOf({ controller }: Disk, block: Raw, smart: Raw): 'HDD' | 'SSD' | undefined {
  const rate = smart.rotation_rate
  if (typeof rate === 'number') return rate > 0 ? 'HDD' : 'SSD'
  if (controller === 'NVME') return 'SSD'
  if (controller !== 'SATA' && controller !== 'SCSI') return undefined
  const rota = block.rota
  return rota === true || rota === '1' ? 'HDD' : rota === false || rota === '0' ? 'SSD' : undefined
}

/** The maker that smartctl knows: of SCSI, of the family of an ATA model, of the PCI id of NVMe. */
function smartVendor(smart: Raw): string | undefined {
  const scsi = smart.scsi_vendor
  if (typeof scsi === 'string') return scsi.trim() === 'ATA' ? undefined : usableVendor(scsi)
  const id = numberOf(rawOf(smart.nvme_pci_vendor).id)
  if (id !== undefined) return storageVendorOf(`0x${id.toString(16).padStart(4, '0')}`)
  const family = textOf(smart.model_family) ?? ''
  if (family.startsWith('Western Digital ')) return 'Western Digital'
  // "SandForce Driven SSDs" are of many makers.
  return /\b(based|driven)\b/i.test(family) ? undefined : vendorOfModel(family)
}

/** What a disk says of its health; the log page of NVMe, the attributes of ATA and the pages of SCSI say it alike. */
function smartOf(smart: Raw) {
  const passed = rawOf(smart.smart_status).passed
  const nvme = rawOf(smart.nvme_smart_health_information_log)
  const values = {
    temperatureCelsius: numberOf(rawOf(smart.temperature).current),
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

/** `-n standby` ends with "Device is in STANDBY mode, exit(2)". */
export const isAsleep = (smart: Raw): boolean =>
  messagesOf(smart).some((message) => /^Device is in (STANDBY|SLEEP)\b/.test(message))

/** Why smartctl has no answer; undefined where it has one, or where the disk sits behind USB and shows no SMART. */
export function smartProblem(smart: Raw): string | undefined {
  // Bits 0 and 1 of its exit status: the command line, the device.
  const status = Number(rawOf(smart.smartctl).exit_status ?? 0)
  if ((status & 3) === 0 || isAsleep(smart)) return undefined
  if (messagesOf(smart).some((message) => message.includes('Unknown USB bridge'))) return undefined
  return textOf(messagesOf(smart)[0]) ?? `smartctl ended with ${status}`
}
