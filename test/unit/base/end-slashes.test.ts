import { expect, it } from 'vitest'
import { withoutEndDots, withoutEndSlashes } from '../../../src/base/end-slashes.ts'

it.each([
  ['https://a.example/v3//', 'https://a.example/v3'],
  ['https://a.example/v3', 'https://a.example/v3'],
  ['///', ''],
  ['', ''],
])('%j ends as %j', (text, wanted) => {
  expect(withoutEndSlashes(text)).toBe(wanted)
})

it('many slashes before another character are looked at once', () => {
  const text = `${'/'.repeat(4_000_000)}x`
  // By the regular expression this took hours.
  expect(withoutEndSlashes(text)).toBe(text)
})

it.each([
  ['/var/lib/x/', '/var/lib/x'],
  ['/var/lib/x/.//./', '/var/lib/x'],
  ['/var/lib/x.', '/var/lib/x.'],
  ['/link/../x', '/link/../x'],
  ['//', '/'],
  ['/.', '/'],
  ['', ''],
])('the folder %j is %j', (folder, wanted) => {
  expect(withoutEndDots(folder)).toBe(wanted)
})
