import type { ApiSettings } from '../config.ts'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import { apiErrors } from '../codes.ts'
import { networkFactor, type Client } from '../../base/client.ts'
import type { Logger } from '../../system/log.ts'
import { accessTokenOf } from '../guard.ts'
import { createRateCounters, type RateCounter } from './counters.ts'
import { otherResource, parseResourceRate, resourceOf } from './resource.ts'
import { createTally } from '../../base/tally.ts'

/** As the configuration has it: `api.rateLimits`. */
export type RateLimitSettings = ApiSettings['rateLimits']

export interface RateLimitOptions {
  readonly settings: RateLimitSettings
  /** Monotonic milliseconds. */
  readonly monotonic: () => number
  /** The user of an access token that we have issued and still hold, told without a look at a signature. */
  readonly holderOf?: (accessToken: string) => string | undefined
  /** Whether a user has logged in from exactly there: what neighbours use up does not hold such a client back. */
  readonly isKnownClient?: (client: Client) => boolean
  readonly log: Logger
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** False for a route that may be asked without end. */
    limited?: boolean
    /** The route is counted in this bucket and not with the resource in its path. */
    bucket?: 'login'
    /**
     * For a route that takes another token than the access token: its user where we hold it. Asked with a body that
     * has not been checked, where the address is over its rate.
     */
    holder?: (request: FastifyRequest) => string | undefined
  }
  interface FastifyRequest {
    /** Refused by the rate limit; such a request gets no line of its own in the log. */
    isOverLimit: boolean
    /** What a request over the rate of its address comes to, unless it brings a token in its body. */
    overLimit: Verdict | null
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

/** What a request may do: with how many tokens left, or not for how long. */
type Verdict = { readonly left: number } | { readonly waitMs: number; readonly isNetwork: boolean }

interface Resource {
  readonly name: string
  /** Of clients and users. */
  readonly counter: RateCounter
  /** Of the networks around clients. */
  readonly networks: RateCounter
  readonly policy: string
  readonly requestsPerSecond: number
}

/**
 * Limits by `settings`: a token bucket for each client and resource, and one for the on-link /64 around it. A request with
 * an access token that we hold is counted by its user instead: what others do at the same address or next to it does not
 * hold it back. A reply of a limited route says how much is left, in the fields of draft-ietf-httpapi-ratelimit-headers-11, once
 * that is less than half.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const { settings, monotonic, holderOf, isKnownClient, log } = options
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
    const networks = counters.open({ ...rate, requestsPerSecond: rate.requestsPerSecond * networkFactor })
    const policy = `"${name}";q=${counter.capacity};w=${rate.burst}`
    const made = { name, counter, networks, policy, requestsPerSecond: rate.requestsPerSecond }
    resources.set(name, made)
    refusals.set(name, 0)
    return made
  }
  // Paths that are not there and of which no route has the resource are counted together.
  const other = open(otherResource)

  function takeOf(counter: RateCounter, key: string, now: number): Verdict {
    const left = counter.take(key, now)
    return left < 0 ? { waitMs: counter.waitMs(key, now), isNetwork: false } : { left }
  }

  // No name of a user can be that of a client: there is a space in it.
  const takeUser = (resource: Resource, user: string, now: number) =>
    takeOf(resource.counter, `user ${user}`, now)

  function takeClient({ counter, networks }: Resource, client: Client, now: number): Verdict {
    const { name, network } = client
    if (network === undefined) return takeOf(counter, name, now)
    const waitMs = networks.waitMs(network, now)
    // Refused by the network, a client has its own tokens still.
    if (waitMs > 0 && isKnownClient?.(client) !== true) return { waitMs, isNetwork: true }
    const verdict = takeOf(counter, name, now)
    if ('left' in verdict && waitMs === 0) networks.take(network, now)
    return verdict
  }

  function look(resource: Resource, request: FastifyRequest): Verdict {
    const now = Math.floor(monotonic())
    const token = holderOf && accessTokenOf(request)
    const user = token === undefined ? undefined : holderOf?.(token)
    return user === undefined ? takeClient(resource, request.peer.client, now) : takeUser(resource, user, now)
  }

  /** Says the verdict in the reply. */
  function say(resource: Resource, verdict: Verdict, request: FastifyRequest, reply: FastifyReply) {
    const { name, policy, counter } = resource
    if ('left' in verdict) {
      // A client that takes its time has no use for the fields.
      if (verdict.left < counter.capacity / 2)
        reply.header('ratelimit-policy', policy).header('ratelimit', limitOf(resource, verdict.left))
      return undefined
    }
    const retryAfterSec = Math.ceil(verdict.waitMs / 1_000)
    reply.header('ratelimit-policy', policy).header('ratelimit', `"${name}";r=0;t=${retryAfterSec}`)
    refused.add(name)
    refusals.set(name, (refusals.get(name) ?? 0) + 1)
    request.isOverLimit = true
    const perSecond = resource.requestsPerSecond * (verdict.isNetwork ? networkFactor : 1)
    const from = verdict.isNetwork ? ' from your network' : ''
    const message = `more than ${perSecond} requests a second${from}; ask again in ${retryAfterSec} s`
    return new AppError(apiErrors.TooManyRequests, message, { retryAfterSec })
  }

  const take = (resource: Resource, request: FastifyRequest, reply: FastifyReply): AppError | undefined =>
    request.peer.isLocal ? undefined : say(resource, look(resource, request), request, reply)

  const check: RateLimiter['check'] = (request, reply) =>
    take(resources.get(resourceOf(request.url)) ?? other, request, reply)

  return {
    addTo(app) {
      app.decorateRequest('isOverLimit', false)
      app.decorateRequest('overLimit', null)
      app.addHook('onRoute', (route) => {
        const { limited = true, bucket, holder } = route.config ?? {}
        if (!limited) return
        const resource = open(bucket ?? resourceOf(route.url))
        const limit: onRequestHookHandler = (request, reply, done) => {
          if (!holder || request.peer.isLocal) {
            done(take(resource, request, reply))
            return
          }
          const verdict = look(resource, request)
          if ('left' in verdict) say(resource, verdict, request, reply)
          else request.overLimit = verdict
          done()
        }
        route.onRequest = [limit, ...[route.onRequest ?? []].flat()]
        if (!holder) return
        const limitLate: preValidationHookHandler = (request, reply, done) => {
          if (request.overLimit === null) {
            done()
            return
          }
          const user = holder(request)
          const verdict =
            user === undefined ? request.overLimit : takeUser(resource, user, Math.floor(monotonic()))
          done(say(resource, verdict, request, reply))
        }
        route.preValidation = [limitLate, ...[route.preValidation ?? []].flat()]
      })
      app.addHook('onClose', async () => refused.stop())
    },
    check,
    refusals: () => refusals,
  }
}

// What is left is promised for the time in which it flows in again, or a client that spreads the one over the other
// would come too fast (section 8.5 of the draft).
const limitOf = ({ name, requestsPerSecond }: Resource, left: number) =>
  `"${name}";r=${left};t=${Math.max(1, Math.ceil(left / requestsPerSecond))}`
