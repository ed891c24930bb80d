import type { ServerResponse, IncomingMessage } from 'node:http'
import type { Socket, AddressInfo } from 'node:net'
import type { Caller, IsGone } from '../access.ts'
import type { ApiSettings } from '../config.ts'
import { canonicalAddress } from '../../base/address.ts'
import { networkFactor, type Client, type ClientOf } from '../../base/client.ts'
import type { Logger } from '../../system/log.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import { createTally } from '../../base/tally.ts'
import type { FedServer } from './fed-server.ts'

/** Connections that are kept open between rare requests, each of a caller of its own. */
export interface KeptSettings {
  /** Connections that are kept at once. */
  readonly maximum: number
  /** Longest idle time of a kept connection, milliseconds. */
  readonly idleMs: number
  /** Whether the connections of a caller are kept up to the maximum, and closed after each reply beyond it. */
  readonly isFor: (caller: Caller) => boolean
}

/** The connections that are kept now. */
interface KeptConnections {
  /**
   * Called for each request of such a caller, before the reply has started. One connection of a caller is kept, while there are fewer than the
   * maximum; the reply on any other one says that it closes.
   */
  answer(socket: Socket, name: string, response: ServerResponse): void
  /** Called when a reply has ended or was cut off: whether the connection is kept, but was not for this request. */
  isOver(socket: Socket, response: ServerResponse): boolean
  /** Called when a connection is kept no longer, or was closed. */
  release(socket: Socket): void
  count(): number
}

// As Node does with its own limit: the client learns the shorter time, so that it closes first.
const clientClosesFirstMs = 1_000

function createKeptConnections({
  maximum,
  idleMs,
}: Pick<KeptSettings, 'maximum' | 'idleMs'>): KeptConnections {
  const names = new Map<Socket, string>()
  const callers = new Set<string>()
  const answered = new WeakSet<ServerResponse>()

  return {
    answer(socket, name, response) {
      if (names.get(socket) !== name) {
        if (names.has(socket) || callers.has(name) || names.size >= maximum) {
          response.setHeader('connection', 'close')
          return
        }
        names.set(socket, name)
        callers.add(name)
      }
      answered.add(response)
      response.setHeader('keep-alive', `timeout=${Math.floor(idleMs / 1_000)}`)
      // Node sets its own time in a listener that it has added before.
      response.once('finish', () => socket.setTimeout(idleMs + clientClosesFirstMs))
    },
    isOver: (socket, response) => names.has(socket) && !answered.has(response),
    release(socket) {
      const name = names.get(socket)
      if (name === undefined) return
      names.delete(socket)
      callers.delete(name)
    },
    count: () => names.size,
  }
}

export type ConnectionLimits = ApiSettings['connections'] & {
  readonly clientOf: ClientOf
  /** Whether an address belongs to a trusted proxy; by default none does. */
  readonly isProxy?: ((address: string) => boolean) | undefined
  /** Connections that stay open between rare requests; by default there are none. */
  readonly kept?: KeptSettings | undefined
  /** Settings of the limits, for the operator; by default `api.connections`. */
  readonly settingsName?: string
  readonly log: Logger
  /** Log for the lines that callers without a session cause; the default is `log`. */
  readonly anonymousLog?: Lines | undefined
}

/** The open connections of a server, from the accepted TCP connection on. */
export interface Connections {
  /**
   * Called for a request with a valid token. While that is valid, the connection counts for its user instead of its
   * client, and is not closed in favour of others. A user at the maximum gets no more such connections.
   * @param response its reply, which has not started
   */
  markAuthenticated(socket: Socket, caller: Caller, response: ServerResponse): void
  /** Connections of callers that are gone count as connections without a login again. */
  markUnauthenticated(isGone: IsGone): void
  count(): number
  /** When a connection was accepted, monotonic milliseconds; undefined for one that is closed. */
  acceptedAt(socket: Socket): number | undefined
  /**
   * Closes connections on which no request is in flight, also those without any request yet and those in their handshake. From
   * then on, each of the others closes with its last reply.
   */
  closeIdle(): void
  /** Stops watching; open connections stay open. */
  stop(): void
}

