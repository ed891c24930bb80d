/**
 * @param output of `ctr images list`: a table with name, type and digest first. Pure.
 * @returns the digest of each image by its name
 */
export function parseImages(output: string): Readonly<Record<string, string>> {
  const rows = output.split('\n').map((line) => line.trim().split(/\s+/))
  return Object.fromEntries(
    rows.flatMap(([name = '', , digest = '']) => (digest.startsWith('sha256:') ? [[name, digest]] : [])),
  )
}
