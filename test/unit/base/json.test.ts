import { describe, expect, it } from 'vitest'
import { hasMoreValues } from '../../../src/base/json.ts'

describe('the values of a JSON text', () => {
  it.each<[string, number]>([
    ['[]', 2],
    ['[1, 2, 3]', 4],
    ['{"a": {"b": []}}', 4],
    ['["a, [b], {c}"]', 2],
    [String.raw`["a\"], [", "b\\", "\\\","]`, 4],
    ['["without an end, [[[', 2],
  ])('of %s are counted outside of strings, as %i at most', (text, values) => {
    expect([hasMoreValues(text, values - 1), hasMoreValues(text, values)]).toEqual([true, false])
  })

  it.each([
    ['strings of quotation marks', `"${'\\"'.repeat(2_000_000)}`],
    ['a string of backslashes', `"${'\\'.repeat(4_000_000)}"`],
    ['many strings', '""'.repeat(2_000_000)],
  ])('are counted once through %s', (_, text) => {
    expect(hasMoreValues(text, 1)).toBe(false)
  })
})
