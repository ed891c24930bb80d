import { describe, expect, it } from 'vitest'
import { createLineSplitter, createTail } from '../../../src/base/lines.ts'

const text = Buffer.from('one\n\nBühne\r\nthe last')

function split(chunks: readonly Uint8Array[]) {
  const lines: [string, number][] = []
  const splitter = createLineSplitter((line, readBytes) => lines.push([line, readBytes]))
  for (const chunk of chunks) splitter.add(chunk)
  splitter.end()
  return lines
}

describe('a line splitter', () => {
  it.each([1, 2, 3, 5, 100])('a text in chunks of %i bytes is split into lines', (size) => {
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.subarray(index * size, (index + 1) * size),
    )
    expect(split(chunks).map(([line]) => line)).toEqual(['one', '', 'Bühne\r', 'the last'])
  })

  it('the line splitter counts the bytes from which the next line can be read on its own', () => {
    const lines = split([text])
    for (const [index, [, readBytes]] of lines.entries())
      expect(split([text.subarray(readBytes)]).map(([line]) => line)).toEqual(
        lines.slice(index + 1).map(([line]) => line),
      )
  })

  it('a line is cut at 64 KiB, and the bytes left out are counted', () => {
    const long = Buffer.from(`${'x'.repeat(100_000)}\nnext\n`)
    expect(split([long.subarray(0, 70_000), long.subarray(70_000)])).toEqual([
      ['x'.repeat(65_536), 100_001],
      ['next', 100_006],
    ])
  })
})

describe('a tail', () => {
  it('the last lines are all lines while there is room, and then as many of the last as fit whole', () => {
    const tail = createTail(10)
    tail.add('one')
    expect(tail.text()).toBe('one\n')
    for (let count = 0; count < 1_000; count += 1) tail.add(String(count))
    expect(tail.text()).toBe('998\n999\n')
    tail.add('')
    expect(tail.text()).toBe('998\n999\n\n')
  })

  it('the last lines contain the end of a line that does not fit', () => {
    const tail = createTail(5)
    tail.add('one')
    tail.add('0123456789')
    expect(tail.text()).toBe('6789\n')
  })
})
