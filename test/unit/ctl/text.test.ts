import { describe, expect, it } from 'vitest'
import { renderFacts, renderTable, type Column, displayWidth, span, wrap } from '../../../src/ctl/layout.ts'
import { createOutput } from '../../../src/ctl/output.ts'

describe('a width', () => {
  it.each([
    ['abc', 3],
    ['\u00e4', 1],
    ['a\u0308', 1],
    ['\u6c34\u529b', 4],
    ['\u{1f600}', 2],
    ['\u200b', 0],
  ])('the width of %j is %i columns', (text, width) => {
    expect(displayWidth(text)).toBe(width)
  })

  it('wrap keeps to the width, also for a longer word', () => {
    expect(wrap('aa bb cccccc', 5)).toEqual(['aa bb', 'ccccc', 'c'])
  })
})

it.each([
  [59, '59 s'],
  [3_661, '1 h 1 min'],
  [90_000, '1 day 1 h'],
  [200 * 86_400, '200 days'],
])('%i seconds are %s', (seconds, text) => {
  expect(span(seconds)).toBe(text)
})

interface Row {
  readonly id: string
  readonly name: string
}
const layout: readonly Column<Row>[] = [
  { title: 'ID', read: ({ id }) => id },
  { title: 'NAME', read: ({ name }) => name, isFlexible: true },
]
const long = 'a very long name that runs on and on'

describe('a table', () => {
  it('a table is aligned by the displayed width', () => {
    const text = renderTable(
      [
        { id: '\u6c34', name: 'one' },
        { id: 'abc', name: '' },
      ],
      layout,
      Infinity,
    )
    expect(text).toBe('ID   NAME\n\u6c34   one\nabc  -\n')
  })

  it('a table is wrapped between words on a terminal and never for a pipe, and its ids never', () => {
    const items = [{ id: '0123456789', name: long }]
    expect(renderTable(items, layout, Infinity)).toContain(long)
    expect(renderTable(items, layout, 24)).toBe(
      'ID          NAME\n0123456789  a very long\n            name that\n            runs on and\n            on\n',
    )
  })

  it('a table whose words do not fit side by side shows one item below the other', () => {
    const items = [
      { id: '0123456789', name: 'extraordinary name' },
      { id: 'x', name: 'y' },
    ]
    expect(renderTable(items, layout, 20)).toBe(
      'ID    0123456789\nNAME  extraordinary\n      name\n\nID    x\nNAME  y\n',
    )
    expect(renderTable(items.slice(0, 1), layout, 15)).toBe(
      'ID\n  0123456789\nNAME\n  extraordinary\n  name\n',
    )
  })

  it('a table escapes control characters of a server', () => {
    const evil = '\u001b]0;title\u0007\u009b2J\u202e\r\n'
    const text = renderTable([{ id: evil, name: evil }], layout, Infinity)
    // eslint-disable-next-line no-control-regex -- this is what is looked for
    expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
    expect(text).toContain('\\u001b]0;title')
  })
})

describe('a screen of facts', () => {
  const facts = [
    { label: 'Name', lines: [long] },
    { label: 'Longer', lines: ['\u001b[31mred'], mood: 'bad' as const },
  ]

  it('facts have no colours in a pipe', () => {
    const text = renderFacts(facts, { columns: Infinity, isColoured: false })
    expect(text).toBe(`   Name: ${long}\n Longer: \\u001b[31mred\n`)
  })

  it('facts fit a terminal', () => {
    const text = renderFacts(facts, { columns: 20, isColoured: false })
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(20)
  })

  it('a fact that does not fit beside its label is below it', () => {
    const id = { label: 'ID', lines: ['0123456789abcdef and more'] }
    expect(renderFacts([id], { columns: 20, isColoured: false })).toBe(
      ' ID:\n  0123456789abcdef\n  and more\n',
    )
  })

  it('facts have our colours on a terminal and no others', () => {
    const text = renderFacts(facts, { columns: 80, isColoured: true })
    expect(text).toContain('\u001b[31m\\u001b[31mred\u001b[0m')
  })
})

it.each(['json', 'yaml'] as const)(
  '%s contains the same value without a raw control character',
  async (format) => {
    let written = ''
    const output = createOutput({
      format,
      paper: { columns: 80, isColoured: true },
      out: (text) => (written += String(text)),
      err: () => undefined,
    })
    const value = { name: 'x\u001b\u0085\u202e\u009b', list: ['1', 2, true, null] }
    await output.show(value, () => '')
    // eslint-disable-next-line no-control-regex -- this is what is looked for
    expect(written.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
    const { parse } = await import('yaml')
    expect(parse(written)).toEqual(value)
  },
)
