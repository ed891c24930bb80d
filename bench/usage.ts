import { readFileSync, writeFileSync } from 'node:fs'

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
export function readStealMs(): number {
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
