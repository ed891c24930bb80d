import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRegularFileSync } from '../system/regular-file.ts'

const firstDelayMs = 250
const longestDelayMs = 10_000

/** Counts starts that failed one after the other, in a folder that survives restarts but not a reboot. */
export interface FailedStarts {
  /**
   * Counts one more.
   * @returns milliseconds to wait before the process ends, doubling up to 10 s: systemd restarts it at once and
   * without limit, since giving up would leave a dead port behind
   */
  note(): number
  /** A start went well. */
  forget(): void
}

/** @param directory the runtime folder of the unit; without one nothing is counted and nothing waits */
export function createFailedStarts(directory: string | undefined): FailedStarts {
  if (directory === undefined) return { note: () => 0, forget: () => undefined }
  const file = join(directory, 'failed-starts')
  return {
    note() {
      const count = readCount(file) + 1
      try {
        writeFileSync(file, String(count))
      } catch {
        // A full or read-only /run must not hide why the start failed; without a count the wait is the longest.
        return longestDelayMs
      }
      return Math.min(firstDelayMs * 2 ** (count - 1), longestDelayMs)
    },
    forget: () => rmSync(file, { force: true }),
  }
}

function readCount(file: string): number {
  try {
    return Number(readRegularFileSync(file, 64).bytes.toString()) || 0
  } catch {
    return 0
  }
}
