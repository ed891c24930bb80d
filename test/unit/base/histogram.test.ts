import { expect, it } from 'vitest'
import { createHistogram } from '../../../src/base/sample.ts'

it('a value belongs to the first bucket whose bound it does not exceed, or to the last', () => {
  const histogram = createHistogram([1, 2, 5])
  for (const value of [0, 1, 1.001, 2, 5, 5.001, 1e9]) histogram.observe(value)
  expect(histogram.figures()).toEqual({
    upperBounds: [1, 2, 5],
    counts: [2, 2, 1, 2],
    sum: expect.closeTo(1e9 + 14.002) as number,
  })
})

it('returned figures do not change afterwards', () => {
  const histogram = createHistogram([1])
  const before = histogram.figures()
  histogram.observe(1)
  expect(before.counts).toEqual([0, 0])
})
