const inRegExp = /[.*+?^${}()|[\]\\]/g

/**
 * Holds the pattern of a route, for example `/v1/users/sessions/:uid` or `/files/*`, against paths, as the router does.
 * @throws for a parameter with an expression and an optional one, which it does not know
 */
export function matcherOf(pattern: string): RegExp {
  if (/[()?]|::/.test(pattern))
    throw new Error(`the route ${pattern} has a parameter of a form that has no 405 replies`)
  return new RegExp(`^${sourceOf(pattern)}$`)
}

/**
 * The router ends a parameter at the next slash. For a route whose parameter `name` may hold slashes, gives the path with
 * these encoded, which the router decodes again: of `/v2/:name/blobs/:digest` and `/v2/a/b/blobs/x` it is `/v2/a%2Fb/blobs/x`.
 * @returns the path as it is where the pattern does not fit; nothing for a pattern without that parameter
 */
export function slashEncoderOf(pattern: string, name: string): ((path: string) => string) | undefined {
  const [before = '', after] = pattern.split(new RegExp(`:${name}(?![A-Za-z])`))
  if (after === undefined) return undefined
  const parts = new RegExp(`^(${sourceOf(before)})(.+)(${sourceOf(after)})$`)
  return (path) =>
    path.replace(
      parts,
      (_path, start: string, value: string, end: string) => start + value.replaceAll('/', '%2F') + end,
    )
}

const sourceOf = (pattern: string) =>
  pattern
    .replace(inRegExp, '\\$&')
    .replace(/:[A-Za-z]+|\\\*/g, (part) => (part.startsWith(':') ? '[^/]+' : '.*'))
