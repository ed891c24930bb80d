import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMaterial } from './https-server.ts'

const folder = join(import.meta.dirname, '../platform/clouds/recorded')

/** A reply of a real OpenStack; test/e2e-long/openstack.test.ts has recorded it. */
export interface Recorded<Body = object> {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
}
export const recorded = <Body = object>(name: string): Recorded<Body> =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Recorded<Body>

/** A server as Nova describes it. */
export type PlayedServer = Readonly<Record<string, unknown>> & {
  readonly id: string
  readonly tags: readonly string[]
}
export interface Page {
  readonly servers: readonly PlayedServer[]
  readonly servers_links?: readonly { readonly href: string; readonly rel: string }[]
}
interface Token {
  readonly token: {
    readonly catalog: readonly {
      readonly type: string
      readonly endpoints: readonly { readonly url: string; readonly interface: string }[]
    }[]
    readonly project: { readonly id: string }
  }
}

export interface Request {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** What answers in place of the cloud; `undefined` lets the cloud answer. */
export type Misbehaviour = (request: Request, reply: ServerResponse) => unknown

export interface PlayedCloud {
  /** Flags of a platform that uses it. */
  readonly flags: readonly string[]
  /** Id -> secret. */
  readonly credentials: Map<string, string>
  servers: readonly PlayedServer[]
  /** As Neutron describes them; `undefined`: there is no Neutron in the catalogue. */
  ports: readonly object[] | undefined
  /** How many ports Neutron gives in a reply; all by default, as it does by default. */
  portLimit: number
  misbehaves: Misbehaviour | undefined
  readonly requests: Request[]
  /** The requests whose path begins so. */
  asked(prefix: string): readonly Request[]
  /** Refuses every token that it has given. */
  revokeTokens(): void
  dropConnections(): void
  close(): Promise<void>
}

/** Of Nova, in the recorded cloud. */
const maxLimit = 50
/** Of Keystone, there. */
const tokenMs = 3_600_000

/**
 * An OpenStack behind TLS that gives the replies of the recorded one, for credentials and servers of the test's choice. It pages as Nova does; a
 * test compares that with recorded pages.
 */
export async function playCloud(): Promise<PlayedCloud> {
  const material = await makeMaterial()
  const caFile = join(tmpdir(), `played-cloud-${randomUUID()}.pem`)
  writeFileSync(caFile, material.cert)
  const tokens = new Set<string>()
  let origin = ''

  const send = (reply: ServerResponse, { status, headers, body }: Recorded<unknown>) => {
    const text = JSON.stringify(body)
    reply.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) }).end(text)
  }

  function logIn({ body }: Request, reply: ServerResponse): void {
    const { auth } = JSON.parse(body) as {
      auth: { identity: { application_credential: { id: string; secret: string } } }
    }
    const { id, secret } = auth.identity.application_credential
    const right = cloud.credentials.get(id)
    if (right !== secret) {
      send(reply, recorded(right === undefined ? 'keystone-unknown' : 'keystone-wrong'))
      return
    }
    const { status, headers, body: granted } = recorded<Token>('keystone-token')
    const token = randomBytes(32).toString('base64url')
    tokens.add(token)
    const now = Date.now()
    const catalog = granted.token.catalog
      .filter(({ type }) => type !== 'network' || cloud.ports !== undefined)
      .map((service) => ({
        ...service,
        endpoints: service.endpoints.map((endpoint) => ({
          ...endpoint,
          url: endpoint.url.replace(/^https:\/\/[^/]+/, `${origin}/${service.type}`),
        })),
      }))
    send(reply, {
      status,
      headers: { ...headers, 'x-subject-token': token },
      body: {
        token: {
          ...{ ...granted.token, catalog, issued_at: new Date(now).toISOString() },
          expires_at: new Date(now + tokenMs).toISOString(),
        },
      },
    })
  }

  function listServers(url: URL, reply: ServerResponse): void {
    const tags = url.searchParams.get('tags')?.split(',') ?? []
    const marker = url.searchParams.get('marker')
    const all = cloud.servers.filter((server) => tags.every((tag) => server.tags.includes(tag)))
    const at = marker === null ? 0 : all.findIndex(({ id }) => id === marker) + 1
    if (marker !== null && at === 0) {
      send(reply, recorded('nova-lost-marker'))
      return
    }
    const { status, headers } = recorded('nova-page')
    send(reply, { status, headers, body: pageOf(all.slice(at), url) })
  }

  function listPorts(url: URL, reply: ServerResponse): void {
    const all = (cloud.ports ?? []).map((port, index) => ({ id: `port-${index}`, ...port }))
    const marker = url.searchParams.get('marker')
    const left = all.slice(marker === null ? 0 : all.findIndex(({ id }) => id === marker) + 1)
    const ports = left.slice(0, Math.min(Number(url.searchParams.get('limit')), cloud.portLimit))
    const links = left.length > ports.length ? { ports_links: [{ rel: 'next', href: url.href }] } : {}
    send(reply, { ...recorded('neutron-ports'), body: { ports, ...links } })
  }

  function answer(request: Request, reply: ServerResponse): void {
    const url = new URL(request.url, origin)
    if (request.method === 'POST' && url.pathname === '/identity/v3/auth/tokens') {
      logIn(request, reply)
      return
    }
    if (!tokens.has(String(request.headers['x-auth-token']))) send(reply, recorded('nova-refused-token'))
    else if (url.pathname === '/compute/v2.1/servers/detail') listServers(url, reply)
    else if (url.pathname === '/network/v2.0/ports') listPorts(url, reply)
    else reply.writeHead(404).end()
  }

  const server = createServer(material, (incoming, reply) => {
    const pieces: Buffer[] = []
    incoming.on('data', (piece: Buffer) => pieces.push(piece))
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming
      const request = { method, url, headers, body: Buffer.concat(pieces).toString() }
      cloud.requests.push(request)
      if (cloud.misbehaves?.(request, reply) === undefined) answer(request, reply)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`

  const cloud: PlayedCloud = {
    flags: [`--clouds.vendor.authUrl=${origin}/identity`, `--clouds.vendor.caFile=${caFile}`],
    credentials: new Map([['right-id', 'right-secret-of-the-credential']]),
    servers: [],
    ports: [],
    portLimit: Infinity,
    misbehaves: undefined,
    requests: [],
    asked: (prefix) => cloud.requests.filter(({ url }) => url.startsWith(prefix)),
    revokeTokens: () => tokens.clear(),
    dropConnections: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return cloud
}

/** A page of servers as Nova makes it of all that are left. @param url of the request */
export function pageOf(left: readonly PlayedServer[], url: URL): Page {
  const limit = Math.min(Number(url.searchParams.get('limit') ?? maxLimit), maxLimit)
  const servers = left.slice(0, limit)
  const last = servers.at(-1)
  // Nova does not look whether there is one more.
  if (last === undefined || servers.length < limit) return { servers }
  const next = new URLSearchParams(url.searchParams)
  next.set('marker', last.id)
  return {
    servers,
    servers_links: [{ rel: 'next', href: `${url.origin}${url.pathname}?${next.toString()}` }],
  }
}

/** Servers with the tags, made of a recorded one; the newest first, as Nova gives them. */
export function manyServers(count: number, tags: readonly string[]): PlayedServer[] {
  const [pattern] = recorded<Page>('nova-page').body.servers
  if (!pattern) throw new Error('no server was recorded')
  const first = Date.UTC(2026, 10, 1)
  return Array.from({ length: count }, (_, index) => ({
    ...pattern,
    ...{ id: randomUUID(), name: `server-${count - index}`, tags },
    created: new Date(first + (count - index) * 1_000).toISOString().replace('.000Z', 'Z'),
  }))
}
