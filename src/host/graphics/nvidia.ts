import { CommandFailed, type CommandResult, type CommandRunner } from '../../system/runner.ts'
import type { HostFiles } from '../files.ts'

/** The values of NVIDIA's driver for one of its GPUs. */
export interface NvidiaGpu {
  readonly name?: string
  /** Absent where GPU and host share one memory. */
  readonly memoryMiB?: number
  /** Absent where the driver does not report whether the GPU can be divided. */
  readonly mig?: 'enabled' | 'disabled' | 'unsupported'
  /** Profiles of its instances, for example `1g.5gb`; absent where they could not be read. */
  readonly migProfiles?: readonly string[]
}

/** GPUs by PCI address, and one line for each question that failed. */
export interface NvidiaAnswer {
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
export function parseMigProfiles(text: string): ReadonlyMap<string, readonly string[]> {
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
