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
