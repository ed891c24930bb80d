import { setTimeout as delay } from 'node:timers/promises'
import { createSlices } from '../../base/slices.ts'
import type { ImageDescription } from './seen-image.ts'

/** An image whose description is wanted. */
export interface Wanted {
  /** Names its content: with the same key the description is the same. */
  readonly key: string
  readonly describe: () => Promise<Partial<ImageDescription> | undefined>
}

/** Descriptions of the images of one runtime, each read once. */
export interface Descriptions {
  /**
   * Reads descriptions that are not known, some at a time, until the time is up, and forgets those of images that are gone. One that
   * cannot be read, or not in time, is left for the next time; those that have failed are then read last.
   * @param until of performance.now()
   * @param signal ends it without an error
   */
  update(wanted: readonly Wanted[], until: number, signal: AbortSignal): Promise<void>
  /** Empty until it was read. */
  of(key: string): Partial<ImageDescription>
}

const atOnce = 8
const unknown: Partial<ImageDescription> = {}

export function createDescriptions(): Descriptions {
  let known = new Map<string, Partial<ImageDescription>>()
  let failed = new Set<string>()
  return {
    async update(wanted, until, signal) {
      const rest = createSlices()
      const kept = new Map<string, Partial<ImageDescription>>()
      const missing = new Map<string, Wanted>()
      const again = new Map<string, Wanted>()
      for (const each of wanted) {
        const found = known.get(each.key)
        if (found) kept.set(each.key, found)
        else (failed.has(each.key) ? again : missing).set(each.key, each)
        await rest()
      }
      known = kept
      failed = new Set(again.keys())
      const [into, failures] = [known, failed]
      const order = [...missing.values(), ...again.values()].values()
      const work = async () => {
        for (const { key, describe } of order) {
          if (signal.aborted || performance.now() > until) return
          failures.add(key)
          try {
            into.set(key, (await describe()) ?? unknown)
            failures.delete(key)
          } catch {
            // An image is listed also while its description cannot be read.
          }
          await rest()
        }
      }
      const over = new AbortController()
      const time = delay(Math.max(0, until - performance.now()), undefined, {
        ref: false,
        signal: over.signal,
      })
      await Promise.race([Promise.all(Array.from({ length: atOnce }, work)), time.catch(() => undefined)])
      over.abort()
    },
    of: (key) => known.get(key) ?? unknown,
  }
}
