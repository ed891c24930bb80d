import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createOutput } from '../../../src/ctl/output.ts'
import { readPlain } from '../../../src/definition/rules/plain-values.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { isKitMissing, kit } from '../../support/kubernetes-kit.ts'

const texts = [
  ...['no', 'y', 'Off', '1e3', '0o17', '017', '0x1F', '1_000', '0b11', '+1', '.5', '1.', '12:30:45', '1:20'],
  ...[
    '~',
    'null',
    'Null',
    '',
    '.inf',
    '-.Inf',
    '.NaN',
    '=',
    '<<',
    '2001-01-01',
    '9223372036854775807',
    '- a',
    'a: b',
  ],
  ...[
    'a #b',
    ' a',
    'a ',
    '\ta',
    'a\nb',
    'a\n\n',
    '\n a\nb',
    'a\r\nb',
    "it's",
    '"a"',
    '@a',
    '`a',
    '%a',
    '!a',
    '&a',
    '*a',
  ],
  ...[
    '{{ .a }}',
    '[a',
    '---',
    '... b',
    'del \u007f',
    'next \u0085 line',
    'sep \u2028 \u2029',
    '\ufeffmark',
    '\u0001',
    '\u200b',
  ],
]
const keys = ['no', 'y', '1e3', '017', '~', '2001-01-01', '.5', '<<', 'a.b/c']
const data: Readonly<Record<string, string>> = Object.fromEntries([
  ...texts.map((text, index) => [`text-${index}`, text] as const),
  ...keys.map((key) => [key, key] as const),
])

async function yamlOf(value: unknown): Promise<string> {
  let text = ''
  const paper = { columns: 80, isTerminal: false } as unknown as Parameters<typeof createOutput>[0]['paper']
  const output = createOutput({ format: 'yaml', paper, out: (data_) => void (text += String(data_)) })
  await output.show(value, () => '')
  return text
}
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'all' }, data }

describe('the output as YAML', () => {
  it.each(texts)('has the text %j as that text, alone', async (text) => {
    expect(readPlain(await yamlOf({ a: [text] })).documents).toEqual([{ a: [text] }])
  })

  it('has every key and text as it is, all in one', async () => {
    expect(readPlain(await yamlOf(object)).documents).toEqual([object])
  })

  it('has no quotes where none are needed', async () => {
    expect(await yamlOf({ name: 'shop', size: 3, isOn: true, none: null })).toBe(
      'name: shop\nsize: 3\nisOn: true\nnone: null\n',
    )
  })
})

describe.skipIf(isKitMissing())('kubectl', { timeout: 120_000 }, () => {
  it('reads the output as YAML as it is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'yaml-output-'))
    afterAll(() => rm(folder, { recursive: true }))
    const kubectl = `${(await kit())?.programs}/kubectl`
    const kept = Object.entries(data).filter(([, each]) => !['\u0001', '\u200b'].includes(each))
    // In one text the first that has a character to escape makes all of it JSON.
    const given = [Object.fromEntries(kept), ...texts.slice(-10).map((text) => ({ text }))]
    const files = given.map((_data, index) => join(folder, `${index}.yaml`))
    for (const [index, file] of files.entries())
      await writeFile(file, await yamlOf({ ...object, data: given[index] }))
    const { stdout, stderr } = await createRunner().run(
      kubectl,
      ['label', '--local', ...files.flatMap((file) => ['-f', file]), 'a=b', '-o', 'json'],
      { timeoutMs: 60_000, environment: { HOME: folder } },
    )
    expect(stderr).toBe('')
    const shown = stdout.split(/\n(?=\{)/).map((each) => (JSON.parse(each) as typeof object).data)
    expect(shown).toEqual(given)
  })
})
