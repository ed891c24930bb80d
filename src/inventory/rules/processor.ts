import { integerOf, numberOf, part, rawList, textOf, type Raw } from './clean.ts'

export interface ProcessorSources {
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
    ...countsOf(topology, kinds.length > 1),
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
