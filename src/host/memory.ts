import type { HostFiles } from './files.ts'

/**
 * Bytes of memory the kernel manages: MemTotal of /proc/meminfo, proc_meminfo(5).
 * @throws Error where the line is missing
 */
export async function readTotalMemory(files: HostFiles): Promise<number> {
  const kibibytes = /^MemTotal:\s+(\d+) kB$/m.exec((await files.text('/proc/meminfo')) ?? '')?.[1]
  if (kibibytes === undefined) throw new Error('/proc/meminfo has no MemTotal')
  return Number(kibibytes) * 1_024
}

/** Whole MiB, rounded down. */
export function toMiB(bytes: number): number {
  return Math.floor(bytes / 2 ** 20)
}

/** Whole GiB, rounded to the nearest. */
export function toGiB(bytes: number): number {
  return Math.round(bytes / 2 ** 30)
}
