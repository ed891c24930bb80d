import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseChartFile } from '../../../src/authoring/content/chart-part.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { isKitMissing, kit } from '../../support/kubernetes-kit.ts'

const chartOf = (more: string) => `apiVersion: v2\nname: web\nversion: 1.0.0\n${more}\n`
const cases = [
  ...[
    '1.10',
    '1e3',
    '1e6',
    '1e21',
    '123456.5',
    '1234567.5',
    '100000',
    '0.00001',
    '1.5e-7',
    '017',
    '0o17',
    '0x1F',
    '1_000',
  ],
  ...[
    '9223372036854775807',
    '18446744073709551615',
    'no',
    'y',
    'true',
    '2001-01-01',
    '12:30:45',
    '"1.10"',
    '!!str 1e3',
  ],
]

describe('Chart.yaml', () => {
  it('is read as helm reads it: numbers and booleans in fields of text are text', () => {
    const { version, metadata, described } = parseChartFile(
      'apiVersion: v2\nname: no\nversion: 1.0\nappVersion: 1.10\ndeprecated: yes\nannotations: {a: 017, b: on}\nsources: [1e3]\n',
      'charts/web',
    )
    expect({ version, metadata, described }).toEqual({
      version: '1',
      metadata: {
        ...{ apiVersion: 'v2', name: 'false', version: '1', appVersion: '1.1', deprecated: true },
        ...{ annotations: { a: '15', b: 'true' }, sources: ['1000'] },
      },
      described: { a: '15', b: 'true', 'org.opencontainers.image.source': '1000' },
    })
  })

  it('is refused with its place where it is no YAML, and with its field', () => {
    expect(() => parseChartFile('name: [\n', 'charts/web')).toThrow(
      /^charts\/web: Chart.yaml is not valid YAML: line 2/,
    )
    expect(() => parseChartFile('name: web\n', 'charts/web')).toThrow('charts/web: Chart.yaml has no version')
  })
})

describe.skipIf(isKitMissing())('helm', { timeout: 120_000 }, () => {
  it('reads the same texts of a Chart.yaml', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'chart-'))
    afterAll(() => rm(folder, { recursive: true }))
    const helm = `${(await kit())?.programs}/helm`
    const text = chartOf(
      `appVersion: 1.20\nannotations:\n${cases.map((each, index) => `  a${index}: ${each}\n`).join('')}`,
    )
    await mkdir(join(folder, 'web/templates'), { recursive: true })
    await writeFile(join(folder, 'web/Chart.yaml'), text)
    await writeFile(join(folder, 'web/templates/a.yaml'), 'a: {{ .Chart.Annotations | toJson | b64enc }}\n')
    const { stdout, stderr } = await createRunner().run(helm, ['template', join(folder, 'web')], {
      ...{ timeoutMs: 60_000, environment: { HOME: folder } },
    })
    expect(stderr).toBe('')
    const theirs: unknown = JSON.parse(Buffer.from(/^a: (.+)$/m.exec(stdout)?.[1] ?? '', 'base64').toString())
    expect(parseChartFile(text, 'web').metadata.annotations).toEqual(theirs)
  })
})
