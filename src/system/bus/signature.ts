import { NoAnswer } from './failure.ts'

/**
 * A type of the D-Bus Specification, chapter "Type System": a basic type, a variant, an array of an element, or a
 * struct (or dict entry) of its fields.
 */
export type BusType =
  | { readonly code: BasicCode | 'v' }
  | { readonly code: 'a'; readonly element: BusType }
  | { readonly code: '(' | '{'; readonly fields: readonly BusType[] }

export type BasicCode = 'y' | 'b' | 'n' | 'q' | 'i' | 'u' | 'x' | 't' | 'd' | 'h' | 's' | 'o' | 'g'

/** Containers in containers that are read, variants among them. The specification allows 64. */
export const maxDepth = 32
const maxLength = 255

/**
 * Parses a signature into its complete types.
 * @throws NoAnswer when it is none, or nests too deep
 */
export function parseSignature(text: string): readonly BusType[] {
  if (text.length > maxLength) throw broken(text)
  let at = 0

  const next = (depth: number): BusType => {
    const code = text[at++]
    if (isBasic(code)) return { code }
    if (depth > maxDepth) throw new NoAnswer('malformed', `nested deeper than ${maxDepth}`)
    if (code === 'v') return { code }
    if (code === 'a') return { code, element: text[at] === '{' ? dictEntry(depth + 1) : next(depth + 1) }
    if (code === '(') {
      const fields: BusType[] = []
      while (text[at] !== ')') fields.push(next(depth + 1))
      at += 1
      if (fields.length > 0) return { code, fields }
    }
    throw broken(text)
  }
  // Stands in an array only, and its key is a basic type.
  const dictEntry = (depth: number): BusType => {
    if (depth > maxDepth) throw new NoAnswer('malformed', `nested deeper than ${maxDepth}`)
    at += 1
    const fields = [next(depth + 1), next(depth + 1)]
    if (text[at++] !== '}' || !isBasic(fields[0]?.code)) throw broken(text)
    return { code: '{', fields }
  }

  const types: BusType[] = []
  while (at < text.length) types.push(next(1))
  return types
}

/** How far into a message a value may begin: a multiple of this many bytes. */
export function alignmentOf({ code }: BusType): number {
  if ('xtd({'.includes(code)) return 8
  if ('biuhsoa'.includes(code)) return 4
  return 'nq'.includes(code) ? 2 : 1
}

function isBasic(code: string | undefined): code is BasicCode {
  return code?.length === 1 && 'ybnqiuxtdhsog'.includes(code)
}

function broken(text: string): NoAnswer {
  return new NoAnswer('malformed', `${JSON.stringify(text.slice(0, 40))} is no signature`)
}
