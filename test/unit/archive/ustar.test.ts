import { describe, expect, it } from 'vitest'
import { tarEnd, tarHeader, tarPadding } from '../../../src/archive/ustar.ts'

describe('a tar header', () => {
  const header = tarHeader('audit/1.ndjson', 1_234, Date.UTC(2026, 0, 1, 0, 0, 0, 999))
  const field = (from: number, to: number) => header.toString('ascii', from, to)

  it('a header has the fields of pax(1) at their places', () => {
    expect(header).toHaveLength(512)
    expect(field(0, 14)).toBe('audit/1.ndjson')
    expect(field(100, 108)).toBe('0000600\0')
    expect(field(124, 136)).toBe('00000002322\0')
    expect(parseInt(field(136, 147), 8)).toBe(Date.UTC(2026, 0, 1) / 1_000)
    expect(field(156, 157)).toBe('0')
    expect(field(257, 265)).toBe('ustar\x0000')
  })

  it('a header has the sum of its bytes, its own place counted as spaces', () => {
    const summed = Buffer.from(header)
    summed.fill(0x20, 148, 156)
    expect(parseInt(field(148, 154), 8)).toBe(summed.reduce((sum, byte) => sum + byte, 0))
  })
})

it.each([
  [0, 0],
  [1, 511],
  [512, 0],
  [513, 511],
])('a file of %d bytes is padded with %d', (size, padding) => {
  expect(tarPadding(size)).toHaveLength(padding)
})

it('an archive ends with two blocks of zeros', () => {
  expect(tarEnd()).toEqual(Buffer.alloc(1_024))
})
