import { availableParallelism } from 'node:os'
import { readStealMs } from './usage.ts'

// Baseline and candidate are measured one after the other. If other machines take a larger share of the processors
// meanwhile, the ratio of the two is wrong.
const largestStolenShare = 0.02
const tries = 4

/** Measures baseline and candidate one after the other, undisturbed by other machines. The order changes each round. */
export const measurePair = <T>(round: number, base: () => Promise<T>, own: () => Promise<T>) =>
  measureUndisturbed(async () => {
    if (round % 2 === 0) return { base: await base(), own: await own() }
    return { own: await own(), base: await base() }
  })

/**
 * Repeats a measurement during which the hypervisor gave the processors to other machines, up to four times. The fourth
 * result counts in any case.
 */
async function measureUndisturbed<T>(measure: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left -= 1) {
    const startedAt = performance.now()
    const stolenBefore = readStealMs()
    const result = await measure()
    const processorMs = (performance.now() - startedAt) * availableParallelism()
    if (left === 1 || readStealMs() - stolenBefore <= largestStolenShare * processorMs) return result
  }
}
