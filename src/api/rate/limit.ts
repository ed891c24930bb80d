import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { Logger } from '../../system/log.ts'
import { addField } from '../connection/reply-head.ts'
import type { Rate } from './bucket.ts'
import { createRateCounters, type RateCounter } from './counters.ts'
import { otherResource, parseResourceRate, resourceOf } from './resource.ts'
import { createTally } from '../../system/tally.ts'

/** As the configuration has it: `api.rateLimits`. */
export interface RateLimitSettings extends Rate {
  readonly enabled: boolean
  /** Of login and password reset together. */
  readonly login: Rate
  /** Of single resources, `clusters=50/5`. */
  readonly resources: readonly string[]
  /** Counters kept in memory. */
  readonly trackedKeys: number
}

export interface RateLimitOptions {
  readonly settings: RateLimitSettings
  /** Monotonic milliseconds. */
  readonly monotonic: () => number
  readonly log: Logger
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** False for a route that may be asked without end. */
    limited?: boolean
    /** The route is counted in this bucket and not with the resource in its path. */
    bucket?: 'login'
  }
  interface FastifyRequest {
    /** Refused by the rate limit; such a request gets no line of its own in the log. */
    isOverLimit: boolean
  }
}

/** Counts the requests of each client to each resource and refuses those over the rate. */
export interface RateLimiter {
  /** Gives every route its check, which comes before those that it has. */
  addTo(app: FastifyInstance): void
  /** For a request that meets no route: counts it, and says why it is refused if it is. */
  check(request: FastifyRequest, reply: FastifyReply): AppError | undefined
  /** Requests refused since the start, by resource. */
  refusals(): ReadonlyMap<string, number>
}

interface Resource {
  readonly name: string
  readonly counter: RateCounter
  readonly policy: string
  /** The `RateLimit` field by the number of tokens left: a client that takes its time meets few of them. */
  readonly limits: Map<number, string>
  readonly requestsPerSecond: number
}

/**
 * Limits by `settings`: a token bucket for each address (IPv6: each /64) and resource. Every reply of a limited route
 * says how much is left, in the fields of draft-ietf-httpapi-ratelimit-headers-11.
 */
export function createRateLimiter({ settings, monotonic, log }: RateLimitOptions): RateLimiter {
  const counters = createRateCounters(settings.trackedKeys)
  const own = new Map(settings.resources.map(parseResourceRate))
  const resources = new Map<string, Resource>()
  const refusals = new Map<string, number>()
  const refused = createTally((counts) =>
    log.warn(
      counts,
      `requests were refused at the rate limit, api.rateLimits raises it; with log.level debug you see whose: journalctl -u edgehostd -g '"status":429'`,
    ),
  )

  function open(name: string): Resource {
    const known = resources.get(name)
    if (known) return known
    const rate = name === 'login' ? settings.login : (own.get(name) ?? settings)
    const counter = counters.open(rate)
    const policy = `"${name}";q=${counter.capacity};w=${rate.burst}`
    const made = {
      name,
      counter,
      policy,
      limits: new Map<number, string>(),
      requestsPerSecond: rate.requestsPerSecond,
    }
    resources.set(name, made)
    refusals.set(name, 0)
    return made
  }
  // Paths that are not there and of which no route has the resource are counted together.
  const other = open(otherResource)

  function take(resource: Resource, request: FastifyRequest, reply: FastifyReply): AppError | undefined {
    const {
      client: { name: client },
      isLocal,
    } = request.peer
    if (isLocal) return undefined
    const now = Math.floor(monotonic())
    const left = resource.counter.take(client, now)
    addField(reply, 'ratelimit-policy', resource.policy)
    if (left >= 0) {
      addField(reply, 'ratelimit', limitOf(resource, left))
      return undefined
    }
    const retryAfterSec = Math.ceil(resource.counter.waitMs(client, now) / 1_000)
    addField(reply, 'ratelimit', `"${resource.name}";r=0;t=${retryAfterSec}`)
    refused.add(resource.name)
    refusals.set(resource.name, (refusals.get(resource.name) ?? 0) + 1)
    request.isOverLimit = true
    const message = `more than ${resource.requestsPerSecond} requests a second; ask again in ${retryAfterSec} s`
    return new AppError('TooManyRequests', message, { retryAfterSec })
  }

  const check: RateLimiter['check'] = (request, reply) =>
    take(resources.get(resourceOf(request.url)) ?? other, request, reply)

  return {
    addTo(app) {
      app.decorateRequest('isOverLimit', false)
      app.addHook('onRoute', (route) => {
        const { limited = true, bucket } = route.config ?? {}
        if (!limited) return
        const resource = open(bucket ?? resourceOf(route.url))
        const limit: typeof route.onRequest = (request, reply, done) => done(take(resource, request, reply))
        route.onRequest = [limit, ...[route.onRequest ?? []].flat()]
      })
      app.addHook('onClose', async () => refused.stop())
    },
    check,
    refusals: () => refusals,
  }
}

// Kept of each resource; a large bucket would else hold as many texts as it has tokens.
const keptLimits = 1_000

// What is left is promised for the time in which it flows in again, or a client that spreads the one over the other
// would come too fast (section 8.5 of the draft).
function limitOf({ name, limits, requestsPerSecond }: Resource, left: number): string {
  const known = limits.get(left)
  if (known !== undefined) return known
  const text = `"${name}";r=${left};t=${Math.max(1, Math.ceil(left / requestsPerSecond))}`
  if (limits.size >= keptLimits) limits.clear()
  limits.set(left, text)
  return text
}
