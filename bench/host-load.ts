import { createPrivateKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, request, type RequestOptions } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { waitAfter } from '../src/uplink/client.ts'
import {
  addressOf,
  factsOf,
  type HostLoadArgs,
  type HostLoadOrder,
  type HostLoadResult,
  uidOf,
} from './hosts.ts'

// The hosts of the benchmarks of the platform: a process of its own, which gets orders from `platform-load.ts`. Each host has an address of its own.

interface Host {
  readonly index: number
  readonly agent: Agent
  token: string
  generation: number
}

interface Reply {
  readonly status: number
  readonly text: string
  readonly retryAfter?: string | undefined
  readonly isReused: boolean
}

// As a host: src/uplink/client.ts.
const timeoutMs = 20_000
const { certificate, privateKey, count } = JSON.parse(process.argv[2] ?? '') as HostLoadArgs
const key = createPrivateKey(privateKey)
const secureContext = createSecureContext({ ca: readFileSync(certificate) })
const hosts: readonly Host[] = Array.from({ length: count }, (_, index) => ({
  index,
  token: '',
  generation: 1,
  agent: new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 0 }),
}))

/** @param agent false for a connection of its own, without a session of an earlier one */
function send({ index, token }: Host, { port, method, path, body, agent, etag }: Call): Promise<Reply> {
  const text = body === undefined ? '' : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const options: RequestOptions & { secureContext: SecureContext } = {
      host: '127.0.0.1',
      port,
      method,
      path,
      agent,
      secureContext,
      servername: 'localhost',
      localAddress: addressOf(index),
      timeout: timeoutMs,
      headers: {
        ...(text === ''
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
        ...(token === '' ? {} : { authorization: token }),
      },
    }
    const sent = request(options)
    sent.on('response', (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          retryAfter: reply.headers['retry-after'],
          isReused: sent.reusedSocket,
        }),
      )
    })
    sent.on('timeout', () => sent.destroy(new Error('no reply in time')))
    sent.on('error', reject)
    sent.end(text)
  })
}
interface Call {
  readonly port: number
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  readonly body?: unknown
  readonly etag?: string
  readonly agent: Agent | false
}

const beat = (host: Host, port: number, agent: Agent | false) =>
  send(host, {
    port,
    agent,
    method: 'PATCH',
    path: `/v1/edgehosts/${uidOf(host.index)}/health`,
    body: { state: 'healthy', message: '', agentVersion: '1.3.0' },
  })

const report = (host: Host, port: number, change: number) =>
  send(host, {
    port,
    agent: false,
    method: 'PUT',
    path: `/v1/edgehosts/${uidOf(host.index)}`,
    body: factsOf(host.index, change),
  })

/** Both halves of a login. */
async function logIn(host: Host, port: number): Promise<Reply> {
  const edgeHostUid = uidOf(host.index)
  const post = (body: object) =>
    send(
      { ...host, token: '' },
      { port, method: 'POST', path: '/v1/auth/services/edge/login', body, agent: host.agent },
    )
  const first = await post({ edgeHostUid })
  if (first.status !== 401) return first
  const { nonce } = (JSON.parse(first.text) as { details: { nonce: string } }).details
  const content = `${encode({ alg: 'EdDSA', typ: 'edge-login+jwt' })}.${encode({ sub: edgeHostUid, nonce, gen: host.generation })}`
  const signature = sign(null, Buffer.from(content), key).toString('base64url')
  const second = await post({ edgeHostUid, edgeAuthToken: `${content}.${signature}` })
  if (second.status !== 200) return second
  const { Authorization, generation } = JSON.parse(second.text) as {
    Authorization: string
    generation: number
  }
  host.token = Authorization
  host.generation = generation
  return second
}
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

const outcomes = new Map<string, number>()
function note(outcome: string | number): void {
  outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1)
}
const noteError = (error: NodeJS.ErrnoException) => note(error.code ?? error.message)

/** A host that was away: it tries until its heartbeat is accepted, and waits as a host does. */
async function comeBack(host: Host, port: number): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    let retryAfter: string | undefined
    try {
      const login = await logIn(host, port)
      const last = login.status === 200 ? await beat(host, port, host.agent) : login
      note(last.status)
      if (last.status === 204) return
      ;({ retryAfter } = last)
    } catch (error) {
      noteError(error as NodeJS.ErrnoException)
    }
    await sleep(waitAfter(failures, Math.random(), retryAfter))
  }
}

/** Calls each of the first hosts, so many at once. */
async function eachOf(
  hostCount: number,
  atOnce: number,
  work: (host: Host) => Promise<unknown>,
): Promise<void> {
  const queue = hosts.slice(0, hostCount).values()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const host of queue) await work(host)
    }),
  )
}

const orders = {
  async logIn({ port, hostCount, atOnce }) {
    await eachOf(hostCount, atOnce, async (host) => {
      await comeBack(host, port)
      host.agent.destroy()
    })
  },
  async comeBack({ port, hostCount }) {
    for (const host of hosts) host.token = ''
    await Promise.all(hosts.slice(0, hostCount).map((host) => comeBack(host, port)))
  },
  async beatOnce({ port, hostCount, periodMs, change }) {
    const one = async (host: Host, work: () => Promise<Reply>) => {
      await sleep(Math.random() * periodMs)
      await work().then(({ status }) => note(status), noteError)
    }
    await Promise.all(
      hosts
        .slice(0, hostCount)
        .flatMap((host) => [
          one(host, () => beat(host, port, false)),
          ...((host.index + change) % 100 === 0 ? [one(host, () => report(host, port, change))] : []),
        ]),
    )
  },
  async beatKept({ port, hostCount }) {
    await eachOf(hostCount, 20, async (host) => {
      const { status, isReused } = await beat(host, port, host.agent)
      note(`${status}${isReused ? ' again' : ''}`)
    })
  },
  async askKept({ port, hostCount, etag }) {
    await eachOf(hostCount, 20, async (host) => {
      const path = `/v1/edgehosts/${uidOf(host.index)}/spc/download`
      const { status, isReused } = await send(host, { port, method: 'GET', path, agent: host.agent, etag })
      note(`${status}${isReused ? ' again' : ''}`)
    })
  },
  async close() {
    for (const { agent } of hosts) agent.destroy()
  },
} satisfies Record<HostLoadOrder['name'], (order: HostLoadOrder) => Promise<void>>

process.on('message', (order: HostLoadOrder) => {
  outcomes.clear()
  const startedAt = performance.now()
  void orders[order.name](order).then(() => {
    const result: HostLoadResult = {
      durationMs: performance.now() - startedAt,
      outcomes: Object.fromEntries(outcomes),
      tokens: hosts.map(({ token }) => token),
    }
    process.send?.(result)
  })
})
// The parent has died, so the result has no reader.
process.once('disconnect', () => process.exit(0))
process.send?.('ready')
