import type { FastifyInstance } from 'fastify'
import type { Access } from './access.ts'

/** One declared route. */
export interface DeclaredRoute {
  readonly method: string
  /** Pattern as declared, for example `/v1/users/sessions/:uid`. */
  readonly url: string
  readonly access: Access
}

/** Every route with the role it needs; the role matrix test and 405 replies are made from it. */
export interface RouteTable {
  readonly routes: readonly DeclaredRoute[]
  /** Methods that exist at a concrete path, for the `Allow` header. */
  methodsOf(path: string): string[]
}

/**
 * Collects routes as they are added, and refuses one that does not declare who may use it:
 * a forgotten declaration must not become an open door.
 */
export function collectRoutes(app: FastifyInstance): RouteTable {
  const routes: (DeclaredRoute & { matcher: RegExp })[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    const access = config?.access
    if (!access) throw new Error(`the route ${String(method)} ${url} does not declare config.access`)
    const matcher = new RegExp(
      `^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z]+/g, '[^/]+')}$`,
    )
    for (const each of [method].flat()) routes.push({ method: each, url, access, matcher })
  })
  return {
    routes,
    methodsOf: (path) => routes.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method),
  }
}
