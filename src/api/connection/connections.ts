import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { addressGroup } from '../../system/address.ts'
import type { Logger } from '../../system/log.ts'
import type { Lines } from '../../system/stranger-log.ts'
import { createTally } from '../../system/tally.ts'
import type { Caller, IsGone } from '../access.ts'
import { replyOn } from './reply-head.ts'

export interface ConnectionLimits {
  /** Open connections in all. */
  readonly maximum: number
  /** Open connections from one address; IPv6: from one /64. */
  readonly maximumPerAddress: number
  readonly log: Logger
  /** Takes the lines that callers without a session cause; without it the log does. */
  readonly strangers?: Lines | undefined
}

/** The open connections of a server, from the accepted TCP connection on. */
export interface Connections {
  /** A request on this socket brought a valid token: the connection is not closed in favour of others while that lasts. */
  markAuthenticated(socket: Socket, caller: Caller): void
  /** Connections whose caller is gone count as those without a login again. */
  forget(isGone: IsGone): void
  count(): number
  /** Ends those on which no request is in flight, also where none was ever sent or the handshake is not over. */
  closeIdle(): void
  /** Stops looking; open connections are left alone. */
  stop(): void
}

interface Connection {
  readonly raw: Socket
  /** After the handshake. */
  tls: TLSSocket | undefined
  readonly group: Group
  readonly key: string
  open: boolean
  /** Of the last request with a valid token. */
  caller: Caller | undefined
  /** In flight. */
  requests: number
}

interface Group {
  readonly name: string
  size: number
  /** Idle and unauthenticated, the longest idle first. */
  readonly evictable: Set<Connection>
  /** Unauthenticated with a request in flight, in the order of their begin. */
  readonly busy: Set<Connection>
}

/**
 * Caps the connections per address and in all. At a cap the connection that has been idle longest without a login,
 * one still in its handshake included, makes room for the new one; where there is none, the new one is closed.
 * So a client that holds many connections can keep out neither others nor, for long, itself.
 *
 * At the cap in all, where nobody is idle, the oldest request without a login gives way, of the address that has most
 * of them: a thousand bodies that trickle in from twenty addresses would else keep everybody out.
 */
export function limitConnections(
  server: Server,
  { maximum, maximumPerAddress, log, strangers = log }: ConnectionLimits,
): Connections {
  const groups = new Map<string, Group>()
  const evictable = new Set<Connection>()
  const byTuple = new Map<string, Connection>()
  const bySocket = new WeakMap<Socket, Connection>()
  let count = 0
  const closed = createTally((counts) =>
    log.warn(
      counts,
      "connections were closed at the limit of api.connections; see whose they are with: ss -tn state established '( sport = :5080 )'",
    ),
  )

  function onConnection(raw: Socket): void {
    if (raw.remoteAddress === undefined) {
      // The client has gone already.
      raw.destroy()
      return
    }
    const name = addressGroup(raw.remoteAddress)
    const full = (groups.get(name)?.size ?? 0) >= maximumPerAddress
    if (full || count >= maximum) {
      const [victim] = full ? (groups.get(name)?.evictable ?? []) : evictable.size > 0 ? evictable : busiest()
      if (!victim) {
        closed.add('refused')
        raw.destroy()
        return
      }
      closed.add('evicted')
      remove(victim)
      victim.raw.destroy()
    }
    const group = groups.get(name) ?? { name, size: 0, evictable: new Set(), busy: new Set() }
    groups.set(name, group)
    const connection = {
      ...{ raw, tls: undefined, group, key: tupleOf(raw) },
      ...{ open: true, caller: undefined, requests: 0 },
    }
    group.size += 1
    count += 1
    byTuple.set(connection.key, connection)
    offer(connection)
    raw.once('close', () => remove(connection))
  }

  function remove(connection: Connection): void {
    if (!connection.open) return
    connection.open = false
    withhold(connection)
    connection.group.size -= 1
    count -= 1
    if (connection.group.size === 0) groups.delete(connection.group.name)
    if (byTuple.get(connection.key) === connection) byTuple.delete(connection.key)
  }

  // Sets keep the order of insertion: whoever becomes idle, or busy, goes to the end.
  function offer(connection: Connection): void {
    if (!connection.open || connection.caller) return
    const { group, requests } = connection
    if (requests > 0) {
      group.busy.add(connection)
      return
    }
    evictable.add(connection)
    group.evictable.add(connection)
  }

  function withhold(connection: Connection): void {
    evictable.delete(connection)
    connection.group.evictable.delete(connection)
    connection.group.busy.delete(connection)
  }

  function busiest(): ReadonlySet<Connection> {
    let found: ReadonlySet<Connection> = new Set()
    for (const { busy } of groups.values()) if (busy.size > found.size) found = busy
    return found
  }

  function onSecureConnection(socket: TLSSocket): void {
    const connection = byTuple.get(tupleOf(socket))
    if (!connection) return
    connection.tls = socket
    bySocket.set(socket, connection)
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const connection = bySocket.get(request.socket)
    if (!connection) return
    connection.requests += 1
    if (connection.requests === 1) move(connection)
    response.once('close', () => {
      connection.requests -= 1
      if (connection.requests === 0) move(connection)
    })
  }

  function move(connection: Connection): void {
    withhold(connection)
    offer(connection)
  }

  function onTlsClientError(error: NodeJS.ErrnoException): void {
    strangers.debug({ reason: error.code }, 'TLS handshake failed')
  }

  server.on('connection', onConnection)
  server.on('secureConnection', onSecureConnection)
  server.on('request', onRequest)
  server.on('tlsClientError', onTlsClientError)
  return {
    markAuthenticated(socket, caller) {
      const connection = bySocket.get(socket)
      if (!connection) return
      connection.caller = caller
      withhold(connection)
    },
    forget(isGone) {
      for (const connection of byTuple.values()) {
        if (!connection.caller || !isGone(connection.caller)) continue
        connection.caller = undefined
        offer(connection)
      }
    },
    count: () => count,
    closeIdle() {
      for (const { raw, tls } of byTuple.values()) {
        if (tls === undefined) raw.destroy()
        else if (!replyOn(tls)) tls.destroySoon()
      }
    },
    stop() {
      server.off('connection', onConnection)
      server.off('secureConnection', onSecureConnection)
      server.off('request', onRequest)
      server.off('tlsClientError', onTlsClientError)
      closed.stop()
    },
  }
}

/**
 * What a raw socket and the TLS socket around it have in common; Node links the two by private fields only.
 * The address of this end belongs to it: a client may use one port towards two of our addresses.
 */
function tupleOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
