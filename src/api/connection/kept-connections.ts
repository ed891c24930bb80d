import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Caller } from '../access.ts'

/** Which connections are kept open between rare requests, each of a caller of its own. */
export interface KeptSettings {
  /** Connections that are kept at once. */
  readonly maximum: number
  /** How long a kept connection may be idle, milliseconds. */
  readonly idleMs: number
  /** Whether the connections of a caller are kept up to the maximum, and closed after each reply beyond it. */
  readonly isFor: (caller: Caller) => boolean
}

/** The connections that are kept now. */
export interface KeptConnections {
  /**
   * Called for each request of such a caller, before the reply has begun. One connection of a caller is kept, while there are fewer than the
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

export function createKeptConnections({
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
