import { describe, expect, it } from 'vitest'
import { formatTime, parseTime } from '../../../src/base/time.ts'

describe('a time', () => {
  it.each([
    ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['2024-02-29t23:30:00-01:00', '2024-03-01T00:30:00.000Z'],
  ])('is read and written as RFC 3339 has it: %s', (text, written) => {
    expect(formatTime(parseTime(text)!)).toBe(written)
  })

  it.each([
    ['0000-01-01T00:00:00+00:01', '9999-12-31T23:59:00-00:01'],
    ['2026-02-30T00:00:00Z', '2026-02-29T00:00:00Z'],
    ['2026-01-01T24:00:00Z', '2026-01-01T00:00:00'],
    ['+275760-09-13T00:00:00Z', '-000001-01-01T00:00:00Z'],
  ])('is none of these: %s, %s', (...texts) => {
    expect(texts.map(parseTime)).toEqual([undefined, undefined])
  })
})
