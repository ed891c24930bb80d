import { describe, expect, it } from 'vitest'
import { formatDefinitionFile, parseDefinitionFile } from '../../../src/definition/format/definition-file.ts'
import { defaultLimits } from '../../../src/archive/limits.ts'
import { AppError } from '../../../src/errors/app-error.ts'

const head = 'formatVersion: 1\nname: a\nversion: b\nprofiles: [{ uid: u1, name: n, version: v }]\n'
const sum = 'a'.repeat(64)
const bomb = `a: &a [${'x,'.repeat(9)}x]\n${'bcdefghi'
  .split('')
  .map((name, index) => `${name}: &${name} [${`*${'abcdefghi'[index]},`.repeat(9)}x]\n`)
  .join('')}`

function refusal(text: string) {
  try {
    parseDefinitionFile(text, defaultLimits)
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    const { message, details } = error as AppError
    return `${String(details?.reason)} ${message}`
  }
  throw new Error('it was not refused')
}

describe('definition.yaml', () => {
  it('definition.yaml is read as it was written, with sums sorted by the bytes of their names', () => {
    const sums = new Map([
      ['z', sum],
      ['Z', sum],
      ['\u00e9 ', sum],
    ])
    const profiles = [{ uid: 'u1', name: 'a: "b"', version: '# 1' }]
    const text = formatDefinitionFile({ formatVersion: 1, name: 'x\n- y', version: '1.10', profiles, sums })
    expect(text).toContain(`sha256: |\n  ${sum}  Z\n  ${sum}  z\n  ${sum}  \u00e9 \n`)
    const parsed = parseDefinitionFile(text, defaultLimits)
    expect(parsed).toMatchObject({ name: 'x\n- y', version: '1.10', profiles })
    expect([...parsed.sums.keys()].sort()).toEqual([...sums.keys()].sort())
  })

  it.each([
    ['no sums', head, 'lacks its last key'],
    ['sums that are not a block', `${head}sha256: {}\n`, 'lacks its last key'],
    ['a line that is not a sum', `${head}sha256: |\n  ${sum} x\n`, 'line 6 is not a sum'],
    ['a key after the sums', `${head}sha256: |\n  ${sum}  x\nmore: 1\n`, 'nothing may follow'],
    ['a name twice', `${head}sha256: |\n  ${sum}  x\n  ${sum}  x\n`, 'again'],
    ['a head that is not YAML', `name: [\nsha256: |\n`, 'not valid YAML'],
    ['an alias bomb', `${bomb}${head}sha256: |\n`, 'not usable YAML'],
    ['a key __proto__', `__proto__: { a: 1 }\n${head}sha256: |\n`, '__proto__'],
    ['a head of megabytes', `${'#'.repeat(70_000)}\n${head}sha256: |\n`, 'characters before its sums'],
    ['endless nesting', `a: ${'['.repeat(60_000)}\nsha256: |\n`, 'DefinitionUnreadable'],
    ['a newer format', `${head.replace('1', '2')}sha256: |\n`, 'FormatVersion'],
    ['no name', `${head.replace('name: a', '')}sha256: |\n`, 'name is missing'],
    ['an uid that is a path', `${head.replace('u1', '../u1')}sha256: |\n`, 'profiles[0].uid'],
  ])('definition.yaml with %s is refused', (_what, text, words) => {
    expect(refusal(text)).toContain(words)
  })
})
