import { describe, expect, it } from 'vitest'
import { isPossiblePassword, isPossibleUserName } from '../../../src/auth/login.ts'

describe('isPossibleUserName', () => {
  it.each([
    ['a plain name', 'alice'],
    ['a directory name with its domain', 'CORP\\alice'],
    ['a directory name as an address', 'alice@corp.example'],
    ['a name with a space', 'alice smith'],
    ['a name outside ASCII', 'jürgen'],
    ['shell syntax, which no shell will see', 'a;id $(id) `id`'],
    ['a leading plus', '+alice'],
    ['256 bytes', 'a'.repeat(256)],
  ])('isPossibleUserName accepts %s', (_what, name) => expect(isPossibleUserName(name)).toBe(true))

  it.each([
    ['an empty text', ''],
    ['an option', '-oProxyCommand=id'],
    ['a long option', '--help'],
    ['a path', '../etc/passwd'],
    ['a slash inside', 'corp/alice'],
    ['NUL', 'alice\0'],
    ['a newline', 'alice\nroot'],
    ['a carriage return', 'alice\r'],
    ['a tab', 'alice\t'],
    ['escape', '\u001b[2J'],
    ['delete', 'alice\u007f'],
    ['a C1 control character', 'alice\u0085'],
    ['half a surrogate pair', 'alice\ud800'],
    ['257 bytes', 'a'.repeat(257)],
    ['256 characters that are more bytes', 'ü'.repeat(129)],
    ['65 536 characters', 'a'.repeat(65_536)],
  ])('isPossibleUserName refuses %s', (_what, name) => expect(isPossibleUserName(name)).toBe(false))

  // passwd(5): the colon separates fields, so `root:x` would find the line of root.
  it('isPossibleUserName refuses a colon', () => expect(isPossibleUserName('root:x')).toBe(false))
})

describe('isPossiblePassword', () => {
  it.each([
    ['one character', 'x'],
    ['spaces around', '  x  '],
    ['a tab and other control characters', 'a\tb\u0001'],
    ['characters outside ASCII', 'pässwörd \u{1f511}'],
    ['511 bytes', 'x'.repeat(511)],
  ])('isPossiblePassword accepts %s', (_what, password) => expect(isPossiblePassword(password)).toBe(true))

  it.each([
    ['an empty text', ''],
    ['NUL', 'right\0wrong'],
    ['a newline, after which pamtester reads no further', 'right\nwrong'],
    ['a newline at the end', 'right\n'],
    ['a carriage return', 'right\r'],
    ['half a surrogate pair', 'x\udc00'],
    ['512 bytes', 'x'.repeat(512)],
    ['512 bytes in 256 characters', 'ü'.repeat(256)],
  ])('isPossiblePassword refuses %s', (_what, password) => expect(isPossiblePassword(password)).toBe(false))
})
