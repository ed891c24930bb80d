import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import type { Rig } from './rig.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  /** Undefined when the measurements were too noisy; `note` says why. */
  readonly value: Spread | undefined
  readonly unit: '' | 's' | 'ms' | 'MiB' | 'KiB' | '%' | 'us' | 'req/s' | 'MB/s' | 'kB'
  /** Text of the limit that the value should keep; undefined for a line that only explains another. */
  readonly target?: string
  readonly note?: string
}

/** Takes the measurements behind a few lines of the table. */
export type Measure = (rig: Rig) => Promise<Figure[]>

/** The optional parts of a line. */
export type Remarks = Pick<Figure, 'target' | 'note'>

/** The line of a ratio, measured in pairs; it has no value when the baseline alone varied too much. */
export function ratioFigure(
  name: string,
  own: readonly number[],
  base: readonly number[],
  remarks: Remarks = {},
): Figure {
  const noise = noiseOf(base)
  if (noise === undefined) return { name, value: spread(pairedRatios(own, base)), unit: '', ...remarks }
  const note = `too noisy: the baseline alone varied by a factor of ${noise.toFixed(1)}`
  return { name, value: undefined, unit: '', ...remarks, note }
}

// Statistics of a series of measurements. Pure.

/** Median and range of a series. */
interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The quantile of a series, by the nearest rank: 0.99 for p99. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** The spread of a figure that is measured only once. */
export function single(value: number): Spread {
  return { median: value, min: value, max: value }
}

/** Measures both sides again and again, in turns: neither is always the second. @param say is told which round begins */
export async function inTurns<Base, Own>(
  rounds: number,
  sides: { readonly base: () => Promise<Base>; readonly own: () => Promise<Own> },
  say: (round: string) => void,
): Promise<{ readonly base: Base[]; readonly own: Own[] }> {
  const found = { base: [] as Base[], own: [] as Own[] }
  const both = [
    async () => void found.base.push(await sides.base()),
    async () => void found.own.push(await sides.own()),
  ]
  for (let round = 0; round < rounds; round += 1) {
    say(`round ${round + 1} of ${rounds}`)
    for (const side of round % 2 === 0 ? both : both.toReversed()) await side()
  }
  return found
}

/** Ratios of a candidate to a baseline, measured in pairs. */
export function pairedRatios(candidate: readonly number[], baseline: readonly number[]): number[] {
  return candidate.map((value, index) => value / (baseline[index] ?? Number.NaN))
}

// A baseline whose largest value is more than this times its smallest says nothing about a candidate.
const largestBaselineSpread = 3

/** Largest ÷ smallest value of a baseline that varies too much for a ratio; undefined for a usable one. */
function noiseOf(baseline: readonly number[]): number | undefined {
  const { min, max } = spread(baseline)
  return max > largestBaselineSpread * min ? max / min : undefined
}

/**
 * Probability that two series differ by chance as much as these two: Mann-Whitney test, two-sided, by the normal
 * approximation, good from about 20 values each.
 */
export function chanceOfSame(a: readonly number[], b: readonly number[]): number {
  let wins = 0
  for (const x of a) for (const y of b) wins += x > y ? 1 : x === y ? 0.5 : 0
  const mean = (a.length * b.length) / 2
  const deviation = Math.sqrt((a.length * b.length * (a.length + b.length + 1)) / 12)
  return 2 * (1 - normalBelow(Math.abs(wins - mean) / deviation))
}

// Abramowitz and Stegun 26.2.17; off by less than 1e-7.
function normalBelow(z: number): number {
  const t = 1 / (1 + 0.2316419 * z)
  const terms = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429]
  const sum = terms.reduce((total, factor, index) => total + factor * t ** (index + 1), 0)
  return 1 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum
}

interface Machine {
  readonly cores: number
  readonly model: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
}

/** The machine on which the figures were measured. */
export function readMachine(): Machine {
  const model = /^model name\s*:\s*(.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]
  return {
    cores: availableParallelism(),
    model: model ?? process.arch,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    node: process.version,
  }
}

