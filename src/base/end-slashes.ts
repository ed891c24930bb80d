/** A text without the slashes at its end. Not by a regular expression: `/\/+$/` takes the square of the length for many slashes before another character. */
export function withoutEndSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end -= 1
  return text.slice(0, end)
}

/**
 * The path of a folder without `/` and `/.` at its end, which say nothing: the folder cannot be renamed by a path that has them. The rest
 * stays, since `..` after a link leads elsewhere than the text says.
 */
export function withoutEndDots(folder: string): string {
  let end = folder.length
  for (; end > 1; end -= 1) {
    const isDot = folder[end - 1] === '.' && folder[end - 2] === '/'
    if (folder[end - 1] !== '/' && !isDot) break
  }
  return folder.slice(0, end)
}
