/** An object of parsed JSON, of which nothing is known. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value of parsed JSON is an object. */
export const isRecord = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses JSON that may be anything. The error of JSON.parse has a part of the text, which may be a secret, so there is none.
 * @returns undefined for text that is not JSON
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Whether a JSON text has more values than `most`, by its commas and brackets outside of strings. Each value takes up to 200 bytes when it
 * is parsed, so that a short text of many, as `[[[[…`, may take more memory than there is. In the time that the text is long.
 */
export function hasMoreValues(text: string, most: number): boolean {
  let values = 1
  for (let at = 0; at < text.length && values <= most; at += 1) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === ',' || character === '[' || character === '{') values += 1
  }
  return values > most
}

/** Where the string that begins there ends: at its quotation mark, or where the text ends. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return end
  }
  return text.length
}
