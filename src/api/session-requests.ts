import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import type { AppError } from '../errors/app-error.ts'
import type { Caller } from './access.ts'
import { refuseBody } from './body-refusal.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Aborted, with the refusal as its reason, when the session of the caller ends or loses its role while the request
     * is in flight; on the platform also when a key, a host or a project is gone, or the caller may not do this any more. A handler that
     * works for long, or whose reply has no end, has to end then. It is never aborted for root on the local socket.
     */
    readonly sessionEnd: AbortSignal
    /** Set together with `caller`, but for root on the local socket. */
    inFlight: InFlight | null
  }
}

/** The requests in flight whose caller has shown credentials. */
export interface SessionRequests {
  add(request: FastifyRequest, reply: FastifyReply, caller: Caller): void
  /** Ends the requests for which there is a refusal now. */
  end(refusalOf: (request: FastifyRequest, caller: Caller) => AppError | undefined): void
}

interface InFlight {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly caller: Caller
  /** Monotonic milliseconds. */
  readonly since: number
  /** Created when a handler uses its signal. */
  abort: AbortController | undefined
  ended: AppError | undefined
  timer: NodeJS.Timeout | undefined
}

// After the signal a handler has this long to reply, or to end its reply.
const answerMs = 5_000

/**
 * Ends requests when the session that they were accepted with ends: at once, with the refusal, if a handler uses `sessionEnd` or
 * the body is still arriving; all others as soon as they have lasted for `longMs`, by closing their connection. So the
 * request that ends its own session still gets its reply, and short replies are not cut off.
 */
export function addSessionRequests(app: FastifyInstance, longMs: number): SessionRequests {
  // By connection and not in one map by request: V8 keeps old copies of a map that changes with every request, and with
  // them finished requests; the garbage collection halved the throughput.
  const connections = new Map<Socket, InFlight[]>()

  app.decorateRequest('inFlight', null)
  app.decorateRequest('sessionEnd', {
    getter() {
      const entry = this.inFlight
      if (!entry) return new AbortController().signal
      entry.abort ??= new AbortController()
      if (entry.ended) entry.abort.abort(entry.ended)
      return entry.abort.signal
    },
  })

  /** Creates the list of a connection, which is removed when the connection closes. */
  function openConnection(socket: Socket): InFlight[] {
    const entries: InFlight[] = []
    connections.set(socket, entries)
    // A reply that waits behind another one of its connection gets no `close` event when the connection ends.
    socket.once('close', () => {
      connections.delete(socket)
      for (const { timer } of entries) clearTimeout(timer)
    })
    return entries
  }

  function endOne(entry: InFlight, refusal: AppError): void {
    const { request, reply, since } = entry
    const { raw } = request
    entry.ended = refusal
    entry.abort?.abort(refusal)
    const hasBegun = reply.raw.headersSent
    if (!raw.complete && !hasBegun) refuseBody(raw, reply.raw, refusal)
    const leftMs = longMs - (performance.now() - since)
    const isCutOff = hasBegun && !entry.abort
    entry.timer = setTimeout(() => raw.socket.destroy(), Math.max(leftMs, isCutOff ? 0 : answerMs)).unref()
  }

  return {
    add(request, reply, caller) {
      const entries = connections.get(request.socket) ?? openConnection(request.socket)
      const entry: InFlight = {
        ...{ request, reply, caller, since: performance.now() },
        ...{ abort: undefined, ended: undefined, timer: undefined },
      }
      request.inFlight = entry
      entries.push(entry)
      reply.raw.once('close', () => {
        clearTimeout(entry.timer)
        entries.splice(entries.indexOf(entry), 1)
      })
    },
    end(refusalOf) {
      for (const entry of [...connections.values()].flat()) {
        const refusal = entry.ended ? undefined : refusalOf(entry.request, entry.caller)
        if (refusal) endOne(entry, refusal)
      }
    },
  }
}
