/** A text without the slashes at its end. Not by a regular expression: `/\/+$/` takes the square of the length for many slashes before another character. */
export function withoutEndSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end -= 1
  return text.slice(0, end)
}
