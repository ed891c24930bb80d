import { isRecord, type JsonObject } from '../../base/json.ts'

// What a cloud sends may be anything.

/** The objects of an array; none for anything else. */
export const objectsIn = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** A text; empty for anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const longestShort = 255
// As JSON they are six bytes each.
const unprintable = /[\p{Cc}\p{Cs}]/gu

/**
 * A text that is kept and shown: cut to the longest that Nova has, with U+FFFD for control characters and halves of pairs.
 * @returns empty for anything that is no text
 */
export function shortTextOf(value: unknown): string {
  const text = textOf(value)
  // Copied, since a slice keeps the whole text in memory.
  const short = text.length > longestShort ? Buffer.from(text.slice(0, longestShort)).toString() : text
  return short.replace(unprintable, '\ufffd')
}
