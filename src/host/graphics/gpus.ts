import { CommandFailed, type CommandResult, type CommandRunner } from '../../system/runner.ts'
import type { HostFiles } from '../files.ts'
import { toMiB } from '../machine.ts'
import { displayVendorOf, readUdevNames } from '../devices.ts'
import type { Supplement } from '../fact.ts'

/** The values of NVIDIA's driver for one of its GPUs. */
interface NvidiaGpu {
  readonly name?: string
  /** Absent where GPU and host share one memory. */
  readonly memoryMiB?: number
  /** Absent where the driver does not report whether the GPU can be divided. */
  readonly mig?: 'enabled' | 'disabled' | 'unsupported'
  /** Profiles of its instances, for example `1g.5gb`; absent where they could not be read. */
  readonly migProfiles?: readonly string[]
}

/** GPUs by PCI address, and one line for each question that failed. */
interface NvidiaAnswer {
  readonly gpus: ReadonlyMap<string, NvidiaGpu>
  readonly problems: readonly string[]
}

// Without its persistence daemon, the driver first wakes each GPU up, which takes a second or more.
const timeoutMs = 10_000
const query = [
  '--query-gpu=pci.bus_id,uuid,name,memory.total,mig.mode.current',
  '--format=csv,noheader,nounits',
]

/**
 * Asks nvidia-smi(1) where the driver is loaded, and for instances only where a GPU is divided. On a host without the
 * program there are no GPUs in the answer and no problems.
 */
export async function readNvidia(files: HostFiles, runner: CommandRunner): Promise<NvidiaAnswer> {
  const problems: string[] = []
  // A driver that runs in a container has its tool there too, not in /usr/bin.
  const canAsk =
    (await files.text('/proc/driver/nvidia/version')) !== undefined &&
    (await files.names('/usr/bin')).includes('nvidia-smi')
  if (!canAsk) return { gpus: new Map(), problems }
  const rows = parseQuery(await ask(runner, query, problems))
  const isDivided = rows.some(({ gpu }) => gpu.mig === 'enabled')
  const profiles = isDivided ? parseMigProfiles(await ask(runner, ['-L'], problems)) : undefined
  const gpus = rows.map(({ address, uuid, gpu }): [string, NvidiaGpu] => {
    const migProfiles = profiles?.get(uuid)
    return [address, migProfiles === undefined ? gpu : { ...gpu, migProfiles }]
  })
  return { gpus: new Map(gpus), problems }
}

/** The program's output, even if it failed: one of several GPUs may be lost. */
async function ask(runner: CommandRunner, args: readonly string[], problems: string[]): Promise<string> {
  const result = await runner.run('nvidia-smi', args, { timeoutMs }).catch((error: unknown) => {
    if (!(error instanceof CommandFailed)) throw error
    if (error.reason !== 'not-started') problems.push(error.message)
    return undefined
  })
  if (result !== undefined && result.exitCode !== 0) problems.push(describeFailure(result))
  return result?.stdout ?? ''
}

function describeFailure({ exitCode, stdout, stderr }: CommandResult): string {
  const end = exitCode === undefined ? 'was ended by a signal' : `ended with ${exitCode}`
  // nvidia-smi writes errors to its standard output, between the rows.
  const lines = `${stderr}\n${stdout}`.split('\n').map((line) => line.trim())
  const why = lines.find((line) => line !== '' && !isRow.test(line))
  return `nvidia-smi ${end}${why === undefined ? '' : `: ${why}`}`
}

// A PCI address with a domain of eight digits, such as 00000000:3B:00.0.
const isRow = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7],/i

interface Row {
  readonly address: string
  readonly uuid: string
  readonly gpu: NvidiaGpu
}

/** Parses the answer to the query; an unknown value is `[N/A]`, `[Unknown Error]` or similar. */
export function parseQuery(text: string): readonly Row[] {
  const lines = text.split('\n').filter((line) => isRow.test(line))
  return lines.map((line) => {
    const [busId = '', uuid = '', ...rest] = line.split(',').map((field) => field.trim())
    const mig = migModes[rest.pop() ?? '']
    const memory = rest.pop() ?? ''
    const name = rest.join(', ')
    const gpu = {
      ...(name && !name.startsWith('[') ? { name } : {}),
      ...(/^\d+$/.test(memory) ? { memoryMiB: Number(memory) } : {}),
      ...(mig ? { mig } : {}),
    }
    return { address: toSysfsAddress(busId), uuid, gpu }
  })
}

const migModes: Readonly<Record<string, NvidiaGpu['mig']>> = {
  Enabled: 'enabled',
  Disabled: 'disabled',
  'N/A': 'unsupported',
  '[N/A]': 'unsupported',
  'Not Supported': 'unsupported',
  '[Not Supported]': 'unsupported',
}

/** `00000000:3B:00.0` → `0000:3b:00.0`, as in sysfs: a domain has four digits, and more only where it needs them. */
export function toSysfsAddress(busId: string): string {
  const [domain = '', ...rest] = busId.toLowerCase().split(':')
  return [domain.replace(/^0+/, '').padStart(4, '0'), ...rest].join(':')
}

/** Profiles of the instances in `nvidia-smi -L`, by the UUID of their GPU; empty for a GPU without instances. */
function parseMigProfiles(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  let current: string[] = []
  for (const line of text.split('\n')) {
    const uuid = /^GPU \d+: .*\(UUID: (GPU-[^)]+)\)/.exec(line)?.[1]
    const profile = /^\s+MIG (\S+)\s+Device\s/.exec(line)?.[1]
    if (uuid !== undefined) found.set(uuid, (current = []))
    else if (profile !== undefined) current.push(profile)
  }
  return found
}

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
interface DisplayController {
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

/** Division of GPUs of one model, in the terms of NVIDIA's device plugin for Kubernetes. */
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
