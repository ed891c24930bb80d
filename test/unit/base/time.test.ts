import { describe, expect, it } from 'vitest'
import { createTimeWriter } from '../../../src/base/time.ts'
import { createRandom } from '../../support/random.ts'

describe('a time is written as Date writes it', () => {
  it.each([0, -1, 86_399_999, 86_400_000, -62_167_219_200_001, 253_402_300_800_000, 8.64e15, -8.64e15])(
    '%d',
    (time) => expect(createTimeWriter()(time)).toBe(new Date(time).toISOString()),
  )

  it('10,000 of them one after the other, near and far', () => {
    const { below, isChosen } = createRandom(7)
    const write = createTimeWriter()
    let time = 1_700_000_000_000
    for (let count = 0; count < 10_000; count += 1) {
      time = isChosen(0.1) ? below(4e12) - 1e12 : time + below(30_000_000)
      expect(write(time)).toBe(new Date(time).toISOString())
    }
  })

  it.each([NaN, 8.64e15 + 86_400_000])('%d is none', (time) => {
    expect(() => createTimeWriter()(time)).toThrow(RangeError)
  })
})
