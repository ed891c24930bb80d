const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Makes foreign text safe for one line of a terminal, cut to 80 characters. */
export function printable(text: string): string {
  return escapeInvisible(text.length > 80 ? `${text.slice(0, 77)}...` : text)
}

/**
 * Escapes control and invisible characters as JSON and YAML do: `\u001b`; characters beyond 16 bits as surrogate pairs.
 */
export const escapeInvisible = (text: string): string => escapeEach(text, invisible)

/**
 * Escapes the characters that a pattern matches, in the same way.
 * @param which needs the flags g and u
 */
export function escapeEach(text: string, which: RegExp): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return text.replace(which, (character) => character.split('').map(escapeUnit).join(''))
}

/** A text as one word of a command for sh, as in an advice that is copied: in single quotes unless it needs none. */
export const shellWord = (text: string): string =>
  /^[\w%+,./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
