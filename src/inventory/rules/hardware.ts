import {
  integerOf,
  numberOf,
  part,
  rawList,
  textOf,
  type Raw,
  celsiusOf,
  known,
  rawOf,
  serialOf,
} from './clean.ts'
import { usableVendor, vendorOfModel, type Disk } from '../../host/storage/disks.ts'
import { storageVendorOf } from '../../host/devices.ts'

interface ProcessorSources {
  /** systeminformation's `cpu()`. */
  readonly cpu: Raw
  /**
   * `lscpu --json --bytes`, for values that systeminformation gets wrong: the name, where it reports the emulated machine
   * instead; speeds, where it reports the momentary speed of the cores, or 410 for 408 MHz; caches, where 1.5 MiB become
   * 1 MiB.
   */
  readonly lscpu: Raw
  /** `lscpu --parse=CORE,SOCKET`; of two kinds of core, systeminformation counts only the first. */
  readonly topology: string | undefined
}

/** The processors of a machine. */
export function processorOf({ cpu, lscpu, topology }: ProcessorSources) {
  const listed = fieldsOf(lscpu.lscpu)
  // Reversed, so that of two kinds of core the first wins.
  const fields = new Map(listed.toReversed())
  const all = (wanted: string) => listed.flatMap(([field, value]) => (field === wanted ? [value] : []))
  const speeds = (wanted: string) => all(wanted).flatMap((value) => integerOf(value) ?? [])
  // One name for each kind of core: a processor of two kinds has two.
  const kinds = [...new Set(all('Model name').flatMap((value) => textOf(value) ?? []))]
  // lscpu lists each kind once, with the name - where it does not know it; kinds may have one name too.
  const hasKinds = all('Model name').length > 1
  const [first, speed] = (kinds[0] ?? '').split('@')
  const name = kinds.length > 1 ? kinds.join(', ') : first
  const flags = textList(cpu.flags)
  return part('processor', {
    manufacturer: textOf(cpu.vendor) ?? textOf(cpu.manufacturer),
    brand: textOf(name) ?? textOf(cpu.brand),
    family: textOf(cpu.family),
    model: textOf(cpu.model),
    stepping: stepping(cpu.stepping),
    revision: textOf(cpu.revision),
    socket: textOf(cpu.socket),
    ...countsOf(topology, hasKinds),
    speedMHz: integerOf((numberOf(speed) ?? 0) * 1_000),
    speedMinMHz: integerOf(Math.min(...speeds('CPU min MHz'))),
    speedMaxMHz: integerOf(Math.max(...speeds('CPU max MHz'))),
    ...part('cacheBytes', cachesOf(fields)),
    flags: flags.length > 0 ? flags : undefined,
  })
}

/** The stepping of a processor; 0 is the first stepping, not a placeholder. */
const stepping = (value: unknown) => (value === '0' ? value : textOf(value))

const textList = (value: unknown) =>
  typeof value === 'string'
    ? value
        .split(/\s+/)
        .slice(0, 1_024)
        .flatMap((each) => textOf(each) ?? [])
    : []

/**
 * Counts from one line for each online thread, with the kernel's numbers of its core and its socket. Kernels take each cluster of
 * one kind of core for a socket; a machine with several processors has equal ones.
 */
function countsOf(topology: string | undefined, hasKinds: boolean) {
  const threads = (topology ?? '').split('\n').filter((line) => /^\d+,\d*$/.test(line))
  const cores = new Set(threads)
  const sockets = new Set(threads.map((line) => line.split(',')[1]))
  return {
    sockets: integerOf(hasKinds ? Math.min(sockets.size, 1) : sockets.size),
    cores: integerOf(cores.size),
    threads: integerOf(threads.length),
  }
}

/** Bytes of all instances; newer versions of lscpu append their number: `65536 (2 instances)`. */
function cachesOf(fields: ReadonlyMap<string, unknown>) {
  const cache = (name: string) => integerOf(fields.get(`${name} cache`))
  return { l1d: cache('L1d'), l1i: cache('L1i'), l2: cache('L2'), l3: cache('L3') }
}

/** The fields of `lscpu --json`, including nested ones. */
function fieldsOf(list: unknown): (readonly [string, unknown])[] {
  return rawList(list, 1_024).flatMap((each) => [
    [String(each.field).replace(/:$/, ''), each.data] as const,
    ...fieldsOf(each.children),
  ])
}

// Models that systeminformation makes up: for a machine without a name, with Docker files, or with a hypervisor's kernel messages.
const inventedModels: readonly unknown[] = ['Computer', 'Docker Container', 'Virtual machine']

/**
 * Maker, model, serial number, SKU and version of the whole machine, from systeminformation's `system()`.
 * @param productName the kernel's name of the product, for a machine without a model or with a made-up one
 */
export const systemOf = (
  { manufacturer, model, version, serial, sku }: Raw,
  productName: string | undefined,
) =>
  part('system', {
    manufacturer: textOf(manufacturer),
    model: (inventedModels.includes(model) ? undefined : textOf(model)) ?? textOf(productName),
    version: textOf(version),
    serial: serialOf(serial),
    sku: textOf(sku),
  })

