const inRegExp = /[.*+?^${}()|[\]\\]/g

/**
 * A regular expression that matches the same paths as the router does for the pattern of a route, for example
 * `/v1/users/sessions/:uid` or `/files/*`.
 * @throws for optional parameters and parameters with an expression, which it does not support
 */
export function matcherOf(pattern: string): RegExp {
  if (/[()?]|::/.test(pattern))
    throw new Error(`the route ${pattern} has a parameter of a form that 405 replies do not support`)
  return new RegExp(`^${sourceOf(pattern)}$`)
}

/**
 * The router ends a parameter at the next slash. For a route whose parameter `name` may contain slashes, returns a function that
 * encodes them in a path; the router decodes them again. For `/v2/:name/blobs/:digest` it turns `/v2/a/b/blobs/x` into
 * `/v2/a%2Fb/blobs/x`. A path that does not match stays as it is.
 * @returns `undefined` for a pattern without that parameter
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
