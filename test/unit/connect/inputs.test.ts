import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  parseFingerprint,
  parsePlatformUrl,
  parseProxy,
  readAuthorities,
  readToken,
} from '../../../src/connect/inputs.ts'
import { makeMaterial } from '../../support/https-server.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'connect-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const put = (text: string) => {
  const file = join(folder, 'file')
  writeFileSync(file, text)
  return file
}

describe('the file of the token', () => {
  it('may end with a line end', () => expect(readToken(put('abc-DEF_1\r\n'))).toBe('abc-DEF_1'))

  it('has to have one token', () => {
    const refused: [string, RegExp][] = [
      ['', /is empty; .*edgeplatformctl token create/],
      [' \n', /is empty/],
      ['x'.repeat(257), /more than 256 characters/],
      ['one two', /more than one word/],
      ['one\ntwo', /more than one word/],
      ['\u0000', /no text/],
    ]
    for (const [text, problem] of refused) expect(() => readToken(put(text))).toThrow(problem)
    expect(readToken(put('x'.repeat(256)))).toHaveLength(256)
    expect(() => readToken(folder)).toThrow(/--token-file: .* cannot be read: .*directory/)
    expect(() => readToken(join(folder, 'none'))).toThrow(/--token-file: .* cannot be read: no such file/)
  })
})

describe('the file of the authorities', () => {
  it('gives its certificates alone, since the copy is for all to read', async () => {
    const { key, cert } = await makeMaterial()
    const other = await makeMaterial()
    expect(readAuthorities(put(`a comment\n${key}${cert}${other.cert}`))).toBe(`${cert}${other.cert}`)
    expect(readAuthorities(put(cert.replaceAll('\n', '\r\n')))).toBe(cert)
  })

  it('has to have one that can be read', async () => {
    const { key, cert } = await makeMaterial()
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    const problems: [string, string][] = [
      ['', 'it has no certificate in PEM'],
      [key, 'it has no certificate in PEM'],
      [broken, 'certificate 1 of 1 in it is damaged'],
      [cert + broken, 'certificate 2 of 2 in it is damaged'],
      [cert.slice(0, -30), '1 certificates begin in it, and 0 of them are whole'],
    ]
    for (const [text, problem] of problems)
      expect(() => readAuthorities(put(text))).toThrow(`cannot be used: ${problem}`)
  })
})

it('a fingerprint is taken as programs print it, and nothing else', () => {
  const bytes = Array.from({ length: 32 }, (_, index) => `A${(index % 16).toString(16).toUpperCase()}`)
  const shown = bytes.join(':')
  for (const text of [shown, shown.toLowerCase(), bytes.join(''), ` SHA256:${shown}`, `sha256=${shown}`])
    expect(parseFingerprint(text)).toBe(shown)
  for (const text of ['', 'AB', `${shown}:AA`, shown.replace('A', 'G')])
    expect(() => parseFingerprint(text)).toThrow('--fingerprint')
})

it.each([
  ['https://platform.example', 'https://platform.example'],
  ['https://Platform.example:443/', 'https://platform.example'],
  ['platform.example:5443', 'https://platform.example:5443'],
  ['https://[2001:db8::7]:8443', 'https://[2001:db8::7]:8443'],
])('the URL %s is %s', (given, url) => expect(parsePlatformUrl(given)).toBe(url))

it.each([
  '',
  'http://platform.example',
  'https://platform.example/v1',
  'https://u:p@platform.example',
  'https://x?y',
  'a b',
])('the URL %j is refused, with one that is accepted', (given) =>
  expect(() => parsePlatformUrl(given)).toThrow(/URL: .*https:\/\/platform\.plant\.example/),
)

it('a proxy is http, without a login', () => {
  expect(parseProxy('proxy.example:3128')).toBe('http://proxy.example:3128')
  for (const given of ['https://proxy.example', 'http://u:p@proxy.example:3128', 'http://proxy.example/x'])
    expect(() => parseProxy(given)).toThrow(/--proxy: .*http:\/\/proxy\.plant\.example:3128/)
})
