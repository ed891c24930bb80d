const maximumBytes = 255
// Letters, marks, numbers, punctuation, symbols and the plain space; no control, direction or private characters.
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/**
 * The name that a client gave its file, for display only, never as a path: printable, without folders, at most 255
 * bytes of UTF-8.
 * @returns an empty text when there was no name
 */
export function labelOf(fileName: string | undefined): string {
  // A long name is cut first.
  const name = (fileName ?? '').slice(-4 * maximumBytes).replace(/^.*[/\\]/s, '')
  let label = ''
  let bytes = 0
  for (const character of name.toWellFormed().replace(unprintable, '?')) {
    bytes += Buffer.byteLength(character)
    if (bytes > maximumBytes) break
    label += character
  }
  return label
}
