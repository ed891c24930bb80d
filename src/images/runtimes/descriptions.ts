import { budgetMs, type ImageDescription } from './seen-image.ts'

/** An image whose description is wanted. */
export interface Wanted {
  /** Names its content: with the same key the description is the same. */
  readonly key: string
  readonly describe: () => Promise<Partial<ImageDescription> | undefined>
}

/** Descriptions of the images of one runtime, each read once. */
export interface Descriptions {
  /**
   * Reads descriptions that are not known, some at a time, until the time is up, and forgets those of images that are gone.
   * @param signal ends it without an error
   */
  update(wanted: readonly Wanted[], signal: AbortSignal): Promise<void>
  /** Empty until it was read. */
  of(key: string): Partial<ImageDescription>
}

const atOnce = 8
const unknown: Partial<ImageDescription> = {}

export function createDescriptions(): Descriptions {
  let known = new Map<string, Partial<ImageDescription>>()
  return {
    async update(wanted, signal) {
      const kept = new Map<string, Partial<ImageDescription>>()
      const missing = new Map<string, Wanted>()
      for (const each of wanted) {
        const found = known.get(each.key)
        if (found) kept.set(each.key, found)
        else missing.set(each.key, each)
      }
      known = kept
      const until = performance.now() + budgetMs
      const rest = missing.values()
      const work = async () => {
        for (const { key, describe } of rest) {
          if (signal.aborted || performance.now() > until) return
          known.set(key, (await describe()) ?? unknown)
        }
      }
      // An image is listed also while its description cannot be read.
      await Promise.allSettled(Array.from({ length: atOnce }, work))
    },
    of: (key) => known.get(key) ?? unknown,
  }
}
