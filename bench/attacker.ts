import { request as requestHttp } from 'node:http'
import { request as requestTls } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

/** One of the attacks of `attacks.ts`. */
export type AttackName =
  'none' | 'pipelining' | 'one-byte chunks' | 'slow readers' | 'slow bodies' | 'half-open handshakes'

/** A server of a process, and where its other clients are. */
export interface Target {
  /** A port of the loopback, or a Unix socket. */
  readonly attacked: { readonly isTls: boolean } & ({ readonly port: number } | { readonly path: string })
  /** The port, and the path, of the pings. */
  readonly port: number
  readonly isTls: boolean
  readonly pingPath: string
}

export interface AttackOrder extends Target {
  /** `none` is the pings: a process that attacks would add the stops of its own event loop to them. */
  readonly attack: AttackName
  readonly seconds: number
}

export interface AttackResult {
  readonly pings: number
  readonly failedPings: number
  readonly pingP50Ms: number
  readonly pingP99Ms: number
}

const connections = 60
const attackerAddress = '127.3.3.4'
const otherAddress = '127.200.0.9'
const order = JSON.parse(process.argv[2] ?? '') as AttackOrder

const smallest = Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(3_000))
const body = (fields: string) =>
  `POST /v1/users/default/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${fields}\r\n\r\n`
const chunks = Buffer.from('1\r\n \r\n'.repeat(2_000))
/** The head of a record of TLS with a ClientHello of 512 bytes, and nothing of it. */
const halfHello = Buffer.from('16030102000100', 'hex')

const kinds: Readonly<Record<string, (socket: Socket) => void>> = {
  pipelining(socket) {
    socket.resume()
    sendOver(socket, smallest)
  },
  'one-byte chunks'(socket) {
    socket.resume()
    socket.write(body('Transfer-Encoding: chunked'))
    sendOver(socket, chunks)
  },
  'slow readers'(socket) {
    socket.pause()
    sendOver(socket, smallest)
  },
  'slow bodies'(socket) {
    socket.resume()
    socket.write(body('Content-Length: 100000'))
    const timer = setInterval(() => socket.write(' '), 1_000)
    socket.once('close', () => clearInterval(timer))
  },
}

function sendOver(socket: Socket, bytes: Buffer): void {
  const more = () => {
    while (!socket.destroyed) {
      if (!socket.write(bytes)) {
        socket.once('drain', more)
        return
      }
    }
  }
  more()
}

/** Opens a connection, and another one when it is closed: a flood does not end because a connection does. */
function attackOn(): void {
  const { attack, attacked } = order
  const place =
    'path' in attacked
      ? { path: attacked.path }
      : { host: '127.0.0.1', port: attacked.port, localAddress: attackerAddress }
  const isHalf = attack === 'half-open handshakes'
  const isTls = attacked.isTls && !isHalf
  const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false } as never) : connectTcp(place)
  socket.on('error', () => undefined)
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    if (isHalf) socket.write(halfHello)
    else kinds[attack]?.(socket)
  })
  socket.once('close', () => void setTimeout(attackOn, 50))
}

function ping(): Promise<number | undefined> {
  const { port, isTls, pingPath } = order
  const since = performance.now()
  return new Promise((resolve) => {
    const sent = (isTls ? requestTls : requestHttp)(
      {
        host: '127.0.0.1',
        port,
        path: pingPath,
        localAddress: otherAddress,
        rejectUnauthorized: false,
        agent: false,
        timeout: 10_000,
      },
      (reply) => {
        reply.resume()
        // The registry wants a password, which is an answer too; 429 and 503 are not.
        const isAnswered = reply.statusCode === 200 || reply.statusCode === 401
        reply.once('end', () => resolve(isAnswered ? performance.now() - since : undefined))
        reply.once('error', () => resolve(undefined))
      },
    )
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(undefined))
    sent.end()
  })
}

const times: number[] = []
let failedPings = 0
const end = performance.now() + order.seconds * 1_000
if (order.attack === 'none') await pingUntilEnd()
else {
  for (let index = 0; index < connections; index += 1) attackOn()
  await sleep(order.seconds * 1_000)
}

async function pingUntilEnd(): Promise<void> {
  while (performance.now() < end) {
    await sleep(100)
    const time = await ping()
    if (time === undefined) failedPings += 1
    else times.push(time)
  }
}

times.sort((one, other) => one - other)
const percentile = (part: number) =>
  times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 10_000
process.send?.({
  pings: times.length,
  failedPings,
  pingP50Ms: percentile(0.5),
  pingP99Ms: percentile(0.99),
} satisfies AttackResult)
