import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { jsonForYaml } from '../../../src/base/json.ts'
import { writeYaml } from '../../../src/base/write-yaml.ts'
import { readPlain } from '../../../src/definition/rules/plain-values.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { isKitMissing, kit, kitVersions } from '../../support/kubernetes-kit.ts'

const names = [
  ...['no', 'y', 'off', '1e3', '0o17', '017', '0x1F', '1_000', '12:30:45', '~', '.inf', '2001-01-01', 'null'],
  ...[
    '9223372036854775807',
    '<<',
    '',
    'del \u007f',
    'next \u0085 line',
    'separator \u2028 \u2029',
    '\ufeffmark',
  ],
]

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'edgehostd-names-'))
})
afterEach(() => rm(home, { recursive: true }))

describe.skipIf(isKitMissing())('helm', () => {
  /** The values as a template of a chart gets them. */
  async function valuesOf(text: string): Promise<unknown> {
    const chart = join(home, 'chart')
    await mkdir(join(chart, 'templates'), { recursive: true })
    await writeFile(
      join(chart, 'Chart.yaml'),
      jsonForYaml({ apiVersion: 'v2', name: 'names', version: '0.0.0' }),
    )
    await writeFile(
      join(chart, 'templates', 'all.yaml'),
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: all}\ndata: {all: {{ .Values.names | toJson | b64enc }}}\n',
    )
    await writeFile(join(home, 'values.yaml'), text)
    const program = `${(await kit(kitVersions[0]))?.programs}/helm`
    const { exitCode, stdout, stderr } = await createRunner().run(
      program,
      ['template', 'names', chart, '--values', join(home, 'values.yaml')],
      { timeoutMs: 60_000, environment: { HOME: home } },
    )
    expect(stderr).toBe('')
    expect(exitCode).toBe(0)
    const encoded = /all: ([\w+/=]+)\}?$/m.exec(stdout)?.[1] ?? ''
    return JSON.parse(Buffer.from(encoded, 'base64').toString()) as unknown
  }

  it('reads every text of the values that are written for it as that text', async () => {
    expect(await valuesOf(jsonForYaml({ names }))).toEqual(names)
  })

  it('reads every text of an exported profile as that text', async () => {
    expect(await valuesOf(writeYaml({ names }))).toEqual(names)
  })
})

describe.skipIf(isKitMissing())('kubectl', () => {
  it('reads !!binary and whole numbers of 64 bits as they are read here', async () => {
    const text =
      'apiVersion: plant.example/v1\nkind: Quota\nmetadata: {name: big}\nspec: {text: !!binary aGFsbG8=, most: 9223372036854775807, least: -9223372036854775808}\n'
    await writeFile(join(home, 'quota.yaml'), text)
    const program = `${(await kit(kitVersions[0]))?.programs}/kubectl`
    const { exitCode, stdout, stderr } = await createRunner().run(
      program,
      ['label', '--local', '-f', join(home, 'quota.yaml'), 'a=b', '-o', 'json'],
      { timeoutMs: 60_000, environment: { HOME: home } },
    )
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const spec = (read: unknown) => JSON.stringify((read as { spec: object }).spec, ['least', 'most', 'text'])
    const own = JSON.stringify((readPlain(text).documents[0] as { spec: object }).spec)
    expect(own).toBe('{"text":"hallo","most":9223372036854775807,"least":-9223372036854775808}')
    expect(stdout).toContain('"most": 9223372036854775807')
    expect(stdout).toContain('"least": -9223372036854775808')
    expect(spec(JSON.parse(stdout))).toContain('"text":"hallo"')
  })
})

it('the readers of definitions read every text of an exported profile as that text', () => {
  expect(readPlain(writeYaml({ names })).documents).toEqual([{ names }])
})
