import { availableParallelism } from 'node:os'
import { readStealMs } from './usage.ts'

// A neighbour that takes more than this of the processors bends a ratio whose two halves come one after the other.
const largestShare = 0.02
const tries = 4

/** Measures baseline and candidate one after the other, in calm; neither is always the one that comes second. */
export const measurePair = <T>(round: number, base: () => Promise<T>, own: () => Promise<T>) =>
  inCalm(async () => {
    if (round % 2 === 0) return { base: await base(), own: await own() }
    return { own: await own(), base: await base() }
  })

/**
 * Measures something, and measures it again while the hypervisor gave the processors to other machines meanwhile, up to
 * four times. The last counts, whatever it was like.
 */
async function inCalm<T>(measure: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left -= 1) {
    const startedAt = performance.now()
    const stolenBefore = readStealMs()
    const result = await measure()
    const processorMs = (performance.now() - startedAt) * availableParallelism()
    if (left === 1 || readStealMs() - stolenBefore <= largestShare * processorMs) return result
  }
}
