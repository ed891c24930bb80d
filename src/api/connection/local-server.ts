import type { IncomingMessage, Server, ServerResponse, RequestListener } from 'node:http'
import { type Socket, connect } from 'node:net'
import { lstat, mkdir, unlink } from 'node:fs/promises'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { StartError } from '../../errors/start-error.ts'
import type { Logger } from '../../system/log.ts'
import { createParserErrorReply } from '../errors.ts'
import { apiReplies } from '../replies.ts'
import { localAddress } from '../../base/address.ts'
import { localPeer } from './peer.ts'
import { FedServer, type Flow, type Timeouts } from './fed-server.ts'

/** Returns a function that finds the current reply on a socket of a server: the first one that has not ended. */
export function watchReplies(server: Server): (socket: Socket) => ServerResponse | undefined {
  const replies = new WeakMap<Socket, Set<ServerResponse>>()
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const known = replies.get(socket)
    const ofSocket = known ?? new Set()
    if (!known) replies.set(socket, ofSocket)
    ofSocket.add(response)
    response.once('close', () => ofSocket.delete(response))
  })
  return (socket) => replies.get(socket)?.values().next().value
}

interface LocalServerOptions {
  /** Path of the socket; empty for no socket. */
  readonly path: string
  readonly timeouts: Timeouts
  /** The flow of all servers of this process; the default is one of its own. */
  readonly flow?: Flow
  readonly log: Logger
}

/**
 * The API for root on this host: plain HTTP over a Unix socket that no other user may open, unix(7). Its clients need no token
 * and have no limits of rate or number.
 */
export interface LocalServer {
  /**
   * Accepts connections. The socket of a killed daemon is replaced.
   * @throws StartError when the socket cannot be created, or another process listens on it
   */
  listen(handler: RequestListener): Promise<void>
  /** Whether this server has accepted a connection; nothing that a client sends can change that. */
  hasAccepted(socket: Socket): boolean
  /** Accepts no more connections, and resolves when the requests in flight are answered and the socket is removed. */
  close(): Promise<void>
  /** Closes all connections that are still open. */
  closeConnections(): void
}

// connect(2) needs write permission.
const othersNothing = 0o177

export function createLocalServer({ path, timeouts, flow, log }: LocalServerOptions): LocalServer {
  const open = new Set<Socket>()
  const accepted = new WeakSet<Socket>()
  const server = new FedServer({ timeouts, turnNameOf: () => localAddress, ...(flow ? { flow } : {}) })
  const replyOn = watchReplies(server)
  let isClosing = false
  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.on(
    'clientError',
    createParserErrorReply({ lines: log, replies: apiReplies, peerOf: () => localPeer, replyOn }),
  )
  // Node's own closeIdleConnections() skips connections without any request yet.
  const endIdle = () => {
    for (const socket of open) if (!replyOn(socket)) socket.destroySoon()
  }
  server.on('request', (_request, response) => {
    response.once('close', () => {
      if (isClosing) endIdle()
    })
  })

  return {
    async listen(handler) {
      if (path === '') return
      await makeRoom(path)
      server.on('request', handler)
      const listening = once(server, 'listening')
      // listen() creates the socket before it returns, so no other code of the daemon runs with this umask.
      const umask = process.umask(othersNothing)
      try {
        server.listen({ path })
      } finally {
        process.umask(umask)
      }
      await listening.catch((error: unknown) => {
        throw refuseBecause(path, error)
      })
    },
    hasAccepted: (socket) => accepted.has(socket),
    async close() {
      if (!server.listening) return
      isClosing = true
      const closed = once(server, 'close')
      // Node also removes the file of the socket.
      server.close()
      endIdle()
      await closed
    },
    closeConnections: () => server.closeAllConnections(),
  }
}

/** Creates the folder if it is missing, and removes the socket of a dead process. */
async function makeRoom(path: string): Promise<void> {
  const folder = dirname(path)
  // Not recursive: Node loops for ever if a parent is not a folder.
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw refuseBecause(path, error)
  })
  const found = await lstat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw refuseBecause(path, error)
    return undefined
  })
  if (found === undefined) return
  if (!found.isSocket()) {
    throw new StartError(
      `${path} exists and is not a socket: see ls -l ${path} and move it away, or set api.socket.path`,
    )
  }
  if (await isAnswered(path)) {
    throw new StartError(
      `another process listens on ${path}: find it with ss -lxp src ${path} and end it, or set api.socket.path`,
    )
  }
  await unlink(path).catch((error: unknown) => {
    throw refuseBecause(path, error)
  })
}

/** Whether a process listens: the kernel refuses connections to the socket of a dead process. */
async function isAnswered(path: string): Promise<boolean> {
  const socket = connect({ path })
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return false
    // EAGAIN: the queue of the listening process is full.
    if (code === 'EAGAIN') return true
    throw refuseBecause(path, error)
  } finally {
    socket.destroy()
  }
}

const refuseBecause = (path: string, error: unknown) =>
  new StartError(
    `the local socket ${path} cannot be created (${(error as NodeJS.ErrnoException).code ?? String(error)}): ` +
      `see namei -l ${dirname(path)} and df -h ${dirname(path)}, or set api.socket.path to another path, or to "" for no socket`,
    { cause: error },
  )
