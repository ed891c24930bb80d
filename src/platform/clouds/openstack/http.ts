import { isRecord, type JsonObject, hasMoreValues, parseJson } from '../../../base/json.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { Agent } from 'node:https'
import { program } from '../../../base/program.ts'
import { AppError } from '../../../errors/app-error.ts'
import { createAgent, type Trust } from '../../../outgoing/connection.ts'
import { exchange } from '../../../outgoing/exchange.ts'
import { ForeignReply, NoReply, ReplyTooLong } from '../../../outgoing/failures.ts'
import { platformErrors } from '../../codes.ts'

// Data from a cloud may be anything.

/** The objects of an array; none for anything else. */
export const objectsIn = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** A text; empty for anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const longestShort = 255
// As JSON they are six bytes each.
const unprintable = /[\p{Cc}\p{Cs}]/gu

/**
 * A text that is kept and shown: cut to the longest that Nova has, with U+FFFD for control characters and halves of pairs.
 * @returns empty for anything that is no text
 */
export function shortTextOf(value: unknown): string {
  const text = textOf(value)
  // Copied, since a slice keeps the whole text in memory.
  const short = text.length > longestShort ? Buffer.from(text.slice(0, longestShort)).toString() : text
  return short.replace(unprintable, '\ufffd')
}

/** A request to a service of a cloud. */
interface CloudRequest {
  /** For messages: `Nova`. */
  readonly service: string
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: object
  /** Largest reply, in bytes. */
  readonly longest: number
  readonly signal: AbortSignal
}

interface CloudReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The object of a success; undefined for a reply without one. */
  readonly body: JsonObject | undefined
}

/** HTTPS to the services of a cloud. */
export interface CloudHttp {
  /** A redirect is not followed. @throws AppError CloudUnavailable where there is no reply of status 200 to 599 that can be used */
  ask(request: CloudRequest): Promise<CloudReply>
  /** Closes the connections. */
  close(): void
}

const longestRefusal = 65_536
const connectMs = 5_000
// Pools are read at the same time, each over one connection: those that are slow must not keep another one waiting. What the catalogue leads to
// may be another server at each login, so that idle connections are not kept for longer than from one read of a pool to the next.
const connections = { most: 512, idleMs: 30_000 }
// Limit of all replies that are being received. They are outside of the heap.
const mostBytes = 67_108_864
// Limit of a reply. A page of servers has some ten thousand, one of ports twenty thousand. They are parsed at once, and take up to 200 bytes each.
const mostValues = 50_000

/** @param trust who may have signed the certificates of all services */
export function createCloudHttp(trust: Trust): CloudHttp {
  // By origin: services of a cloud may be on machines of their own.
  const agents = new Map<string, Agent>()
  let receiving = 0

  function agentOf({ origin }: URL): Agent {
    for (const [other, agent] of agents) if (other !== origin && isIdle(agent)) agents.delete(other)
    const known = agents.get(origin) ?? createAgent({ url: origin }, trust, connectMs, connections)
    agents.set(origin, known)
    return known
  }

  /** Counts the bytes of one reply until `done`. */
  function createCount() {
    let own = 0
    return {
      add(bytes: number) {
        own += bytes
        receiving += bytes
        if (receiving > mostBytes) throw new TooMuch()
      },
      done: () => void (receiving -= own),
    }
  }

  return {
    async ask({ service, method, url, headers = {}, body, longest, signal }) {
      const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
      const count = createCount()
      try {
        const { text, ...reply } = await exchange(agentOf(url), {
          method,
          url,
          signal,
          onPart: count.add,
          headers: {
            accept: 'application/json',
            'user-agent': program.daemon,
            ...headers,
            ...(sent ? { 'content-type': 'application/json' } : {}),
          },
          ...(sent ? { body: sent } : {}),
          longest: (status) => (status < 300 ? longest : longestRefusal),
        })
        if (hasMoreValues(text, mostValues))
          throw new ForeignReply(`its reply has more than ${mostValues} values`)
        const parsed = parseJson(text)
        if (reply.status < 300 && !isRecord(parsed)) throw new ForeignReply('its reply is not a JSON object')
        return { ...reply, body: isRecord(parsed) ? parsed : undefined }
      } catch (error) {
        throw unavailable(`${service} ${reasonOf(error)}`, error)
      } finally {
        count.done()
      }
    },
    close() {
      for (const agent of agents.values()) agent.destroy()
      agents.clear()
    },
  }
}

/** More is being received than the platform has memory for. */
class TooMuch extends Error {}

const isIdle = ({ sockets, freeSockets, requests }: Agent) =>
  [sockets, freeSockets, requests].every((lists) => Object.values(lists).flat().length === 0)

const retryAfterSec = 10

/** @param message is shown to clients: no address, and no text of the cloud */
export const unavailable = (message: string, cause?: unknown) =>
  new AppError(platformErrors.CloudUnavailable, message, {
    retryAfterSec,
    ...(cause === undefined ? {} : { cause }),
  })

/** The error for a reply that is neither a success nor a refusal of the request. */
export const unusable = (service: string, { status }: Pick<CloudReply, 'status'>) =>
  unavailable(`${service} answers with status ${status}`)

