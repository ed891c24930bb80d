import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRegularFileSync } from '../system/regular-file.ts'

const firstDelayMs = 250
const longestDelayMs = 10_000

/** Counts consecutive failed starts, in a folder that survives restarts but not a reboot. */
export interface FailedStarts {
  /**
   * Counts one more failed start.
   * @returns milliseconds to wait before the process ends, doubling up to 10 s: systemd restarts it at once and without
   * limit, since otherwise the port could stay closed
   */
  add(): number
  /** Resets the count after a successful start. */
  clear(): void
}

/**
 * @param directory the runtime folder of the unit; without one, starts are not counted and the process does not wait
 */
export function createFailedStarts(directory: string | undefined): FailedStarts {
  if (directory === undefined) return { add: () => 0, clear: () => undefined }
  const file = join(directory, 'failed-starts')
  return {
    add() {
      const count = readCount(file) + 1
      try {
        writeFileSync(file, String(count))
      } catch {
        // A full or read-only /run must not hide why the start failed; without a count, wait the longest time.
        return longestDelayMs
      }
      return Math.min(firstDelayMs * 2 ** (count - 1), longestDelayMs)
    },
    clear: () => rmSync(file, { force: true }),
  }
}

function readCount(file: string): number {
  try {
    return Number(readRegularFileSync(file, 64).bytes.toString()) || 0
  } catch {
    return 0
  }
}
