import type { JsonObject } from '../../base/json.ts'
import { AppError } from '../../errors/app-error.ts'
import { ReplyTooLong } from '../../outgoing/failures.ts'
import { platformErrors } from '../codes.ts'
import { unavailable, unusable, type CloudHttp, type CloudReply } from './cloud-http.ts'
import { objectsIn } from './json.ts'

/** A list of a service, which gives it in pages. */
export interface PagedList {
  /** For messages: `Nova`. */
  readonly service: string
  /** With all parameters but those of pages. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Of a reply: the items. The links to other pages are in the one with `_links` behind its name. */
  readonly member: 'servers' | 'ports'
  /** How many items are asked for at once; fewer where the page would be too long. */
  readonly pageSize: number
  /** How many items there may be. */
  readonly most: number
  /** How many bytes a page may have. */
  readonly longest: number
}

/** What has the id that the service gives it. */
export type Identified = JsonObject & { readonly id: string }

/** Takes the items of a list, page by page. */
export interface Collector<Result> {
  add(page: readonly Identified[]): void
  result(): Result
}

/** The token was refused: it was revoked, as all tokens of credentials that are deleted. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

const mostBeginnings = 3
const smallestPage = 5
// A UUID has 36 characters. What has a longer id is left out.
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
  // Nova says the first, Neutron the second.
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

/** Whether it has an id that was not seen before; it is then. */
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