function reasonOf(error: unknown): string {
  if (error instanceof NoReply) return 'does not answer in time'
  if (error instanceof ForeignReply) return `answers as no OpenStack does: ${error.message}`
  if (error instanceof TooMuch) return 'sends more than the platform takes at the same time'
  const { code } = error as NodeJS.ErrnoException
  return `cannot be reached (${code ?? 'no connection'})`
}

/** A list of a service, which gives it in pages. */
export interface PagedList {
  /** For messages: `Nova`. */
  readonly service: string
  /** With all parameters but the paging ones. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Key of the items in a reply. The links to other pages are in the one with `_links` behind its name. */
  readonly member: 'servers' | 'ports'
  /** Items of one request; fewer where the page would be too long. */
  readonly pageSize: number
  /** Largest number of items. */
  readonly most: number
  /** Largest page, in bytes. */
  readonly longest: number
}

/** An item with the id that the service gives it. */
type Identified = JsonObject & { readonly id: string }

/** Takes the items of a list, page by page. */
interface Collector<Result> {
  add(page: readonly Identified[]): void
  result(): Result
}

/** The token was refused: it was revoked, as all tokens of credentials that are deleted. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

const mostBeginnings = 3
const smallestPage = 5
// A UUID has 36 characters. An item with a longer id is left out.
const longestId = 255

/**
 * Reads all pages of a list. An item that comes twice is taken once.
 * @param begin gives a new collector, at each beginning of the list: the item at the end of a page may be deleted before the next one is read
 * @throws TokenRefused, what a collector throws, and AppError CloudCredentialsRefused, CloudUnavailable
 */
export async function readPages<Result>(
  http: Pick<CloudHttp, 'ask'>,
  list: PagedList,
  signal: AbortSignal,
  begin: () => Collector<Result>,
): Promise<Result> {
  for (let beginnings = 0; beginnings < mostBeginnings; beginnings += 1) {
    const collector = begin()
    if (await readOnce(http, list, signal, collector)) return collector.result()
  }
  throw unavailable(`the ${list.member} change faster than ${list.service} lists them`)
}

/** @returns false where the last item of a page is not there any more */
async function readOnce(
  http: Pick<CloudHttp, 'ask'>,
  list: PagedList,
  signal: AbortSignal,
  collector: Collector<unknown>,
): Promise<boolean> {
  const seen = new Set<string>()
  let { pageSize } = list
  for (let marker: string | undefined; ;) {
    const page = await readPage(http, { ...list, pageSize }, marker, signal, seen).catch((error: unknown) => {
      if (!isTooLong(error) || pageSize <= smallestPage) throw error
      return 'tooLong' as const
    })
    if (page === 'tooLong') {
      pageSize = Math.ceil(pageSize / 4)
      continue
    }
    if (page === undefined) return false
    collector.add(page.items.splice(0))
    if (!page.hasNext) return true
    marker = page.last
  }
}

const isTooLong = (error: unknown) => error instanceof AppError && error.cause instanceof ReplyTooLong

/**
 * A function of its own, so that nothing of a reply is kept while the next one is awaited.
 * @returns undefined where the item of the marker is not there any more
 */
async function readPage(
  http: Pick<CloudHttp, 'ask'>,
  { service, url: first, headers, member, pageSize, most, longest }: PagedList,
  marker: string | undefined,
  signal: AbortSignal,
  seen: Set<string>,
) {
  const url = new URL(first)
  url.searchParams.set('limit', String(pageSize))
  if (marker !== undefined) url.searchParams.set('marker', marker)
  const reply = await http.ask({ service, method: 'GET', url, headers, longest, signal })
  requireRight(service, reply)
  const { status, body } = reply
  // Nova answers the first, Neutron the second.
  if (marker !== undefined && (status === 400 || status === 404)) return undefined
  if (status === 406)
    throw unavailable(`${service} does not know the version of its interface that is needed`)
  const found = body?.[member]
  if (status !== 200 || !Array.isArray(found)) throw unusable(service, reply)
  const items = objectsIn(found).filter((item): item is Identified => isNew(item, seen))
  if (seen.size > most) throw unavailable(`${service} lists more than ${most} ${member}`)
  // Its address is not used: the marker says the same, and no reply leads elsewhere.
  const hasNext = objectsIn(body?.[`${member}_links`]).some(({ rel }) => rel === 'next')
  const last = items.at(-1)?.id
  if (hasNext && last === undefined) throw unavailable(`${service} gives the same page again`)
  return { items, hasNext, last }
}

/** Whether the id of an item is new; it is then recorded. */
function isNew({ id }: JsonObject, seen: Set<string>): boolean {
  if (typeof id !== 'string' || id.length > longestId || seen.has(id)) return false
  seen.add(id)
  return true
}

function requireRight(service: string, { status }: Pick<CloudReply, 'status'>): void {
  if (status === 401) throw new TokenRefused(service)
  if (status === 403)
    throw new AppError(
      platformErrors.CloudCredentialsRefused,
      `the role of the credentials does not allow them to list what ${service} has`,
    )
}
