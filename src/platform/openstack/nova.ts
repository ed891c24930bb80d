import { type JsonObject } from '../../base/json.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'
import { unavailable, unusable, type CloudHttp, type CloudReply } from './cloud-http.ts'
import { objectsIn } from './json.ts'
import type { CloudSession } from './keystone.ts'

/**
 * The version of Nova's interface, of 2017 (Pike). 2.26 has filters by tags, 2.47 the flavor in the server itself, so that nothing else has to
 * be asked. What later ones add is not used: 2.69 tells of servers of a part of the cloud that is down, but not with a filter.
 */
const microversion = '2.47'
// Nova gives fewer where its max_limit is lower.
const pageSize = 200
const longestPage = 8_388_608
const mostServers = 10_000
const mostBeginnings = 3

/** The token was refused: it was revoked, as all tokens of credentials that are deleted. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** @throws TokenRefused, and AppError CloudCredentialsRefused where the role is not enough */
export function requireRight(service: string, { status }: Pick<CloudReply, 'status'>): void {
  if (status === 401) throw new TokenRefused(service)
  if (status === 403)
    throw new AppError(
      platformErrors.CloudCredentialsRefused,
      `the role of the credentials does not allow them to list what ${service} has`,
    )
}

/**
 * All servers of the project that have every tag, as Nova describes them.
 * @throws TokenRefused, and AppError CloudCredentialsRefused, CloudUnavailable
 */
export async function readServers(
  http: Pick<CloudHttp, 'ask'>,
  session: Pick<CloudSession, 'token' | 'compute'>,
  tags: readonly string[],
  signal: AbortSignal,
): Promise<readonly JsonObject[]> {
  // The server at the end of a page may be deleted before the next one is read.
  for (let beginnings = 0; beginnings < mostBeginnings; beginnings += 1) {
    const servers = await readPages(http, session, tags, signal)
    if (servers) return servers
  }
  throw unavailable('the servers of the pool change faster than their list can be read')
}

/** @returns undefined where the last server of a page is not there any more */
async function readPages(
  http: Pick<CloudHttp, 'ask'>,
  { token, compute }: Pick<CloudSession, 'token' | 'compute'>,
  tags: readonly string[],
  signal: AbortSignal,
): Promise<readonly JsonObject[] | undefined> {
  const found = new Map<string, JsonObject>()
  for (let marker: string | undefined; ;) {
    const url = new URL(`${compute}/servers/detail`)
    url.search = new URLSearchParams({
      ...{ tags: tags.join(','), limit: String(pageSize) },
      ...(marker === undefined ? {} : { marker }),
    }).toString()
    const reply = await http.ask({
      ...{ service: 'Nova', method: 'GET', url, longest: longestPage, signal },
      headers: { 'x-auth-token': token, 'x-openstack-nova-api-version': microversion },
    })
    requireRight('Nova', reply)
    const { status, body } = reply
    if (status === 400 && marker !== undefined) return undefined
    if (status === 406) throw unavailable(`Nova does not know version ${microversion} of its interface`)
    const servers = body?.servers
    if (status !== 200 || !Array.isArray(servers)) throw unusable('Nova', reply)
    const before = found.size
    for (const server of objectsIn(servers)) if (typeof server.id === 'string') found.set(server.id, server)
    if (found.size > mostServers) throw unavailable(`the pool has more than ${mostServers} servers`)
    if (!hasNext(body?.servers_links)) return [...found.values()]
    if (found.size === before) throw unavailable('Nova gives the same page again')
    marker = [...found.keys()].at(-1)
  }
}

// Its address is not used: the marker says the same, and no reply leads elsewhere.
const hasNext = (links: unknown) => objectsIn(links).some(({ rel }) => rel === 'next')
