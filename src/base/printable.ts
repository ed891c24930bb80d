const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Foreign text as it may stand in one line of a terminal, cut to 80 characters. */
export function printable(text: string): string {
  return escapeInvisible(text.length > 80 ? `${text.slice(0, 77)}...` : text)
}

/** Control and invisible characters as JSON and YAML escape them: `\u001b`, beyond 16 bits as two halves. */
export const escapeInvisible = (text: string): string => escapeEach(text, invisible)

/**
 * The characters that a pattern finds, escaped in the same way.
 * @param which with the flags g and u
 */
export function escapeEach(text: string, which: RegExp): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return text.replace(which, (character) => character.split('').map(escapeUnit).join(''))
}
