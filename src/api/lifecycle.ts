import type { FastifyInstance } from 'fastify'

/**
 * The lifecycle phase of a route. A date is a day, `YYYY-MM-DD`, from 00:00 UTC.
 * `sunset`: the route works as before until that day, then it is deprecated; its successor exists already.
 * `deprecated`: the route is no longer supported since that day.
 */
export type Lifecycle =
  | { readonly phase: 'production' }
  | {
      readonly phase: 'sunset'
      readonly date: string
      /** Path of the route that takes its place, for example `/v2/users/current`. */
      readonly successor: string
    }
  | { readonly phase: 'deprecated'; readonly date: string; readonly successor?: string }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Without it a route is in production. */
    lifecycle?: Lifecycle
  }
}

/** The API version of a path, for example `v1`; `undefined` for the few paths without a version. */
export function versionOf(url: string): string | undefined {
  return /^\/(v\d+(?:(?:alpha|beta)\d+)?)\//.exec(url)?.[1]
}

/**
 * Lifecycle headers for every reply of a route: `Deprecation` (RFC 9745), also for a day in the future,
 * `Sunset` (RFC 8594) and the successor (RFC 5829). Empty in production.
 * @throws when the date is not a day
 */
export function lifecycleHeaders(lifecycle: Lifecycle): Readonly<Record<string, string>> {
  if (lifecycle.phase === 'production') return {}
  const { phase, date, successor } = lifecycle
  const time = new Date(`${date}T00:00:00Z`)
  // A day that does not exist, such as 30 February, becomes another one.
  if (Number.isNaN(time.getTime()) || time.toISOString().slice(0, 10) !== date)
    throw new Error(`${date} is not a day`)
  return {
    deprecation: `@${time.getTime() / 1_000}`,
    ...(phase === 'sunset' ? { sunset: time.toUTCString() } : {}),
    ...(successor === undefined ? {} : { link: `<${successor}>; rel="successor-version"` }),
  }
}

/** Adds the headers to all replies of routes that are not in production, refusals included; other routes get no hook. */
export function addLifecycle(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const { lifecycle } = route.config ?? {}
    if (lifecycle === undefined || lifecycle.phase === 'production') return
    const headers = lifecycleHeaders(lifecycle)
    route.onRequest = [
      (_request, reply, done) => {
        reply.headers(headers)
        done()
      },
      ...[route.onRequest ?? []].flat(),
    ]
  })
}
