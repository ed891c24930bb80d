import { createBoundedMap } from '../../base/bounded-map.ts'
import {
  createBucket,
  type Bucket,
  type Rate,
  createRowFinder,
  type RateRow,
  otherResource,
  parseResourceRate,
  resourceOf,
} from './rows.ts'
import { program } from '../../base/program.ts'
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
import { createTally } from '../../base/tally.ts'

/** The buckets of all clients for one resource. */
export interface RateCounter {
  /** Tokens of a full bucket. */
  readonly capacity: number
  /** Takes a token of this client: the tokens left, or -1 when there was none. */
  take(client: string, now: number): number
  /** Milliseconds until this client has a token. */
  waitMs(client: string, now: number): number
}

/** The buckets of all clients for all resources, bounded in number. Times are whole monotonic milliseconds. */
interface RateCounters {
  /** Adds a resource. */
  open(rate: Rate): RateCounter
  /** Number of buckets in memory. */
  size(): number
}

interface Counter {
  readonly bucket: Bucket
  readonly mark: number
}

/**
 * At the maximum, a new bucket replaces a full one, or the fullest of a few. So a flood of new addresses removes its own
 * counters, and not the counter of a client that has emptied its bucket.
 * @param maximum number of counters, over all resources
 */
export function createRateCounters(maximum: number): RateCounters {
  const counters = createBoundedMap<Counter>({
    maximum,
    worth: ({ bucket, mark }, now) => bucket.emptiness(mark, now),
    // No request has to compare all of them.
    compared: 32,
  })
  let opened = 0

  return {
    open(rate) {
      const bucket = createBucket(rate)
      const resource = (opened += 1)
      const keyOf = (client: string) => `${resource} ${client}`
      const markOf = (key: string) => counters.get(key)?.mark ?? 0
      return {
        capacity: bucket.capacity,
        take(client, now) {
          const key = keyOf(client)
          const mark = bucket.take(markOf(key), now)
          if (mark === undefined) return -1
          counters.set(key, { bucket, mark }, now)
          return bucket.tokens(mark, now)
        },
        waitMs: (client, now) => bucket.waitMs(markOf(keyOf(client)), now),
      }
    },
    size: () => counters.size,
  }
}

/** The section `api.rateLimits` of the configuration. */
type RateLimitSettings = ApiSettings['rateLimits']

export interface RateLimitOptions {
  readonly settings: RateLimitSettings
  /** A table of paths with their rates: requests then count in the bucket of their row instead of their resource's. */
  readonly rows?: readonly RateRow[] | undefined
  /** Monotonic milliseconds. */
  readonly monotonic: () => number
  /** The user of an access token that is in memory; no signature is checked. */
  readonly holderOf?: (accessToken: string) => string | undefined
  /** Whether a user has logged in from exactly this client, which is then not limited by the requests of its neighbours. */
  readonly isKnownClient?: (client: Client) => boolean
  readonly log: Logger
}

/** Buckets of routes that count apart from their resource; each has a rate of its own in the configuration. */
const ownBuckets = ['login', 'blobs'] as const
type OwnBucket = (typeof ownBuckets)[number]
const isOwnBucket = (name: string): name is OwnBucket => (ownBuckets as readonly string[]).includes(name)

declare module 'fastify' {
  interface FastifyContextConfig {
    /** False for a route without a rate limit. */
    limited?: boolean
    /** Requests to the route count in this bucket instead of their resource's. */
    bucket?: OwnBucket
    /**
     * For a route whose body contains another token than the access token: the user of that token, if the token is in memory.
     * Called with an unchecked body when the client is over its rate.
     */
    holder?: (request: FastifyRequest) => string | undefined
  }
  interface FastifyRequest {
    /** Refused by the rate limit; such a request gets no line of its own in the log at `info`. */
    isOverLimit: boolean
    /** The refusal of a request over the rate of its client; it applies unless the body contains a known token. */
    overLimit: Verdict | null
  }
}

/** Counts the requests of each client to each resource and refuses requests over the rate. */
interface RateLimiter {
  /** Adds the limit to every route, before the hooks that the route has. */
  addTo(app: FastifyInstance): void
  /** Counts a request that matches no route, and returns its refusal if it is over the rate. */
  check(request: FastifyRequest, reply: FastifyReply): AppError | undefined
  /** Requests refused since the start, by resource. */
  refusals(): ReadonlyMap<string, number>
}

/** The result of the limit for a request: accepted, with the tokens left, or refused, with the time to wait. */
type Verdict = { readonly left: number } | { readonly waitMs: number; readonly isNetwork: boolean }

interface Resource {
  readonly name: string
  /** Buckets of clients and users. */
  readonly counter: RateCounter
  /** Buckets of the networks around clients. */
  readonly networks: RateCounter
  readonly policy: string
  readonly requestsPerSecond: number
}

