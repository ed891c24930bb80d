/** An object of parsed JSON, of which nothing is known. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value of parsed JSON is an object. */
export const isRecord = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && exactDigitsOf(value) === undefined

/**
 * Parses JSON that may be anything. The error of JSON.parse has a part of the text, which may be a secret, so there is none.
 * @returns undefined for text that is not JSON
 */
export function parseJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Functions of JSON for numbers that JavaScript cannot hold; not yet among the types. https://tc39.es/proposal-json-parse-with-source/ */
const exact = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
  parse(text: string, revive: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
}

/** A number that JSON.stringify writes with exactly these digits: whole numbers have 64 bits in Kubernetes and 53 in JavaScript. */
export const exactNumber = (digits: string): unknown => exact.rawJSON(digits)

/**
 * JSON that go-yaml reads as it is: helm, kubeadm and the kubelet read JSON as YAML, which takes none of the characters that are escaped here,
 * or folds them to a space.
 * @param indent spaces of a level
 */
export const jsonForYaml = (value: unknown, indent = 0): string =>
  escapeForYaml(JSON.stringify(value, null, indent))

const notAsIs = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/

/** Whether go-yaml reads a text as it is only where `escapeForYaml` has been over it, in double quotes. */
export const needsEscapes = (text: string): boolean => notAsIs.test(text)

/** @param text of JSON, or of YAML in which these characters are in double quotes only */
export const escapeForYaml = (text: string): string =>
  text.replace(
    new RegExp(notAsIs, 'g'),
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The digits of an `exactNumber`; undefined for any other value. */
export const exactDigitsOf = (value: unknown): string | undefined =>
  exact.isRawJSON(value) ? value.rawJSON : undefined

/**
 * JSON.parse, with each whole number that has no exact one in JavaScript as an `exactNumber`.
 * @throws SyntaxError as JSON.parse
 */
export function parseExactJson(text: string): unknown {
  // A check of each value takes several times as long; hardly any text has such a number.
  if (!/[0-9]{16}/.test(text)) return JSON.parse(text)
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' &&
    !Number.isSafeInteger(value) &&
    source !== undefined &&
    /^-?[0-9]+$/.test(source)
      ? exactNumber(source)
      : value,
  )
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

/** End of the string that begins there: its quotation mark, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return end
  }
  return text.length
}
