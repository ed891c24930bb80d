/**
 * Parses what another server has sent. The error of JSON.parse has a part of the text, which may be a secret, so there is none.
 * @returns undefined for text that is not JSON
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
