import { describe, expect, it } from 'vitest'
import { parseDefinitionFile } from '../../../../src/definition/format/definition-file.ts'
import { parseYaml } from '../../../../src/definition/format/parse.ts'
import { parsePackConfig } from '../../../../src/cluster/engine/pack-config.ts'
import { defaultLimits } from '../../../../src/archive/limits.ts'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'
import { cpuNow } from '../../../support/cpu-time.ts'

const sizeBytes = 110_000
const repeat = (piece: (index: number) => string, size = sizeBytes) => {
  const parts: string[] = []
  for (let [index, length] = [0, 0]; length < size; index += 1) {
    const part = piece(index)
    parts.push(part)
    length += part.length
  }
  return parts.join('')
}

/** Shapes that cost some reader of YAML the square of their length. */
const shapes: Readonly<Record<string, string>> = {
  keys: repeat((index) => `k${index}: 1\n`),
  'keys in braces': `{${repeat((index) => `k${index}: 1, `)}}`,
  'a list in one line': `a: [${repeat(() => '1,')}]`,
  'open brackets': `a: ${'['.repeat(sizeBytes)}`,
  'closed brackets': `a: ${'['.repeat(sizeBytes / 2)}${']'.repeat(sizeBytes / 2)}`,
  'lists in lists': '- '.repeat(sizeBytes / 2),
  anchors: repeat((index) => `k${index}: &a${index} 1\n`),
  'aliases of one anchor': `x: &x 1\n${repeat((index) => `k${index}: *x\n`)}`,
  'an alias for each anchor': repeat((index) => `k${index}: &a${index} 1\nl${index}: *a${index}\n`),
  'mappings that each merge the one before': `x0: &x0 {a: 1}\n${repeat((index) => `x${index + 1}: &x${index + 1} {<<: *x${index}, b${index}: 1}\n`)}`,
  'one mapping merged many times': `x: &x {${repeat((index) => `a${index}: 1, `, 10_000)}}\nm:\n${repeat(() => '  <<: *x\n')}`,
  'a long text': `a: |\n${repeat(() => '  a line\n')}`,
  'a folded text': `a: >\n${repeat(() => '    x\n  y\n')}`,
  'a text of empty lines': `a: b\n${'\n'.repeat(sizeBytes)}  c\n`,
  'quotes that do not end': repeat(() => 'a: "\n'),
  documents: repeat(() => '---\n'),
  comments: repeat(() => '#\n'),
  'comments in a list': `a:\n${repeat(() => '- 1\n#\n')}`,
  'comments in brackets': `a: [${repeat(() => '#\n')}]`,
  tags: repeat((index) => `k${index}: !t${index} 1\n`),
  'directives of tags': `${repeat((index) => `%TAG !a${index}! tag:x\n`)}---\na: 1\n`,
  'a set': `a: !!set\n${repeat((index) => `  ? k${index}\n`)}`,
  'keys without values': repeat((index) => `k${index}:\n`),
  digits: `a: 0x${'f'.repeat(sizeBytes)}`,
}
const mostMs = 5_000

describe('what YAML costs', () => {
  it.each(Object.entries(shapes))(
    '%s of 110 kB cost at most 1.25 s of CPU, so that four times as many cost at most 5',
    (_name, text) => {
      // The configuration of a pack is read by `readPlain`, as manifests and values are.
      for (const read of [() => parseYaml('export.yaml', text), () => parsePackConfig({ config: text })]) {
        const begin = cpuNow()
        try {
          read()
        } catch (error) {
          // The configuration of a pack is refused by an error.
          expect(error).not.toBeInstanceOf(RangeError)
        }
        expect(cpuNow() - begin).toBeLessThan(mostMs / 4)
      }
    },
  )

  it('the text with the most words and marks that is read costs at most 5 s, and longer ones are refused before', () => {
    const most = repeat((index) => `k${index}: [1]\n`, 16_000_000)
    const begin = cpuNow()
    expect(readPlain(most)).toMatchObject({
      documents: [],
      problems: [expect.stringContaining('has more than 700000 words and marks')],
    })
    expect(cpuNow() - begin).toBeLessThan(mostMs)
  })

  it('merges and long texts that aliases multiply are refused with their place', () => {
    const merges = readPlain(
      `x0: &x0 {a: 1}\n${repeat((index) => `x${index + 1}: &x${index + 1} {<<: *x${index}, b${index}: 1}\n`, 45_000)}`,
    )
    expect(merges.problems[0]).toMatch(/^is not usable YAML: line [0-9: ]+merges more than 500000 values$/)
    const long = `x: &x ${'a'.repeat(1_000_000)}\ny:\n${'- *x\n'.repeat(400)}`
    expect(readPlain(long).problems[0]).toMatch(/expands to more than/)
  })

  it('the head of a definition with as many keys as it may have costs no more', () => {
    const begin = cpuNow()
    expect(() =>
      parseDefinitionFile(`${repeat((index) => `k${index}: 1\n`, 65_000)}sha256: |\n`, defaultLimits),
    ).toThrow()
    expect(cpuNow() - begin).toBeLessThan(mostMs)
  })
})
