/**
 * Bytes of memory the kernel manages: MemTotal of /proc/meminfo, by systeminformation's `mem()`, which
 * reads that one file and starts no process. Only the module that holds it is loaded, and only when it is
 * needed: the whole package costs five times as much start-up time.
 */
export async function readTotalMemory(): Promise<number> {
  const { mem } = await import('systeminformation/lib/memory.js')
  return (await mem()).total
}

/** Whole MiB, rounded down. */
export function toMiB(bytes: number): number {
  return Math.floor(bytes / 2 ** 20)
}

/** Whole GiB, rounded to the nearest. */
export function toGiB(bytes: number): number {
  return Math.round(bytes / 2 ** 30)
}
