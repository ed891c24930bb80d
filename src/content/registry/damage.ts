import type { ContentProgram } from '../program/content-program.ts'
import { hexOf } from '../store/folder.ts'
import type { OpenStore } from '../store/open-store.ts'
import type { Logger } from '../../system/log.ts'

/** Blobs with a problem that a pull has found. */
export interface SuspectBlobs {
  /** Has the blob read again soon, and set aside if it is damaged. */
  report(hex: string, reason: string): void
  /** Reports since the start; one of a blob that is being read again does not count. */
  count(): number
}

export interface SuspectBlobOptions {
  readonly store: OpenStore
  readonly program: Pick<ContentProgram, 'verify'>
  readonly bytesPerSecond: number
  readonly stopping: AbortSignal
  readonly log: Logger
}

// Beyond that the job that reads all blobs finds them.
const mostWaiting = 1_000

export function createSuspectBlobs(options: SuspectBlobOptions): SuspectBlobs {
  const { store, program, bytesPerSecond, stopping, log } = options
  const waiting = new Set<string>()
  let isRunning = false
  let count = 0

  async function run(): Promise<void> {
    isRunning = true
    try {
      for (const hex of waiting) {
        if (stopping.aborted) return
        await check(hex)
        waiting.delete(hex)
      }
    } finally {
      isRunning = false
    }
  }

  async function check(hex: string): Promise<void> {
    try {
      const order = { blobs: store.blobs, digests: [`sha256:${hex}`], bytesPerSecond }
      const { damaged } = await program.verify(order, { signal: stopping })
      if (damaged.length > 0) await store.setAside(damaged.map(hexOf))
    } catch (error) {
      if (!stopping.aborted)
        log.warn(
          { err: error, digest: `sha256:${hex}` },
          'a blob that could not be pulled could not be checked',
        )
    }
  }

  return {
    report(hex, reason) {
      if (waiting.has(hex) || waiting.size >= mostWaiting) return
      count += 1
      log.warn({ digest: `sha256:${hex}`, reason }, 'a blob could not be pulled; it is read again now')
      waiting.add(hex)
      if (!isRunning) void run()
    },
    count: () => count,
  }
}