interface Connection {
  readonly raw: Socket
  /** Monotonic milliseconds. */
  readonly acceptedAt: number
  /** The socket of its requests (`fed-socket.ts`); set after the handshake of TLS. */
  socket: Socket | undefined
  /** Undefined for a trusted proxy, whose connections carry many clients: only the limit of all connections applies to them. */
  readonly client: Client | undefined
  /** The groups in which it counts: its client and the network around that, or its user. */
  groups: readonly Group[]
  readonly key: string
  open: boolean
  /** The caller of the last request with a valid token, if the connection counts for that user. */
  caller: Caller | undefined
  /** Number of requests in flight. */
  requests: number
}

interface Group {
  readonly name: string
  readonly maximum: number
  size: number
  /** Idle and unauthenticated, the longest idle first. */
  readonly evictable: Set<Connection>
  /** Unauthenticated with a request in flight, the oldest request first. */
  readonly busy: Set<Connection>
}

/**
 * Limits the connections per client, per on-link /64 and in all. At a limit the connection that has been idle longest without
 * a login, including those in their handshake, is closed for the new one; if there is none, the new one is closed. So a client
 * with many connections can lock out neither others nor, for long, itself.
 *
 * At the limit of a /64 or of all connections, if no connection is idle, the oldest request without a login is closed, of
 * the client that has most of them. Otherwise a thousand slow bodies from twenty addresses would lock out all other clients.
 * Connections of a trusted proxy are of no client: idle ones are closed as others at the limit of all connections, those with a request not.
 *
 * Kept connections (`kept`) are beside the limit of all connections and have one of their own. A connection is kept from a request of its caller
 * on until one without a valid token.
 */
