import { describe, expect, it } from 'vitest'
import { de } from '../../../src/console/platform/text/de.ts'
import { en } from '../../../src/console/platform/text/en.ts'

/** Terms of the product, and words that both languages have. */
const same = new Set([
  ...['Cluster', 'Packs', 'Pack', 'Tokens', 'Token', 'Version', 'Status', 'Labels', 'Name', 'Uid', 'ID'],
  ...['Secure Boot', 'edgehostd', 'Kernel', 'Problem', 'Variable', '…'],
])

/** Texts of a section by their names; a function by what it gives for small numbers and words. */
function textsOf(section: object): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const walk = (value: unknown, path: string) => {
    if (typeof value === 'string') found.set(path, value)
    else if (typeof value === 'function')
      found.set(
        path,
        [0, 1, 2].map((n) => String((value as (...given: number[]) => unknown)(n, n))).join('|'),
      )
    else for (const [name, part] of Object.entries(value as object)) walk(part, `${path}.${name}`)
  }
  walk(section, '')
  return found
}

describe('the texts of the platform in German', () => {
  const [english, german] = [textsOf(en), textsOf(de)]

  it('have every text of the English ones', () => {
    expect([...german.keys()].sort()).toEqual([...english.keys()].sort())
  })

  it('are no English ones, but for terms', () => {
    const untranslated = [...english].filter(
      ([path, words]) => german.get(path) === words && !same.has(words) && /[a-z]{3}/i.test(words),
    )
    expect(untranslated).toEqual([])
  })
})
