import { expect, it } from 'vitest'
import { heapBytes } from '../../../src/platform/clouds/kept-pools.ts'

// Measured with Node 24, of 20,000 values made by JSON.parse: the factor between what they take and what is counted is 0.5 (a machine) to 1.9.
it.each<[string, unknown, number]>([
  ['a text', 'x'.repeat(1_000), 1_016],
  ['an empty object', {}, 32],
  ['a map of names', { [`n${'x'.repeat(99)}`]: '' }, 32 + 32 + 100 + 16],
  ['a list of lists', [[], []], 32 + 2 * (8 + 32)],
  ['other values', [1, true, null], 32 + 3 * (8 + 8)],
])('%s is counted with all that it has', (_, value, bytes) => {
  expect(heapBytes(value)).toBe(bytes)
})