export function limitConnections(
  server: FedServer,
  {
    maximum,
    maximumPerAddress,
    clientOf,
    isProxy = () => false,
    kept: keptSettings,
    log,
    anonymousLog = log,
    settingsName = 'api.connections',
  }: ConnectionLimits,
): Connections {
  const groups = new Map<string, Group>()
  const evictable = new Set<Connection>()
  const byTuple = new Map<string, Connection>()
  const bySocket = new WeakMap<Socket, Connection>()
  const kept = keptSettings && createKeptConnections(keptSettings)
  let count = 0
  let port = 0
  let isClosing = false
  const closed = createTally((counts) =>
    log.warn(
      counts,
      `connections were closed at the limit of ${settingsName}; list the open ones with: ss -tn state established '( sport = :${port} )'`,
    ),
  )

  function onConnection(raw: Socket): void {
    if (raw.remoteAddress === undefined) {
      // The client has disconnected already.
      raw.destroy()
      return
    }
    const client = isProxy(canonicalAddress(raw.remoteAddress)) ? undefined : clientOf(raw.remoteAddress)
    const fullGroup = groupsOf(client).find(isFull)
    if (fullGroup || count - (kept?.count() ?? 0) >= maximum) {
      const [victim] = candidates(fullGroup)
      if (!victim) {
        closed.add('refused')
        raw.destroy()
        return
      }
      closed.add('evicted')
      remove(victim)
      victim.raw.destroy()
    }
    const connection: Connection = {
      raw,
      acceptedAt: performance.now(),
      socket: undefined,
      client,
      groups: [],
      key: tupleOf(raw),
      open: true,
      caller: undefined,
      requests: 0,
    }
    countIn(groupsOf(client), connection)
    count += 1
    byTuple.set(connection.key, connection)
    offer(connection)
    raw.once('close', () => remove(connection))
  }

  function remove(connection: Connection): void {
    if (!connection.open) return
    connection.open = false
    withhold(connection)
    countIn([], connection)
    if (connection.socket) kept?.release(connection.socket)
    count -= 1
    if (byTuple.get(connection.key) === connection) byTuple.delete(connection.key)
  }

  // Sets keep the order of insertion: a connection that becomes idle, or busy, is added at the end.
  function offer(connection: Connection): void {
    if (!connection.open || connection.caller) return
    if (connection.requests === 0) evictable.add(connection)
    for (const { busy, evictable } of connection.groups)
      (connection.requests > 0 ? busy : evictable).add(connection)
  }

  /** From now on it counts for its client again. */
  function forgetCaller(connection: Connection): void {
    connection.caller = undefined
    if (connection.socket) kept?.release(connection.socket)
    countIn(groupsOf(connection.client), connection)
    offer(connection)
  }

  function withhold(connection: Connection): void {
    evictable.delete(connection)
    for (const group of connection.groups) {
      group.evictable.delete(connection)
      group.busy.delete(connection)
    }
  }

  /** The groups of a client: its own and its network's. */
  function groupsOf(client: Client | undefined): readonly Group[] {
    if (client === undefined) return []
    const { name, network } = client
    return [
      groupOf(`client ${name}`, maximumPerAddress),
      ...(network === undefined ? [] : [groupOf(`network ${network}`, maximumPerAddress * networkFactor)]),
    ]
  }

  const groupOf = (name: string, most: number): Group =>
    groups.get(name) ?? { name, maximum: most, size: 0, evictable: new Set(), busy: new Set() }

  /** Counts a connection in these groups and in no others. */
  function countIn(next: readonly Group[], connection: Connection): void {
    for (const group of connection.groups) {
      group.size -= 1
      if (group.size === 0) groups.delete(group.name)
    }
    for (const group of next) {
      group.size += 1
      groups.set(group.name, group)
    }
    connection.groups = next
  }

  /**
   * The connections that may be closed for a new one; the first is closed first.
   * @param full the group whose limit is reached; `undefined` for the limit of all connections
   */
  function candidates(full: Group | undefined): ReadonlySet<Connection> {
    if (full === undefined) return evictable.size > 0 ? evictable : busiest()
    const isNetwork = full.maximum > maximumPerAddress
    return isNetwork && full.evictable.size === 0 ? busiest(full) : full.evictable
  }

  /** The busy connections of the client with most of them. */
  function busiest(within?: Group): ReadonlySet<Connection> {
    let found: ReadonlySet<Connection> = new Set()
    for (const { busy, maximum } of groups.values()) {
      if (maximum > maximumPerAddress || busy.size <= found.size) continue
      const [first] = busy
      if (within === undefined || (first && within.busy.has(first))) found = busy
    }
    return found
  }

  /** It is ready for requests. */
  function onReady(socket: Socket): void {
    const connection = byTuple.get(tupleOf(socket))
    if (!connection) return
    connection.socket = socket
    bySocket.set(socket, connection)
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const connection = bySocket.get(request.socket)
    if (!connection) return
    connection.requests += 1
    if (connection.requests === 1) move(connection)
    response.once('close', () => {
      connection.requests -= 1
      if (connection.open && kept?.isOver(request.socket, response)) forgetCaller(connection)
      if (connection.requests > 0) return
      move(connection)
      if (isClosing) connection.socket?.destroySoon()
    })
  }

  function move(connection: Connection): void {
    withhold(connection)
    offer(connection)
  }

  function onTlsClientError(error: NodeJS.ErrnoException): void {
    anonymousLog.debug({ reason: error.code }, 'TLS handshake failed')
  }

  server.once('listening', () => ({ port } = server.address() as AddressInfo))
  // Before the server, which hands over connections of plain HTTP with this event.
  server.outer.prependListener('connection', onConnection)
  server.on('connection', onReady)
  server.on('request', onRequest)
  server.outer.on('tlsClientError', onTlsClientError)
  return {
    markAuthenticated(socket, caller, response) {
      const connection = bySocket.get(socket)
      // The next request of a proxy belongs to another user.
      if (!connection?.open || connection.client === undefined) return
      const name = nameOf(caller)
      if (keptSettings?.isFor(caller)) kept?.answer(socket, name, response)
      if (connection.caller === undefined || nameOf(connection.caller) !== name) {
        const user = groupOf(`user ${name}`, maximumPerAddress)
        if (isFull(user)) return
        withhold(connection)
        countIn([user], connection)
      }
      connection.caller = caller
    },
    markUnauthenticated(isGone) {
      for (const connection of byTuple.values()) {
        if (!connection.caller || !isGone(connection.caller)) continue
        forgetCaller(connection)
      }
    },
    count: () => count,
    acceptedAt: (socket) => bySocket.get(socket)?.acceptedAt,
    closeIdle() {
      isClosing = true
      for (const { raw, socket, requests } of byTuple.values()) {
        if (socket === undefined) raw.destroy()
        else if (requests === 0) socket.destroySoon()
      }
    },
    stop() {
      server.outer.off('connection', onConnection)
      server.off('connection', onReady)
      server.off('request', onRequest)
      server.outer.off('tlsClientError', onTlsClientError)
      closed.stop()
    },
  }
}

/** Names of hosts are not unique; uids are. */
export const nameOf = ({ uid, userName }: Caller) => uid ?? userName

const isFull = ({ size, maximum }: Group) => size >= maximum

/**
 * A key that a raw socket and the socket of its requests share; Node links the one of TLS between them only by private fields.
 * The local address is a part of it, since a client may use one port for connections to two addresses of this host.
 */
function tupleOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