/** The figures as a text table, each note below its line. */
export function renderTable(machine: Machine, figures: readonly Figure[]): string {
  const rows = [
    ['figure', 'median', 'range', 'target'],
    ...figures.map(({ name, value, unit, target = '' }) => [
      name,
      value === undefined ? '?' : `${show(value.median)}${suffix(unit)}`,
      value === undefined || value.min === value.max ? '' : range(value),
      target,
    ]),
  ]
  const widths = (rows[0] ?? []).map((_title, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const [title = '', ...rest] = lines
  const withNotes = rest.flatMap((line, index) => {
    const note = figures[index]?.note
    return note === undefined ? [line] : [line, `    ${note}`]
  })
  const { cores, model, memoryGiB, kernel, node } = machine
  return [
    `${cores} × ${model}, ${memoryGiB} GiB, Linux ${kernel}, Node ${node.slice(1)}`,
    '',
    title,
    '-'.repeat(title.length),
    ...withNotes,
    '',
  ].join('\n')
}

const range = ({ min, max }: Spread) => `[${show(min)} .. ${show(max)}]`

const suffix = (unit: Figure['unit']) => (unit === '' ? '' : ` ${unit}`)

/** Three significant digits. */
function show(value: number): string {
  if (!Number.isFinite(value)) return '?'
  const size = Math.abs(value)
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3)
}

// Baseline and candidate are measured one after the other. If other machines take a larger share of the processors
// meanwhile, the ratio of the two is wrong.
const largestStolenShare = 0.02
const tries = 4

/** Measures baseline and candidate one after the other, undisturbed by other machines. The order changes each round. */
export const measurePair = <T>(round: number, base: () => Promise<T>, own: () => Promise<T>) =>
  measureUndisturbed(async () => {
    if (round % 2 === 0) return { base: await base(), own: await own() }
    return { own: await own(), base: await base() }
  })

/**
 * Repeats a measurement during which the hypervisor gave the processors to other machines, up to four times. The fourth
 * result counts in any case.
 */
async function measureUndisturbed<T>(measure: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left -= 1) {
    const startedAt = performance.now()
    const stolenBefore = readStealMs()
    const result = await measure()
    const processorMs = (performance.now() - startedAt) * availableParallelism()
    if (left === 1 || readStealMs() - stolenBefore <= largestStolenShare * processorMs) return result
  }
}

// USER_HZ, in which /proc/<pid>/stat counts, is 100 on every architecture we ship for (proc_pid_stat(5)).
const msPerTick = 10

/** Processor time of a process so far, milliseconds; with `children` also of those it has waited for. */
export const readCpuMs = (pid: number, which: { readonly children?: boolean } = {}): number =>
  parseCpuMs(readFileSync(`/proc/${pid}/stat`, 'utf8'), which)

/** The same of the content of `/proc/<pid>/stat`. */
export function parseCpuMs(stat: string, { children = false } = {}): number {
  // The second field is the name in parentheses and may hold anything, spaces too.
  const fields = stat.split(') ').at(-1)?.split(' ') ?? []
  const ticks = fields.slice(11, children ? 15 : 13).reduce((sum, field) => sum + Number(field), 0)
  return ticks * msPerTick
}

/** Time that the hypervisor has given to other machines since the boot, all processors together, ms (proc_stat(5)). */
function readStealMs(): number {
  const steal = /^cpu +(?:\d+ ){7}(\d+)/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]
  return Number(steal ?? 0) * msPerTick
}

/** Resident memory of a process, MiB; 0 for a process that has ended. */
export const readRssMiB = (pid: number): number => parseRssMiB(readOrEmpty(`/proc/${pid}/status`))

/** The same of the content of `/proc/<pid>/status`. */
export function parseRssMiB(status: string): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return Number(kib ?? 0) / 1_024
}

/** The most resident memory that a process has had since its start, or since `resetPeak`, MiB; 0 for a process that has ended. */
export function readPeakMiB(pid: number): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1]
  return Number(kib ?? 0) / 1_024
}

/** Sets the peak to the memory that is resident now, proc_pid_clear_refs(5). */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/**
 * Memory of a process and all below it, MiB, each shared page counted once (Pss): thirty sleeping children share
 * their libraries. Processes that end meanwhile do not count.
 */
export function readTreeMiB(pid: number): number {
  return readPssMiB(pid) + childrenOf(pid).reduce((sum, child) => sum + readTreeMiB(child), 0)
}

/** Resident memory of a process and of all below it, MiB; pages that they share count for each. */
export function readTreeRssMiB(pid: number): number {
  return readRssMiB(pid) + childrenOf(pid).reduce((sum, child) => sum + readTreeRssMiB(child), 0)
}

/** Bytes that a process has written to disks, those in the page cache included (proc_pid_io(5)); undefined if it has ended. */
export function readWrittenBytes(pid: number): number | undefined {
  const bytes = /^write_bytes: (\d+)$/m.exec(readOrEmpty(`/proc/${pid}/io`))?.[1]
  return bytes === undefined ? undefined : Number(bytes)
}

/** The running processes that the main thread of this one has started. */
export function childrenOf(pid: number): number[] {
  return readWords(`/proc/${pid}/task/${pid}/children`).map(Number)
}

/** Number of children of a process. */
export function countChildren(pid: number): number {
  return childrenOf(pid).length
}

function readPssMiB(pid: number): number {
  const kib = /^Pss:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1]
  return Number(kib ?? 0) / 1_024
}

const readWords = (file: string) => readOrEmpty(file).split(/\s+/).filter(Boolean)

/** Empty for a process that has ended. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}
