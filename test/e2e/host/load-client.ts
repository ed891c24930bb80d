// A client in a process of its own, since it is in another network namespace: sends the same request again and again over
// new connections until its standard input ends, then prints the result.
import { readFileSync } from 'node:fs'
import { request, Agent } from 'node:https'
import { TLSSocket } from 'node:tls'
import type { LoadOrder, LoadSummary } from './load.ts'

const order = JSON.parse(process.argv[2]!) as LoadOrder
const ca = order.cacerts.map((file) => readFileSync(file, 'utf8'))
const outcomes: Record<string, number> = {}
const fingerprints: Record<string, number> = {}
let asking = true
let slowestMs = 0
let token = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => (token += chunk))
// The first line is the token; the end of input is the end of the load.
process.stdin.on('end', () => (asking = false))
while (!token.includes('\n')) await new Promise((resolve) => process.stdin.once('data', resolve))
token = token.trim()

function once(agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const headers = token ? { Authorization: token } : {}
    const asked = request(
      order.url,
      { ca, agent, headers, localAddress: order.from, timeout: 60_000 },
      (reply) => {
        const { socket } = reply
        const certificate =
          socket instanceof TLSSocket ? (socket.getPeerX509Certificate()?.fingerprint256 ?? 'none') : 'none'
        fingerprints[certificate] = (fingerprints[certificate] ?? 0) + 1
        reply.resume()
        reply.on('end', () => resolve(String(reply.statusCode)))
        reply.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
      },
    )
    asked.on('timeout', () => asked.destroy(Object.assign(new Error('timeout'), { code: 'TIMEOUT' })))
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    asked.end()
  })
}

async function client(): Promise<void> {
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  while (asking) {
    // A new connection needs a whole handshake: no session of an earlier one is offered.
    const agent = order.keepAlive ? kept : new Agent({ keepAlive: false, maxCachedSessions: 0 })
    const started = performance.now()
    const outcome = await once(agent)
    slowestMs = Math.max(slowestMs, performance.now() - started)
    if (!outcomes[outcome]) process.stdout.write(`${outcome}\n`)
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    if (!order.keepAlive) agent.destroy()
    await new Promise((resolve) => setTimeout(resolve, order.pauseMs))
  }
  kept.destroy()
}

await Promise.all(Array.from({ length: order.clients }, client))
const summary: LoadSummary = { outcomes, fingerprints, slowestMs }
process.stdout.write(`${JSON.stringify(summary)}\n`)
