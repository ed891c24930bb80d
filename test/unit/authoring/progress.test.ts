import { describe, expect, it } from 'vitest'
import { createProgress } from '../../../src/authoring/context.ts'
import { createStatusLine } from '../../../src/program/status-line.ts'

const erase = '\r\u001b[K'

function terminal(isTTY = true, columns = 20) {
  const written: string[] = []
  return { isTTY, columns, written, write: (text: string | Uint8Array) => written.push(String(text)) > 0 }
}

describe('a line of a terminal', () => {
  it('a status line is overwritten, never wider than the terminal, and removed once', () => {
    const stream = terminal()
    const line = createStatusLine(stream)
    line.clear()
    line.draw('one')
    line.draw('x'.repeat(40))
    line.clear()
    line.clear()
    expect(stream.written).toEqual([`${erase}one`, `${erase}${'x'.repeat(19)}`, erase])
  })

  it('a status line takes 80 columns on a console of unknown width', () => {
    const stream = terminal(true, 0)
    createStatusLine(stream).draw('x'.repeat(100))
    expect(stream.written).toEqual([`${erase}${'x'.repeat(79)}`])
  })

  it('a status line is not written without a terminal', () => {
    const stream = terminal(false)
    const line = createStatusLine(stream)
    line.draw('one')
    line.clear()
    expect(stream.written).toEqual([])
  })
})

describe('progress', () => {
  it('progress is quiet for a second, then shown ten times a second', () => {
    const stream = terminal(true, 80)
    let time = 0
    const progress = createProgress('packing', stream, () => time)
    for (time = 0; time < 1_200; time += 50) progress.report(time * 1_000, 4e6)
    progress.clear()
    const lines = ['1.0 MB of 4.0 MB, 25 %', '1.1 MB of 4.0 MB, 27 %'].map(
      (text) => `${erase}packing ${text}`,
    )
    expect(stream.written).toEqual([...lines, erase])
  })

  it('progress shows no share of an unknown total', () => {
    const stream = terminal(true, 80)
    let time = 0
    const progress = createProgress('reading', stream, () => time)
    time = 1_000
    progress.report(12_340, 0)
    expect(stream.written).toEqual([`${erase}reading 12.3 kB`])
  })
})
