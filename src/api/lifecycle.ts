import type { FastifyInstance } from 'fastify'

/**
 * Where a route stands in its life. A date is a day, `YYYY-MM-DD`, and means its begin in UTC.
 * `sunset`: it works as ever until the day, then it is deprecated; the successor is there already.
 * `deprecated`: since the day it is no longer supported.
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

/** The version of the API a path belongs to, for example `v1`; nothing for the few paths outside every version. */
export function versionOf(url: string): string | undefined {
  return /^\/(v\d+(?:(?:alpha|beta)\d+)?)\//.exec(url)?.[1]
}

/**
 * What every reply of such a route says of its life: `Deprecation` (RFC 9745), also of a day that is yet to come,
 * `Sunset` (RFC 8594) and the successor (RFC 5829). Nothing in production.
 * @throws when the date is no date
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

/** Adds the headers, refusals included, to routes that are not in production; the others pay nothing. */
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
