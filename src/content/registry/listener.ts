import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { backlog, listenOnHost } from '../../api/connection/listen.ts'
import { addressWithPort } from '../../base/address.ts'
import type { Logger } from '../../system/log.ts'

export interface ListenerOptions {
  /** Not listening yet. */
  readonly app: FastifyInstance
  readonly address: string
  readonly port: number
  /** After how long a port that could not be opened is tried again. */
  readonly retryMs: number
  readonly log: Logger
}

/** The port of the registry. One that is taken does not end the daemon, whose other work does not need it. */
export interface Listener {
  /** Opens the port, or begins to try it again and again. */
  open(): Promise<void>
  isListening(): boolean
  /** Port that is open, or that is tried. */
  port(): number
  /** Why it is not open; for operators. */
  problem(): string | undefined
  /** Accepts no more connections. Resolves when all are closed. */
  close(): Promise<void>
}

export function createListener({ app, address, port, retryMs, log }: ListenerOptions): Listener {
  const { server } = app
  let problem: string | undefined
  let retry: NodeJS.Timeout | undefined
  let isClosed = false

  async function open(): Promise<void> {
    if (isClosed) return
    try {
      await listenOnHost(address, listen)
    } catch (error) {
      const found = describeProblem(error as NodeJS.ErrnoException, address, port)
      if (found !== problem) log.error({ address, port, code: (error as NodeJS.ErrnoException).code }, found)
      problem = found
      retry = setTimeout(() => void open(), retryMs).unref()
      return
    }
    if (problem !== undefined) log.info({ address, port }, 'the port of the registry is open now')
    problem = undefined
  }

  function listen(host: string): Promise<unknown> {
    const listening = once(server, 'listening')
    server.listen({ host, port, backlog })
    return listening
  }

  return {
    open,
    isListening: () => server.listening,
    port: () => (server.address() as AddressInfo | null)?.port ?? port,
    problem: () => problem,
    async close() {
      isClosed = true
      clearTimeout(retry)
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

function describeProblem({ code, message }: NodeJS.ErrnoException, address: string, port: number): string {
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process listens there: find it with ss -ltnp 'sport = :${port}' and end it, or set content.registry.port`,
    EADDRNOTAVAIL:
      'this host does not have the address: see ip -brief address, or set content.registry.address',
    EACCES: 'the daemon may not open a port below 1024: set content.registry.port',
  }
  return `the registry cannot listen on ${addressWithPort(address, port)}: ${advice[code ?? ''] ?? message}`
}
