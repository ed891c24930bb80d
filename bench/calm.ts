import { availableParallelism } from 'node:os'
import { readStealMs } from './usage.ts'

// A neighbour that takes more than this of the processors bends a ratio whose two halves come one after the other.
const largestShare = 0.02
const tries = 4

/**
 * Measures something, and measures it again while the hypervisor gave the processors to other machines meanwhile, up to
 * four times. The last counts, whatever it was like.
 */
export async function inCalm<T>(measure: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left -= 1) {
    const startedAt = performance.now()
    const stolenBefore = readStealMs()
    const result = await measure()
    const processorMs = (performance.now() - startedAt) * availableParallelism()
    if (left === 1 || readStealMs() - stolenBefore <= largestShare * processorMs) return result
  }
}
