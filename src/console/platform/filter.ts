/** A condition of a list: a path of the API, and its value in double quotes, in which nothing has a meaning but `"` and `\`. */
const condition = ([path, value]: readonly [string, string]): string =>
  `${path}="${value.replace(/["\\]/g, String.raw`\$&`)}"`

/** The filter of the API by which all of these hold; empty where there are none. */
export const allOf = (conditions: readonly (readonly [path: string, value: string])[]): string =>
  conditions.map(condition).join(' AND ')

/** The conditions of `hall=3 line=2`; undefined for a text that is something else. */
export function labelsOf(text: string): readonly (readonly [path: string, value: string])[] | undefined {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  const pairs = words.map((word) => /^([^=]+)=(.*)$/.exec(word))
  if (pairs.some((pair) => pair === null)) return undefined
  return pairs.map((pair) => [`metadata.labels.${pair?.[1] ?? ''}`, pair?.[2] ?? ''] as const)
}
