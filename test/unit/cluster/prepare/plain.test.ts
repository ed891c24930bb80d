import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'

// Made by test/fixtures/helm/record-yaml.ts: what a real helm reads.
const recorded = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../fixtures/helm', name), 'utf8')) as [
    string,
    { value?: unknown; refused?: string },
  ][]
const texts = recorded('texts.json')

describe('YAML as plain values', () => {
  it.each(texts.filter(([, { refused }]) => refused === undefined))(
    'the text %j has the values that helm reads',
    (text, { value }) => {
      const { documents, problems } = readPlain(text)
      expect(problems).toEqual([])
      expect(JSON.parse(JSON.stringify(documents[0] ?? {}))).toEqual(value)
    },
  )

  it.each(recorded('tags-and-keys.json'))(
    'the tags, keys and merges of %j are read as by helm, or refused as by helm',
    (text, { value, refused }) => {
      const { documents, problems } = readPlain(text)
      // Helm takes .inf as a value, and fails when it writes it.
      if (refused !== undefined || problems.some((each) => each.includes('JSON has no value')))
        expect(problems).not.toEqual([])
      else {
        expect(problems).toEqual([])
        expect(JSON.parse(JSON.stringify(documents[0] ?? {}))).toEqual(value)
      }
    },
  )

  it('whole numbers of 64 bits keep their digits with a tag and in quotes', () => {
    const { documents } = readPlain('a: !!int 9223372036854775807\nb: !!int "18446744073709551615"\n')
    expect(JSON.stringify(documents[0])).toBe('{"a":9223372036854775807,"b":18446744073709551615}')
  })

  it('merge keys, aliases, tags and keys that are no texts are read as by helm', () => {
    const text =
      'base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  b: 3\nmany:\n  <<: [{c: 4}, {c: 5, d: 6}]\nalias: *base\ntext: !!str 12\n1: x\non: y\n'
    expect(readPlain(text).documents).toEqual([
      {
        base: { a: 1, b: 2 },
        own: { a: 1, b: 3 },
        many: { c: 4, d: 6 },
        alias: { a: 1, b: 2 },
        text: '12',
        '1': 'x',
        true: true,
      },
    ])
  })

  it('a key named __proto__ is a key as any other', () => {
    const [document] = readPlain('__proto__: {a: 1}\n').documents
    expect(Object.keys(document as object)).toEqual(['__proto__'])
    expect((document as { a?: unknown }).a).toBeUndefined()
  })

  it('empty documents are left out; of a text with an error there are none', () => {
    expect(readPlain('---\n# a comment\n---\na: 1\n---\n').documents).toEqual([{ a: 1 }])
    const { documents, problems } = readPlain('a: 1\n---\nb: [\n')
    expect(documents).toEqual([])
    expect(problems[0]).toMatch(/^is not valid YAML: line \d+:\d+: /)
  })

  it('a text that is nested too deeply or expands too far is refused', () => {
    expect(readPlain('['.repeat(100_000)).problems[0]).toContain('nested too deeply')
    const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let at = 1; at < 9; at += 1) bomb.push(`a${at}: &a${at} [${`*a${at - 1}, `.repeat(10)}]`)
    expect(readPlain(`${bomb.join('\n')}\n`)).toMatchObject({
      documents: [],
      problems: [expect.stringContaining('expands to more')],
    })
  })
})
