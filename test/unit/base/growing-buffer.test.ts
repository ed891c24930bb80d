import { describe, expect, it } from 'vitest'
import { createGrowingBuffer } from '../../../src/base/growing-buffer.ts'
import { keptBytes } from '../../support/kept-memory.ts'

const mebibyte = 1_048_576

describe('a growing buffer', () => {
  it('a growing buffer contains every byte in order, whatever the sizes of the pieces', () => {
    const whole = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 251))
    const buffer = createGrowingBuffer(whole.length)
    for (let at = 0, size = 0; at < whole.length; at += size, size = (size + 7) % 300)
      expect(buffer.add(whole.subarray(at, at + size))).toBe(true)
    expect(buffer.bytes().equals(whole)).toBe(true)
  })

  it('a growing buffer accepts as much as its limit, and nothing of a piece beyond it', () => {
    const buffer = createGrowingBuffer(10)
    expect(buffer.add(Buffer.from('12345678'))).toBe(true)
    expect(buffer.add(Buffer.from('abc'))).toBe(false)
    expect(buffer.add(Buffer.from('90'))).toBe(true)
    expect(buffer.bytes().toString()).toBe('1234567890')
    expect(buffer.add(Buffer.from('x'))).toBe(false)
  })

  it('a growing buffer is empty at first and after it was cleared', () => {
    const buffer = createGrowingBuffer(10)
    expect(buffer.bytes()).toHaveLength(0)
    buffer.add(Buffer.from('12345678'))
    buffer.clear()
    buffer.add(Buffer.from('ab'))
    expect(buffer.bytes().toString()).toBe('ab')
  })

  it('a growing buffer copies the bytes of a piece and keeps nothing else of it', () => {
    const buffer = createGrowingBuffer(10)
    const piece = Buffer.from('one')
    buffer.add(piece)
    piece.fill('x')
    expect(buffer.bytes().toString()).toBe('one')
  })

  it('a growing buffer needs less than twice the received bytes, and nothing for its limit', async () => {
    const one = Buffer.from('x')
    const kept = await keptBytes(() => {
      const buffer = createGrowingBuffer(64 * mebibyte)
      for (let count = 0; count < mebibyte; count += 1) buffer.add(one)
      return buffer
    })
    expect(kept).toBeLessThan(2.5 * mebibyte)
  })
})
