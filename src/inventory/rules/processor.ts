import { integerOf, known, numberOf, part, rawList, rawOf, textOf, type Raw } from './clean.ts'

export interface ProcessorSources {
  /** systeminformation's `cpu()`. */
  readonly cpu: Raw
  /**
   * `lscpu --json --bytes`, for what systeminformation takes for something else: the name, which the board of an emulator
   * gives in its place; speeds, which are how fast the cores happen to run, or 410 for 408 MHz; caches of 1.5 MiB, which
   * become 1 MiB.
   */
  readonly lscpu: string | undefined
  /** `lscpu --parse=CORE,SOCKET`; of two kinds of core systeminformation counts the first. */
  readonly topology: string | undefined
}

/** The processors of a machine. */
export function processorOf({ cpu, lscpu, topology }: ProcessorSources) {
  // Of two kinds of core the first.
  const fields = new Map(fieldsOf(parse(lscpu).lscpu).toReversed())
  const [name, speed] = (textOf(fields.get('Model name')) ?? '').split('@')
  const flags = textList(cpu.flags)
  return part('processor', {
    manufacturer: textOf(cpu.vendor) ?? textOf(cpu.manufacturer),
    brand: textOf(name) ?? textOf(cpu.brand),
    family: textOf(cpu.family),
    model: textOf(cpu.model),
    stepping: stepping(cpu.stepping),
    revision: textOf(cpu.revision),
    socket: textOf(cpu.socket),
    ...countsOf(topology),
    speedMHz: integerOf((numberOf(speed) ?? 0) * 1_000),
    speedMinMHz: integerOf(fields.get('CPU min MHz')),
    speedMaxMHz: integerOf(fields.get('CPU max MHz')),
    ...part('cacheBytes', cachesOf(fields)),
    flags: flags.length > 0 ? flags : undefined,
  })
}

/** The first stepping of a processor is 0. */
const stepping = (value: unknown) => (value === '0' ? value : textOf(value))

const textList = (value: unknown) =>
  typeof value === 'string'
    ? value
        .split(/\s+/)
        .slice(0, 1_024)
        .flatMap((each) => textOf(each) ?? [])
    : []

/** A line each thread that is online: its core and its socket, with the numbers of the kernel. */
function countsOf(topology = '') {
  const threads = topology.split('\n').filter((line) => /^\d+,\d*$/.test(line))
  const cores = new Set(threads)
  const sockets = new Set(threads.map((line) => line.split(',')[1]))
  return {
    sockets: integerOf(sockets.size),
    cores: integerOf(cores.size),
    threads: integerOf(threads.length),
  }
}

/** Bytes of all instances, which newer versions count behind: `65536 (2 instances)`. */
function cachesOf(fields: ReadonlyMap<string, unknown>) {
  const cache = (name: string) => integerOf(fields.get(`${name} cache`))
  return { l1d: cache('L1d'), l1i: cache('L1i'), l2: cache('L2'), l3: cache('L3') }
}

/** The fields of `lscpu --json`, those that stand below others too. */
function fieldsOf(list: unknown): (readonly [string, unknown])[] {
  return rawList(list, 1_024).flatMap((each) => [
    [String(each.field).replace(/:$/, ''), each.data] as const,
    ...fieldsOf(each.children),
  ])
}

function parse(json: string | undefined): Raw {
  try {
    return rawOf(JSON.parse(json ?? ''))
  } catch {
    return known({})
  }
}
