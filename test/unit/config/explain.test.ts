import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { explainConfig, loadConfig, parseCommandLine } from '../../../src/edgehostd/declarations.ts'
import * as explain from '../../../src/config/explain.ts'
import { writeSetting } from '../../../src/config/explain.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-explain-'))
  file = join(folder, 'config.yaml')
})
afterEach(() => rmSync(folder, { recursive: true }))

const load = (argv: string[], environment: Record<string, string> = {}) =>
  loadConfig({ commandLine: parseCommandLine(argv), environment, defaultFile: file })

test('each value is shown with where it came from', async () => {
  writeFileSync(file, 'log:\n  level: debug\n')
  const text = explainConfig(await load(['--api.port=81'], { EDGEHOSTD_AUTH_ADMIN_GROUPS: 'a,b' }))
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      `  level: debug # ${file}:2`,
      '  port: 81 # flag --api.port',
      '  adminGroups: [a, b] # environment EDGEHOSTD_AUTH_ADMIN_GROUPS',
      '  mode: airgap # default',
      '  # id: not set',
    ]),
  )
})

test('what is printed loads to the same configuration', async () => {
  const argv = [
    '--host.name=true: #1 "x"\n- \u001b[1m',
    '--auth.adminGroups=on,5,a b',
    '--api.tls.keyFile=/k',
  ]
  const first = await load([...argv, '--api.tls.certificateFile=/c', '--auth.guard.lockMinutes=0.25'])
  writeFileSync(file, explainConfig(first))
  const second = await load([])
  expect(second.config).toEqual(first.config)
  expect(second.config.host.name).toBe('true: #1 "x"\n- \u001b[1m')
})

test('secrets are masked, by keyword and by name, and the rest stays valid YAML', () => {
  const schema = {
    properties: {
      proxy: {
        properties: {
          password: { type: 'string' },
          pin: { type: 'integer', secret: true },
          tokens: { type: 'array', items: { type: 'string' } },
          passwordFile: { type: 'string' },
        },
      },
    },
  }
  const config = { proxy: { password: 'hunter2', pin: 4711, tokens: ['s3cr3t'], passwordFile: '/run/p' } }
  const text = explain.explainConfig(
    { config, sources: new Map([['proxy.password', '/etc/x.yaml:3']]) },
    schema,
  )
  expect(text).toBe(`proxy:
  # password: ******** # /etc/x.yaml:3
  # pin: ******** # default
  # tokens: ******** # default
  passwordFile: /run/p # default
`)
  expect(parse(text)).toEqual({ proxy: { passwordFile: '/run/p' } })
})

test.each([
  'plain',
  '/etc/x.y',
  'yes',
  'NO',
  'null',
  'True',
  '~',
  '',
  ' a',
  'a b',
  'a: b',
  'a #b',
  '5',
  '0x1F',
  '1e3',
  '.inf',
  '::',
  '-',
  '---',
  '!x',
  '&a',
  '*a',
  '%',
  '@',
  '`',
  '"',
  "'",
  '\\',
  '[',
  '{',
  ',',
  'a,b',
  '\t',
  'ä',
  '\u2028',
  '\ufeff',
  '\u0085',
  '\u{1f600}',
  '\u{e0001}',
  '\u007f',
])('the text %j survives being written and read', (text) => {
  expect(parse(`a: ${writeSetting(text)} # x`)).toEqual({ a: text })
  expect(parse(`a: ${writeSetting([text, text])} # x`, { version: '1.1' })).toEqual({ a: [text, text] })
  expect(writeSetting(text)).not.toMatch(/[\p{Cc}\u2028\ufeff]/u)
})