/** The mainboard, from `baseboard()`; its memory figures are not used: they cover the first array only, and are wrong above 1023 GB. */
export const boardOf = ({ manufacturer, model, version, serial, assetTag }: Raw) =>
  part('board', {
    manufacturer: textOf(manufacturer),
    model: textOf(model),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/** The chassis, from `chassis()`. */
export const chassisOf = ({ manufacturer, type, version, serial, assetTag }: Raw) =>
  part('chassis', {
    manufacturer: textOf(manufacturer),
    type: type === 'Other' ? undefined : textOf(type),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/**
 * The firmware, from `bios()`. The library swaps month and day, so the date comes from the kernel.
 * @param date the kernel's `bios_date`: mm/dd/yyyy, SMBIOS 3.7, 7.1
 */
export function biosOf({ vendor, version }: Raw, date: string | undefined) {
  const [, month, day, year] = /^\s*(\d\d)\/(\d\d)\/(\d{4})\s*$/.exec(date ?? '') ?? []
  return part('bios', {
    vendor: textOf(vendor),
    version: textOf(version),
    releaseDate: year === undefined ? undefined : `${year}-${month}-${day}`,
  })
}

/** Slots and modules, from `memLayout()`. */
export function memoryOf(list: unknown) {
  // Where dmidecode lists no slot, the library makes up one module of all memory; it is the only one without the field manufacturer.
  const slots = rawList(list, 1_024).filter((slot) => Object.hasOwn(slot, 'manufacturer'))
  if (slots.length === 0) return {}
  const modules = slots
    .filter(({ size }) => numberOf(size) !== undefined)
    .map((slot) =>
      known({
        bank: textOf(slot.bank),
        sizeBytes: integerOf(slot.size),
        type: textOf(slot.type),
        formFactor: textOf(slot.formFactor),
        manufacturer: textOf(slot.manufacturer),
        partNumber: textOf(slot.partNum),
        serial: serialOf(slot.serialNum),
        speedMTps: integerOf(slot.clockSpeed),
        voltage: numberOf(slot.voltageConfigured),
      }),
    )
  return { memory: { slots: slots.length, modules } }
}

/** The USB devices, from `usb()`. */
export const usbOf = (list: unknown) =>
  rawList(list, 256).map((device) =>
    known({
      bus: integerOf(device.bus),
      device: integerOf(device.deviceId),
      id: /^[0-9a-f]{4}:[0-9a-f]{4}$/.test(String(device.id)) ? String(device.id) : undefined,
      name: textOf(device.name),
      vendor: textOf(device.vendor),
      manufacturer: textOf(device.manufacturer),
      serial: serialOf(device.serialNumber),
      type: textOf(device.type),
    }),
  )

/** The battery, from `battery()`, without its capacities: one of them is computed as an OR of two others (5.33). */
export const batteryOf = (battery: Raw) =>
  battery.hasBattery !== true
    ? {}
    : part('battery', {
        manufacturer: textOf(battery.manufacturer),
        model: textOf(battery.model),
        serial: serialOf(battery.serial),
        type: textOf(battery.type),
        cycles: integerOf(battery.cycleCount),
        percent: numberOf(battery.percent),
      })

/**
 * Temperatures in °C, from `cpuTemperature()`.
 * @param hasSilentSensor whether a sensor of the processor gives no value: systeminformation takes 0 for it
 */
export const temperatureOf = ({ main, max, chipset }: Raw, hasSilentSensor = false) => {
  const ofProcessor = (value: unknown) => (hasSilentSensor && value === 0 ? undefined : celsiusOf(value))
  return part('temperature', {
    processorCelsius: ofProcessor(main),
    hottestCelsius: ofProcessor(max),
    chipsetCelsius: celsiusOf(chipset),
  })
}

/** The display controllers, from `graphics()`. */
export function graphicsOf(value: unknown) {
  return rawList(rawOf(value).controllers, 64).flatMap((controller) => {
    const address = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(
      String(controller.busAddress),
    )
    if (!address) return []
    return [
      {
        address: `${address[1] ?? '0000'}:${address[2]}`.toLowerCase(),
        ...known({
          vendor: textOf(controller.vendor),
          model: textOf(controller.name) ?? textOf(controller.model),
          // memoryTotal is reported by NVIDIA's driver. vram is not used: it is only the size of a window into the memory.
          memoryMiB: integerOf(controller.memoryTotal),
          driverVersion: textOf(controller.driverVersion),
        }),
      },
    ]
  })
}

interface NicSources {
  readonly name: string
  /** Files below /sys/class/net/<name>; undefined where the card does not report the value. */
  readonly address: string | undefined
  readonly speed: string | undefined
  readonly duplex: string | undefined
  /** Name of the kernel's driver. */
  readonly driver: string | undefined
  /** Output of `ethtool --driver`; undefined where it failed. */
  readonly ethtool: string | undefined
}

const duplexes = ['full', 'half'] as const

/** One network card. */
export function nicOf({ name, address, speed, duplex, driver, ethtool = '' }: NicSources) {
  const field = (label: string) => textOf(new RegExp(`^${label}: (.*)$`, 'm').exec(ethtool)?.[1])
  return {
    name,
    ...known({
      macAddr: /^00(:00)+$/.test(address?.trim() ?? '') ? undefined : textOf(address),
      driver: textOf(driver) ?? field('driver'),
      firmware: field('firmware-version'),
      busAddress: field('bus-info'),
      // -1 while there is no link.
      speedMbps: integerOf(speed),
      duplex: duplexes.find((each) => each === duplex?.trim()),
    }),
  }
}

interface DiskSources {
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
const isAsleep = (smart: Raw): boolean =>
  messagesOf(smart).some((message) => /^Device is in (STANDBY|SLEEP)\b/.test(message))

/** Why smartctl has no answer; undefined where it has one, and for a disk behind a USB bridge that does not support SMART. */
export function smartProblem(smart: Raw): string | undefined {
  // Bit 0 of the exit status: error in the command line; bit 1: the device could not be opened.
  const status = Number(rawOf(smart.smartctl).exit_status ?? 0)
  if ((status & 3) === 0 || isAsleep(smart)) return undefined
  if (messagesOf(smart).some((message) => message.includes('Unknown USB bridge'))) return undefined
  return textOf(messagesOf(smart)[0]) ?? `smartctl ended with ${status}`
}
