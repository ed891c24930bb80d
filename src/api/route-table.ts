// A route declares everything in `config`, which is read once, when the route is added; a route pays only for what it declares: `access` (its
// users), `bypass` (requests without a session), `airgapOnly` (mode), `limited` and `bucket` (rate), `audit` (the trail), `lifecycle`, and on the
// platform `scope`: where the role has to be. `test/platform/access-matrix.test.ts` tries every declared route with every kind of caller, and needs
// an entry for a new one. Without `lifecycle` a route is in production; in the phase `sunset` it has a day and a successor; in the phase
// `deprecated` a day since when it is deprecated. The version is the first part of the path. The phase sets the headers `Deprecation`, `Sunset` and
// `Link` (`api/lifecycle.ts`) and the flag in the API document (`build/openapi.ts`). That file also adds the refusals of the room `api` to every
// route, so that a room lists only its own.
//
// The examples in the document are replies from `test/api/examples.test.ts`; after a change of a reply run `vitest run --project unit
// test/api/examples.test.ts -u` and `make docs`.

import { decodePath } from './rate/rows.ts'
import type { FastifyInstance } from 'fastify'
import type { Access } from './access.ts'
import type { AuditWords } from './audit-hook.ts'
import { versionOf, type Lifecycle } from './lifecycle.ts'

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

/** One declared route. */
interface DeclaredRoute {
  readonly method: string
  /** Pattern as declared, for example `/v1/users/sessions/:uid`. */
  readonly url: string
  readonly access: Access
  /** Whether the route accepts some requests without a session, by its own rule `bypass`. */
  readonly hasBypass: boolean
  /** Whether a ticket opens it too. */
  readonly takesTicket: boolean
  /** Matches the paths that the router gives to it, but for those of a route without parameters. */
  readonly matcher: RegExp
  /** Refused in connected mode. */
  readonly airgapOnly: boolean
  /** API version, for example `v1`; the few paths for machines have none. */
  readonly version: string | undefined
  readonly phase: Lifecycle['phase']
  /** Whether it has an ETag, or as a change honours `If-Match`. */
  readonly hasEtag: boolean
  /** Content of its audit records; every route that changes something has to declare it. */
  readonly audit: AuditWords | false | undefined
}

/** Every route with the role it needs; used by the role matrix test and for 405 replies. */
export interface RouteTable {
  readonly routes: readonly DeclaredRoute[]
  /** Methods that exist at the path of a URL, for the `Allow` header. */
  methodsOf(url: string): string[]
  /** The URL with the slashes in the parameter `slashParameter` encoded. */
  encodeSlashes(url: string): string
}

/**
 * Collects routes as they are added, and refuses one that does not declare who may use it, so that a forgotten declaration
 * does not open a route to everyone.
 * @param slashParameter name of the path parameter that may contain slashes, in every route that has it
 */
export function collectRoutes(app: FastifyInstance, slashParameter?: string): RouteTable {
  /** By the pattern of the route. */
  const slashEncoders = new Map<string, (path: string) => string>()
  const routes: DeclaredRoute[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    const access = config?.access
    if (!access) throw new Error(`the route ${String(method)} ${url} does not declare config.access`)
    const { airgapOnly = false, lifecycle = { phase: 'production' }, audit, bypass } = config
    const declared = {
      url,
      access,
      hasBypass: bypass !== undefined,
      takesTicket: config.ticket === true,
      airgapOnly,
      version: versionOf(url),
      phase: lifecycle.phase,
      audit,
      hasEtag: config.writable !== undefined || config.hasEtag === true,
      matcher: matcherOf(url),
    }
    const slashEncoder = slashParameter === undefined ? undefined : slashEncoderOf(url, slashParameter)
    if (slashEncoder) slashEncoders.set(url, slashEncoder)
    for (const each of [method].flat()) routes.push({ method: each, ...declared })
  })
  return {
    routes,
    methodsOf(url) {
      const path = decodePath(url)
      const found = routes.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method)
      return [...new Set(found)]
    },
    encodeSlashes(url) {
      const [path = ''] = url.split('?', 1)
      for (const encode of slashEncoders.values()) {
        const encoded = encode(path)
        if (encoded !== path) return encoded + url.slice(path.length)
      }
      return url
    },
  }
}
