import type { IncomingHttpHeaders } from 'node:http'
import type { Agent } from 'node:https'
import { hasMoreValues, isRecord, parseJson, type JsonObject } from '../../base/json.ts'
import { program } from '../../base/program.ts'
import { AppError } from '../../errors/app-error.ts'
import { createAgent, type Trust } from '../../outgoing/connection.ts'
import { exchange } from '../../outgoing/exchange.ts'
import { ForeignReply, NoReply } from '../../outgoing/failures.ts'
import { platformErrors } from '../codes.ts'

/** A request to a service of a cloud. */
export interface CloudRequest {
  /** For messages: `Nova`. */
  readonly service: string
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: object
  /** How many bytes a reply may have. */
  readonly longest: number
  readonly signal: AbortSignal
}

export interface CloudReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Of a success an object; undefined for a reply without one. */
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
// Of all replies that are being received. They are outside of the heap.
const mostBytes = 67_108_864
// Of a reply. A page of servers has some ten thousand, one of ports twenty thousand. They are parsed at once, and take up to 200 bytes each.
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
          ...{ method, url, signal, onPart: count.add },
          headers: {
            ...{ accept: 'application/json', 'user-agent': program.daemon },
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

/** For a reply that is neither a success nor one that says what is wrong with the request. */
export const unusable = (service: string, { status }: Pick<CloudReply, 'status'>) =>
  unavailable(`${service} answers with status ${status}`)

function reasonOf(error: unknown): string {
  if (error instanceof NoReply) return 'does not answer in time'
  if (error instanceof ForeignReply) return `answers as no OpenStack does: ${error.message}`
  if (error instanceof TooMuch) return 'sends more than the platform takes at the same time'
  const { code } = error as NodeJS.ErrnoException
  return `cannot be reached (${code ?? 'no connection'})`
}
