import { hasMoreValues } from '../base/json.ts'

// No resource nests deeper than a few levels; a parser needs over a second for a body of brackets alone.
const deepest = 128
// Each takes up to 300 bytes when it is parsed, as in `{"30":0}`: megabytes of them are more memory than there is.
const mostValues = 50_000

/**
 * The problem of a text of JSON before it is parsed: it nests too deep, has too many values, or a text in it has half of a
 * surrogate pair, which is no character and which the database gives back as another one.
 * @param text valid UTF-8; that it is JSON is not checked
 */
export function describeForm(text: string): string | undefined {
  if (isTooDeep(text)) return `the body nests deeper than ${deepest} levels`
  if (hasMoreValues(text, mostValues)) return `the body has more than ${mostValues} values`
  return hasHalfPair(text) ? 'the body has a half of a surrogate pair, which is no character' : undefined
}

const [quote, backslash] = ['"'.charCodeAt(0), '\\'.charCodeAt(0)]
const [openList, openObject] = ['['.charCodeAt(0), '{'.charCodeAt(0)]
const [closeList, closeObject] = [']'.charCodeAt(0), '}'.charCodeAt(0)]

function isTooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfText(text, at)
    else if (code === openList || code === openObject) depth += 1
    else if (code === closeList || code === closeObject) depth -= 1
    if (depth > deepest) return true
  }
  return false
}

/** End of the text that begins at a quote. */
function endOfText(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at
}

// In valid UTF-8 a half can only be an escape. Escapes are read one by one, since `\\ud800` is a backslash and letters.
const halfAnywhere = /\\ud[89a-f]/i
const escapes = /\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f])|[^])/gi

function hasHalfPair(text: string): boolean {
  if (!halfAnywhere.test(text)) return false
  for (const [, half] of text.matchAll(escapes)) if (half !== undefined) return true
  return false
}
