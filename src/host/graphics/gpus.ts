import type { HostFiles } from '../files.ts'
import { toMiB } from '../memory.ts'
import type { NvidiaGpu } from './nvidia.ts'
import { displayVendorOf } from '../pci-vendors.ts'
import type { Supplement } from '../supplement.ts'
import { readUdevNames } from '../udev-database.ts'

/** The display controllers of one model with the same memory. */
export interface Gpu {
  readonly vendor?: string
  readonly model?: string
  /** Memory of each, for example `40960 MiB`. */
  readonly memory?: string
  readonly gpuCount: number
  /** Number of the controller to its PCI address with underscores, for example `0000_11_00_0`. */
  readonly addresses: Readonly<Record<string, string>>
  /** Whether NVIDIA's driver can divide them into instances; absent where no driver reports it. */
  readonly migCapable?: boolean
  /** `none`: not divided; `single`: all divided, into instances of one profile; `mixed`: otherwise. */
  readonly migStrategy?: 'none' | 'single' | 'mixed'
}

/** A display controller, by the kernel's files. */
export interface DisplayController {
  /** PCI address, for example `0000:11:00.0`. */
  readonly address: string
  /** Vendor and device id; equal for equal chips, even without a name. */
  readonly chip: string
  readonly vendor: string | undefined
  /** As the driver reports it. */
  readonly model: string | undefined
  /** The name in the list of PCI ids. */
  readonly chipName: string | undefined
  readonly memoryMiB: number | undefined
}

const folder = '/sys/bus/pci/devices'

/** Reads the PCI devices of class 03 (display controller), including a BMC's. This needs neither a tool nor a driver. */
export async function readDisplayControllers(files: HostFiles): Promise<readonly DisplayController[]> {
  const addresses = await listDisplayControllers(files)
  return Promise.all(addresses.map((address) => readController(files, address)))
}

/** A display controller with the values of all sources. */
export interface Display extends Omit<DisplayController, 'chipName'> {
  readonly driver: NvidiaGpu
}

/**
 * The display controllers of a host, each field from its best source.
 * @param nvidia the values of NVIDIA's driver by PCI address; empty where it was not asked
 */
export function toDisplays(
  controllers: readonly DisplayController[],
  nvidia: ReadonlyMap<string, NvidiaGpu>,
  supplement?: Supplement,
): readonly Display[] {
  return controllers.map(({ chipName, ...controller }) => {
    const driver = nvidia.get(controller.address) ?? {}
    const other = supplement?.display(controller.address)
    return {
      ...controller,
      vendor: controller.vendor ?? other?.vendor,
      model: controller.model ?? driver.name ?? chipName ?? other?.model,
      memoryMiB: driver.memoryMiB ?? controller.memoryMiB ?? other?.memoryMiB,
      driver,
    }
  })
}

/** The GPUs of a host: its display controllers, grouped by chip, model and memory. */
export function toGpus(displays: readonly Display[]): readonly Gpu[] {
  const models = Map.groupBy(displays, ({ chip, model, memoryMiB }) => [chip, model, memoryMiB].join())
  return [...models.values()].map(toGpu)
}

async function listDisplayControllers(files: HostFiles): Promise<readonly string[]> {
  const found: string[] = []
  for (const address of await files.names(folder)) {
    if (!(await files.text(`${folder}/${address}/class`))?.startsWith('0x03')) continue
    // A virtual function (Documentation/PCI/pci-iov-howto.rst) is part of a card that is in the list itself.
    if ((await files.link(`${folder}/${address}/physfn`)) === undefined) found.push(address)
  }
  return found
}

async function readController(files: HostFiles, address: string): Promise<DisplayController> {
  const path = `${folder}/${address}`
  const vendorId = ((await files.text(`${path}/vendor`)) ?? '').trim()
  const deviceId = ((await files.text(`${path}/device`)) ?? '').trim()
  const vendorName = displayVendorOf(vendorId)
  const model = await readDriverModel(files, address)
  const names = vendorName && model ? {} : await readUdevNames(files, address)
  return {
    address,
    chip: `${vendorId} ${deviceId}`,
    vendor: vendorName ?? names.vendor,
    model,
    chipName: names.model,
    memoryMiB: await readMemory(files, path),
  }
}

/** The model that the driver reports: NVIDIA's in /proc, amdgpu's in `product_name`, which some boards have. */
async function readDriverModel(files: HostFiles, address: string): Promise<string | undefined> {
  const nvidia = await files.text(`/proc/driver/nvidia/gpus/${address}/information`)
  const model = /^Model:\s*(.+?)\s*$/m.exec(nvidia ?? '')?.[1]
  // "Unknown" before the driver has woken the GPU up.
  if (model !== undefined && model !== 'Unknown') return model
  return (await files.text(`${folder}/${address}/product_name`))?.trim() || undefined
}

/**
 * Dedicated memory in MiB, where the driver has a file for it: amdgpu's mem_info_vram_total
 * (Documentation/gpu/amdgpu/driver-misc.rst), xe's physical_vram_size_bytes of each tile. Both are bytes.
 */
async function readMemory(files: HostFiles, path: string): Promise<number | undefined> {
  const tiles = (await files.names(path)).filter((name) => /^tile\d+$/.test(name))
  const sources = ['mem_info_vram_total', ...tiles.map((tile) => `${tile}/physical_vram_size_bytes`)]
  const texts = await Promise.all(sources.map((source) => files.text(`${path}/${source}`)))
  const bytes = texts.reduce((sum, text) => sum + (Number(text) || 0), 0)
  return bytes > 0 ? toMiB(bytes) : undefined
}

function toGpu(controllers: readonly Display[]): Gpu {
  const { vendor, model, memoryMiB } = controllers[0] ?? {}
  const addresses = controllers.map(({ address }, index) => [index, address.replace(/[:.]/g, '_')])
  return {
    addresses: Object.fromEntries(addresses) as Record<string, string>,
    gpuCount: controllers.length,
    ...(memoryMiB === undefined ? {} : { memory: `${memoryMiB} MiB` }),
    ...migOf(controllers.map(({ driver }) => driver)),
    ...(model ? { model } : {}),
    ...(vendor ? { vendor } : {}),
  }
}

/** How GPUs of one model are divided, in the terms of NVIDIA's device plugin for Kubernetes. */
export function migOf(gpus: readonly NvidiaGpu[]): Pick<Gpu, 'migCapable' | 'migStrategy'> {
  if (gpus.some(({ mig }) => mig === undefined)) return {}
  if (gpus.every(({ mig }) => mig === 'unsupported')) return { migCapable: false }
  if (gpus.every(({ mig }) => mig !== 'enabled')) return { migCapable: true, migStrategy: 'none' }
  const divided = gpus.filter(({ mig }) => mig === 'enabled')
  const profiles = divided.map(({ migProfiles }) => migProfiles)
  // The strategy is unknown before the first instance is created, and where the instances could not be read.
  if (profiles.some((each) => each === undefined) || profiles.flat().length === 0) return { migCapable: true }
  const isSingle = divided.length === gpus.length && new Set(profiles.flat()).size === 1
  return { migCapable: true, migStrategy: isSingle ? 'single' : 'mixed' }
}
