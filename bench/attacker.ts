import { connect as connectTcp } from 'node:net'
import { request } from 'node:https'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'

/** One of the attacks of `attacks.ts`. */
export type AttackName =
  'pipelining' | 'one-byte chunks' | 'slow readers' | 'slow bodies' | 'half-open handshakes'

export interface AttackResult {
  readonly pings: number
  readonly failedPings: number
  readonly pingP99Ms: number
}

const connections = 60
const attackerAddress = '127.3.3.4'
const otherAddress = '127.200.0.9'
const [name = 'pipelining', portText = '', secondsText = ''] = process.argv.slice(2)
const port = Number(portText)

const smallest = Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(3_000))
const body = (fields: string) =>
  `POST /v1/users/default/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${fields}\r\n\r\n`
const chunks = Buffer.from('1\r\n \r\n'.repeat(2_000))
/** The head of a record of TLS with a ClientHello of 512 bytes, and nothing of it. */
const halfHello = Buffer.from('16030102000100', 'hex')

const kinds: Readonly<Record<string, (socket: TLSSocket) => void>> = {
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

function sendOver(socket: TLSSocket, bytes: Buffer): void {
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
  const again = () => void setTimeout(attackOn, 50)
  if (name === 'half-open handshakes') {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress: attackerAddress })
    socket.on('error', () => undefined)
    socket.once('connect', () => socket.write(halfHello))
    socket.once('close', again)
    return
  }
  const local = { host: '127.0.0.1', port, localAddress: attackerAddress, rejectUnauthorized: false }
  const socket = connectTls(local as never)
  socket.on('error', () => undefined)
  socket.once('secureConnect', () => kinds[name]?.(socket))
  socket.once('close', again)
}

function ping(): Promise<number | undefined> {
  const since = performance.now()
  return new Promise((resolve) => {
    const sent = request(
      {
        ...{ host: '127.0.0.1', port, path: '/v1/ping', localAddress: otherAddress },
        ...{ rejectUnauthorized: false, agent: false, timeout: 10_000 },
      },
      (reply) => {
        reply.resume()
        reply.once('end', () => resolve(reply.statusCode === 200 ? performance.now() - since : undefined))
        reply.once('error', () => resolve(undefined))
      },
    )
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(undefined))
    sent.end()
  })
}

for (let index = 0; index < connections; index += 1) attackOn()
const times: number[] = []
let failedPings = 0
const end = performance.now() + Number(secondsText) * 1_000
while (performance.now() < end) {
  await sleep(200)
  const time = await ping()
  if (time === undefined) failedPings += 1
  else times.push(time)
}
times.sort((one, other) => one - other)
process.send?.({
  pings: times.length,
  failedPings,
  pingP99Ms: times[Math.min(times.length - 1, Math.floor(times.length * 0.99))] ?? 10_000,
} satisfies AttackResult)
