import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { createLog } from '../../src/system/log.ts'
import { generateKey, signCertificate } from '../../src/certificate/certificate.ts'
import { FedServer, type Timeouts } from '../../src/api/connection/fed-server.ts'
import type { TlsMaterial } from '../../src/system/tls-options.ts'

export const generous: Timeouts = {
  handshakeMs: 60_000,
  headersMs: 60_000,
  idleMs: 60_000,
  stalledMs: 60_000,
}

/** A fresh EC pair for localhost, as the daemon makes it. */
export async function makeMaterial(): Promise<TlsMaterial> {
  const key = generateKey()
  const now = Date.now()
  const cert = await signCertificate({
    key,
    names: { hostName: 'box', addresses: [] },
    now,
    buildDate: now - 1,
  })
  return { key: key.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
}

/** The daemon's TLS and timeouts around a handler, on a free port of both loopbacks. */
export async function startServer(
  material: TlsMaterial,
  handler: RequestListener,
  timeouts: Timeouts = generous,
): Promise<{ server: FedServer; port: number; stop: () => Promise<void> }> {
  const server = new FedServer({ material, timeouts }, handler)
  const raws = new Set<Duplex>()
  server.outer.on('connection', (raw: Duplex) => raws.add(raw))
  server.listen(0, '::')
  await once(server, 'listening')
  return {
    server,
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.close()
      for (const raw of raws) raw.destroy()
      await once(server, 'close')
    },
  }
}

/** A client connection, the received text and whether it is closed. */
export interface Client {
  readonly socket: Socket
  received: string
  closed: boolean
}

function remember(socket: Socket): Client {
  const client: Client = { socket, received: '', closed: false }
  socket.on('data', (chunk) => (client.received += chunk.toString()))
  socket.on('error', () => undefined)
  socket.on('close', () => (client.closed = true))
  return client
}

export async function openTcp(port: number, localAddress = '127.0.0.1'): Promise<Client> {
  const client = remember(connectTcp({ port, host: '127.0.0.1', localAddress }))
  await once(client.socket, 'connect')
  return client
}

export async function openTls(port: number, ca: string, localAddress = '127.0.0.1'): Promise<Client> {
  // The certificate names 127.0.0.1, whichever address the client comes from.
  const socket: TLSSocket = connectTls({ port, host: '127.0.0.1', ca, localAddress } as never)
  const client = remember(socket)
  await new Promise<void>((resolve) => socket.once('secureConnect', resolve).once('close', () => resolve()))
  return client
}

/** The free port that a daemon has taken, from its log. */
export const listeningPort = ({ lines }: Pick<ReturnType<typeof captureLog>, 'lines'>): number =>
  Number(lines.find(({ msg }) => msg === 'listening')?.port)

/** The daemon's log, kept as parsed lines. */
export function captureLog() {
  const lines: Record<string, unknown>[] = []
  const log = createLog('debug', {
    write: (line: string) =>
      void lines.push(JSON.parse(line.replace(/^<\d>/, '')) as Record<string, unknown>),
  })
  return { log, lines, texts: () => lines.map((line) => String(line.msg)) }
}