/**
 * Limits by `settings`: a token bucket for each client and resource, and one for the on-link /64 around the client. A request
 * with an access token that is in memory counts for its user instead, so requests of others at the same address or in the same
 * network do not limit it. Once less than half of a bucket is left, replies say how much, in the fields of
 * draft-ietf-httpapi-ratelimit-headers-11.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const { settings, rows, monotonic, holderOf, isKnownClient, log } = options
  const counters = createRateCounters(settings.trackedKeys)
  const own = new Map((settings.resources ?? []).map(parseResourceRate))
  const resources = new Map<string, Resource>()
  const refusals = new Map<string, number>()
  const refused = createTally((counts) =>
    log.warn(
      counts,
      `requests were refused at the rate limit of api.rateLimits; with log.level debug this shows their clients: journalctl -u ${program.daemon} -g '"status":429'`,
    ),
  )

  function open(name: string): Resource {
    return resources.get(name) ?? add(name, (isOwnBucket(name) ? settings[name] : own.get(name)) ?? settings)
  }

  function add(name: string, rate: Rate): Resource {
    const counter = counters.open(rate)
    const networks = counters.open({ ...rate, requestsPerSecond: rate.requestsPerSecond * networkFactor })
    const policy = `"${name}";q=${counter.capacity};w=${rate.burst}`
    const made = { name, counter, networks, policy, requestsPerSecond: rate.requestsPerSecond }
    resources.set(name, made)
    refusals.set(name, 0)
    return made
  }
  // Paths without a route count together, unless their resource has routes.
  const other = open(otherResource)
  const rowOf = rows && createRowFinder(rows)
  const ownRows = new Map((settings.paths ?? []).map(parseResourceRate))
  for (const row of rows ?? []) add(row.path, ownRows.get(row.path) ?? row)

  function takeOf(counter: RateCounter, key: string, now: number): Verdict {
    const left = counter.take(key, now)
    return left < 0 ? { waitMs: counter.waitMs(key, now), isNetwork: false } : { left }
  }

  // The space keeps the keys of users and of clients apart.
  const takeUser = (resource: Resource, user: string, now: number) =>
    takeOf(resource.counter, `user ${user}`, now)

  function takeClient({ counter, networks }: Resource, client: Client, now: number): Verdict {
    const { name, network } = client
    if (network === undefined) return takeOf(counter, name, now)
    const waitMs = networks.waitMs(network, now)
    // A refusal by the bucket of the network takes no token of the client.
    if (waitMs > 0 && isKnownClient?.(client) !== true) return { waitMs, isNetwork: true }
    const verdict = takeOf(counter, name, now)
    if ('left' in verdict && waitMs === 0) networks.take(network, now)
    return verdict
  }

  function judge(resource: Resource, request: FastifyRequest): Verdict {
    const now = Math.floor(monotonic())
    const token = holderOf && accessTokenOf(request)
    const user = token === undefined ? undefined : holderOf?.(token)
    return user === undefined ? takeClient(resource, request.peer.client, now) : takeUser(resource, user, now)
  }

  /** Sets the headers of the reply; returns the error of a refusal. */
  function report(resource: Resource, verdict: Verdict, request: FastifyRequest, reply: FastifyReply) {
    const { name, policy, counter } = resource
    if ('left' in verdict) {
      // A client that is far from the limit does not need the fields.
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
    const message = `more than ${perSecond} requests a second${from}; try again in ${retryAfterSec} s`
    return new AppError(apiErrors.TooManyRequests, message, { retryAfterSec })
  }

  const take = (resource: Resource, request: FastifyRequest, reply: FastifyReply): AppError | undefined =>
    request.peer.isLocal ? undefined : report(resource, judge(resource, request), request, reply)

  /** The resource of a request by its path alone. */
  const ofPath = ({ url }: FastifyRequest): Resource =>
    resources.get(rowOf ? (rowOf(url)?.path ?? otherResource) : resourceOf(url)) ?? other

  const check: RateLimiter['check'] = (request, reply) => take(ofPath(request), request, reply)

  return {
    addTo(app) {
      app.decorateRequest('isOverLimit', false)
      app.decorateRequest('overLimit', null)
      app.addHook('onRoute', (route) => {
        const { limited = true, bucket, holder } = route.config ?? {}
        if (!limited) return
        const declared = rowOf ? undefined : open(bucket ?? resourceOf(route.url))
        const resourceFor = (request: FastifyRequest) => declared ?? ofPath(request)
        const limit: onRequestHookHandler = (request, reply, done) => {
          const resource = resourceFor(request)
          if (!holder || request.peer.isLocal) {
            done(take(resource, request, reply))
            return
          }
          const verdict = judge(resource, request)
          if ('left' in verdict) report(resource, verdict, request, reply)
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
          const resource = resourceFor(request)
          const user = holder(request)
          const verdict =
            user === undefined ? request.overLimit : takeUser(resource, user, Math.floor(monotonic()))
          done(report(resource, verdict, request, reply))
        }
        route.preValidation = [limitLate, ...[route.preValidation ?? []].flat()]
      })
      app.addHook('onClose', async () => refused.stop())
    },
    check,
    refusals: () => refusals,
  }
}

// The tokens that are left are reported for the time in which as many are filled in again. Over a shorter time a client that
// spreads its requests evenly would send them too fast (section 8.5 of the draft).
const limitOf = ({ name, requestsPerSecond }: Resource, left: number) =>
  `"${name}";r=${left};t=${Math.max(1, Math.ceil(left / requestsPerSecond))}`
