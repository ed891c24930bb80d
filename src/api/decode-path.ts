/**
 * Decodes the path of a URL as the router does. The router refuses paths that cannot be decoded; they are returned as they are, which is
 * only a safeguard against a 500.
 */
export function decodePath(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
