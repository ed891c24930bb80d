import type { FastifyInstance } from 'fastify'
import type { Access } from './access.ts'
import type { AuditWords } from './audit-hook.ts'
import { versionOf, type Lifecycle } from './lifecycle.ts'

/** One declared route. */
export interface DeclaredRoute {
  readonly method: string
  /** Pattern as declared, for example `/v1/users/sessions/:uid`. */
  readonly url: string
  readonly access: Access
  /** Lets in some requests without a session, by a rule of its own. */
  readonly hasOtherDoor: boolean
  /** Refused in connected mode. */
  readonly airgapOnly: boolean
  /** Of the API, for example `v1`; the few paths for machines have none. */
  readonly version: string | undefined
  readonly phase: Lifecycle['phase']
  /** What the audit trail says of it; everything that changes something has to declare that. */
  readonly audit: AuditWords | false | undefined
}

/** Every route with the role it needs; the role matrix test and 405 replies are made from it. */
export interface RouteTable {
  readonly routes: readonly DeclaredRoute[]
  /** Methods that exist at the path of a URL, for the `Allow` header. */
  methodsOf(url: string): string[]
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
    const { airgapOnly = false, lifecycle = { phase: 'production' }, audit, admits } = config
    const declared = {
      url,
      access,
      hasOtherDoor: admits !== undefined,
      airgapOnly,
      version: versionOf(url),
      phase: lifecycle.phase,
      audit,
      matcher,
    }
    for (const each of [method].flat()) routes.push({ method: each, ...declared })
  })
  return {
    routes,
    methodsOf(url) {
      const path = decodePath(url)
      return routes.filter(({ matcher }) => matcher.test(path)).map(({ method }) => method)
    },
  }
}

// As the router reads it, which has refused what cannot be decoded; an exception here would be a 500 all the same.
function decodePath(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
