import type { X509Certificate } from 'node:crypto'
import { Agent, request, type IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { Failure } from './exit-codes.ts'
import type { HostTarget, SocketTarget, Target } from './target.ts'
import { changedKey, meetHost, publicKeyHash, readKnownHost, type TrustOptions } from './trust.ts'

/** One request of HTTP. */
export interface Ask {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Until the head of the reply; milliseconds. */
  readonly timeoutMs?: number
}

/** The way to a daemon. */
export interface Transport {
  /** @throws Failure when there is no answer, or the host is not trusted */
  send(ask: Ask): Promise<IncomingMessage>
  close(): void
}

const connectMs = 10_000
// A login may wait for its turn and for PAM's delay.
const answerMs = 60_000

export function createTransport(target: Target, trust: Omit<TrustOptions, 'target'>): Transport {
  // Each request on a connection of its own: one that is kept may be closed by the host while somebody types a password.
  const agent = new Agent({ keepAlive: false })
  if (target.kind === 'host') {
    // The request is written only into a connection whose key is known: until then nothing of it leaves.
    agent.createConnection = (_options, done) => {
      openTrusted(target, { target, ...trust }).then(
        (socket) => done?.(null, socket),
        (error: unknown) => done?.(error as Error, undefined as unknown as Duplex),
      )
      return undefined
    }
  }
  const where = target.kind === 'socket' ? { socketPath: target.path } : {}
  const name = target.kind === 'socket' ? 'localhost' : authority(target)
  return {
    send({ method, path, headers = {}, body, timeoutMs = answerMs }) {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
      const length = body === undefined ? {} : { 'content-length': String(body.length) }
      const asked = request({ agent, ...where, method, path, headers: { host: name, ...headers, ...length } })
      const late = setTimeout(() => asked.destroy(timeout()), timeoutMs)
      asked.once('response', (reply) => {
        clearTimeout(late)
        resolve(reply)
      })
      asked.once('error', (error) => {
        clearTimeout(late)
        reject(explain(error, target))
      })
      asked.end(body)
      return promise
    },
    close: () => agent.destroy(),
  }
}

const authority = ({ host, port }: HostTarget) =>
  `${host.includes(':') ? `[${host.replace(/%.*/, '')}]` : host}:${port}`

async function openTrusted(target: HostTarget, trust: TrustOptions): Promise<TLSSocket> {
  for (;;) {
    const known = readKnownHost(target)
    const { socket, certificate } = await openTls(target)
    if (known?.publicKey === publicKeyHash(certificate)) return socket
    socket.destroy()
    if (known) throw changedKey(target, known, certificate)
    // The server would not wait for the person; what comes next is a connection of its own.
    meetHost(certificate, trust)
  }
}

async function openTls({
  host,
  port,
}: HostTarget): Promise<{ socket: TLSSocket; certificate: X509Certificate }> {
  const { connect } = await import('node:tls')
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const socket = connect({
    host,
    port,
    minVersion: 'TLSv1.2',
    // Its name and who signed it say nothing about a host that makes its own certificate; its key does. The handshake
    // proves that the other side has it.
    rejectUnauthorized: false,
    ca: [],
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host.replace(/%.*/, '')) === 0 ? { servername: host } : {}),
  })
  const late = setTimeout(() => socket.destroy(timeout()), connectMs)
  socket.once('secureConnect', () => resolve(socket)).once('error', reject)
  try {
    await promise
    const certificate = socket.getPeerX509Certificate()
    if (!certificate) throw new Error('it showed no certificate')
    return { socket, certificate }
  } finally {
    clearTimeout(late)
    socket.off('error', reject)
  }
}

const timeout = () => Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })

/** Says in words, and as a command to type, what keeps the two apart. */
function explain(error: Error, target: Target): Failure {
  if (error instanceof Failure) return error
  return target.kind === 'socket' ? explainSocket(error, target) : explainHost(error, target)
}

const seeDaemon = `See how it is: systemctl status edgehostd
and why:       journalctl -u edgehostd -p warning -n 20
Start it:      systemctl start edgehostd`

function explainSocket(error: NodeJS.ErrnoException, { path }: SocketTarget): Failure {
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new Failure(
      'notLoggedIn',
      `permission denied: ${path} is root's. Use sudo, or log in: edgehostctl --host localhost login`,
    )
  if (error.code === 'ENOENT')
    return new Failure(
      'unreachable',
      `the daemon does not run, or api.socket.path is another place (${path} is not there).\n${seeDaemon}`,
    )
  if (error.code === 'ECONNREFUSED')
    return new Failure('unreachable', `the daemon does not run (${path}: ${error.code}).\n${seeDaemon}`)
  return new Failure('unreachable', `the daemon does not answer (${error.message}).\n${seeDaemon}`)
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens on that port',
  ENOTFOUND: 'nobody knows that name',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to its network',
  ETIMEDOUT: 'no answer in time',
  ECONNRESET: 'it closed the connection',
}

function explainHost(error: NodeJS.ErrnoException, { name, host, port }: HostTarget): Failure {
  const reason = reasons[error.code ?? ''] ?? error.message
  return new Failure(
    'unreachable',
    `${name} is not reachable: ${reason} (${host} port ${port}).\nOn that host: systemctl status edgehostd.socket edgehostd.service`,
  )
}
