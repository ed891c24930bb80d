import type { IncomingHttpHeaders } from 'node:http'
import type { Agent } from 'node:https'
import { isRecord, parseJson, type JsonObject } from '../../base/json.ts'
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
// Pools are read at the same time, each over two connections at most: those that are slow must not keep another one waiting.
const mostSockets = 512

/** @param trust who may have signed the certificates of all services */
export function createCloudHttp(trust: Trust): CloudHttp {
  // By origin: services of a cloud may be on machines of their own.
  const agents = new Map<string, Agent>()
  function agentOf({ origin }: URL): Agent {
    const known = agents.get(origin) ?? createAgent({ url: origin }, trust, connectMs, mostSockets)
    agents.set(origin, known)
    return known
  }

  return {
    async ask({ service, method, url, headers = {}, body, longest, signal }) {
      const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
      const reply = await exchange(agentOf(url), {
        ...{ method, url, signal },
        headers: {
          ...{ accept: 'application/json', 'user-agent': program.daemon },
          ...headers,
          ...(sent ? { 'content-type': 'application/json' } : {}),
        },
        ...(sent ? { body: sent } : {}),
        longest: (status) => (status < 300 ? longest : longestRefusal),
      }).catch((error: unknown) => {
        throw unavailable(`${service} ${reasonOf(error)}`, error)
      })
      const parsed = parseJson(reply.text)
      if (reply.status < 300 && !isRecord(parsed)) throw unavailable(`${service} answers with no JSON object`)
      return {
        ...{ status: reply.status, headers: reply.headers },
        body: isRecord(parsed) ? parsed : undefined,
      }
    },
    close() {
      for (const agent of agents.values()) agent.destroy()
      agents.clear()
    },
  }
}

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
  const { code } = error as NodeJS.ErrnoException
  return `cannot be reached (${code ?? 'no connection'})`
}
