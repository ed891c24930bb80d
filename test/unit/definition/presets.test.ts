import { describe, expect, it } from 'vitest'
import { applyPreset } from '../../../src/definition/build/presets.ts'
import { readPlain } from '../../../src/definition/rules/plain-values.ts'

const apply = (values: string, add: string, remove: readonly string[] = []) =>
  applyPreset(values, { name: 'a', displayName: 'a', group: '', add, remove: [...remove] })

describe('a preset', () => {
  it.each([
    ...[
      '9223372036854775807',
      '-9007199254740993',
      '0x1F',
      '017',
      '0o17',
      '1e3',
      '1_000',
      '0.1000000000000000055',
    ],
    ...[
      '1.10',
      'no',
      'y',
      'Off',
      '~',
      'null',
      '',
      '12:30:45',
      '2001-01-01',
      '.inf',
      '"no"',
      "'1e3'",
      '!!binary aGFsbG8=',
    ],
    ...['[1e3, no, ~]', '"{{.spectro.var.a}}"', '{{.spectro.var.a}}-1', '&a 017'],
  ])('leaves %s as it is written, in the values and in what it adds', (scalar) => {
    const text = scalar === '' ? '' : ` ${scalar}`
    expect(apply(`a:${text}\n`, `b:${text}\n`)).toBe(
      `a:${text}\nb:${text}\n`.replaceAll('[1e3, no, ~]', '[ 1e3, no, ~ ]'),
    )
  })

  it('merges by names, replaces, and removes by paths', () => {
    const values = 'pack: {size: 1}\ncharts:\n  a:\n    flag: no\n    list: [1, 2]\n    1: x\n'
    const made = apply(values, 'charts:\n  a:\n    flag: yes\n    2: z\n', ['charts.a.list.0', 'charts.a.1'])
    expect(readPlain(made).documents).toEqual([
      { pack: { size: 1 }, charts: { a: { flag: true, list: [2], 2: 'z' } } },
    ])
  })

  it('makes values where there are none', () => {
    for (const values of ['', '# nothing\n'])
      expect(readPlain(apply(values, 'a: 017\n')).documents).toEqual([{ a: 15 }])
    expect(() => apply('- a\n', 'a: 1\n')).toThrow(
      'cannot be applied: the text of the values is not a mapping',
    )
    expect(() => apply('a: [\n', 'a: 1\n')).toThrow(
      'cannot be applied: the text of the values is not valid YAML',
    )
  })
})
