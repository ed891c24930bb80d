import { type ClientRequest, Agent, request, type IncomingMessage } from 'node:http'
import { createHash, type X509Certificate } from 'node:crypto'
import { program } from '../base/program.ts'
import { Failure } from './exit-codes.ts'
import { readPrivate, writePrivate } from './folder.ts'
import type { HostTarget, SocketTarget, Target } from './target.ts'
import { isIP } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'

const checkMs = 500
/** Time without a byte from the daemon until a ping is sent. */
const quietMs = 5_000
/** Time for the daemon to answer the ping. */
const aliveMs = 5_000

/**
 * Detects a daemon that hangs: no byte of the reply has arrived for 5 seconds, and a ping is not answered in 5 more. A daemon
 * that only needs long for a reply, as for a login or a verification of the trail, answers the ping.
 * @param isAlive whether a ping is answered within `aliveMs`
 * @param onHang called once
 */
function watchReply(asked: ClientRequest, isAlive: () => Promise<boolean>, onHang: () => void): void {
  let seen = 0
  let quietSince = 0
  let timer: NodeJS.Timeout | undefined
  const received = () => asked.socket?.bytesRead ?? 0
  const check = async () => {
    if (received() !== seen) note()
    else if (performance.now() - quietSince >= quietMs) {
      const answers = await isAlive()
      if (asked.closed) return
      if (!answers && received() === seen) {
        onHang()
        return
      }
      note()
    }
    timer = setTimeout(() => void check(), checkMs)
  }
  const note = () => {
    seen = received()
    quietSince = performance.now()
  }
  // Opening a connection has a limit of its own.
  asked.once('socket', () => {
    note()
    timer = setTimeout(() => void check(), checkMs)
  })
  asked.once('close', () => clearTimeout(timer))
}

/** A host whose key was accepted. The key stays the same when the certificate is renewed. */
interface KnownHost {
  /** SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex. */
  readonly publicKey: string
  /** SHA-256 of the certificate at that time, as `AA:BB:...`. */
  readonly fingerprint: string
  readonly acceptedAt: string
}

interface TrustOptions {
  readonly target: HostTarget
  /** From `--fingerprint`. */
  readonly expected: string | undefined
  /** Asks the user; `undefined` when there is no terminal. */
  readonly ask: (question: string) => string | undefined
  readonly say: (text: string) => void
}

/** SHA-256 of the public key, hex. */
function publicKeyHash(certificate: X509Certificate): string {
  const der = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('hex')
}

/** The stored key of a host; `undefined` for an unknown host. */
function readKnownHost({ keyFile }: HostTarget): KnownHost | undefined {
  return readPrivate(keyFile) as KnownHost | undefined
}

/** The failure for a host whose key has changed. */
function changedKey({ name }: HostTarget, known: KnownHost, { fingerprint256 }: X509Certificate): Failure {
  return new Failure(
    'untrusted',
    `THE PUBLIC KEY OF ${name} HAS CHANGED since ${known.acceptedAt.slice(0, 10)}. Nothing was sent.
Either the ${program.noun} was reinstalled, or another machine intercepts the connection.
The SHA-256 fingerprint of the certificate is now
  ${fingerprint256}
${compare}
If they match, remove the old key and connect again: ${program.ctl} forget ${name}`,
  )
}

/**
 * Accepts the key of an unknown host and stores it, if the fingerprint is the given one or the user confirms it.
 * @throws Failure untrusted
 */
function trustNewHost(certificate: X509Certificate, { target, expected, ask, say }: TrustOptions): void {
  const { fingerprint256: fingerprint } = certificate
  if (expected !== undefined) {
    if (bare(expected) !== bare(fingerprint))
      throw new Failure(
        'untrusted',
        `the fingerprint of the certificate of ${target.name} is not the one of --fingerprint; it is\n  ${fingerprint}\nNothing was sent. ${compare}`,
      )
  } else {
    const introduction = `The ${program.noun} ${target.name} is not known yet. The SHA-256 fingerprint of its certificate is\n  ${fingerprint}\n${compare}`
    const answer = ask(`${introduction}\nDo they match? [y/N] `)
    if (answer === undefined)
      throw new Failure(
        'untrusted',
        `${introduction}\nThere is no terminal to confirm it on. If they match, add: --fingerprint ${fingerprint}`,
      )
    if (!/^\s*y(es)?\s*$/i.test(answer))
      throw new Failure('untrusted', `the ${program.noun} was not accepted; nothing was sent`)
  }
  const known: KnownHost = {
    publicKey: publicKeyHash(certificate),
    fingerprint,
    acceptedAt: new Date().toISOString(),
  }
  writePrivate(target.keyFile, known)
  say(`The key of ${target.name} has been saved.`)
}

const compare =
  program.noun === 'host'
    ? `Compare it with the fingerprint on the console of the host: above the login prompt, or in sudo ${program.ctl} status.`
    : `Compare it with the fingerprint that this shows on the machine of the platform: sudo ${program.ctl} status.`

const bare = (fingerprint: string) =>
  fingerprint
    .replace(/^sha-?256[:=]/i, '')
    .replaceAll(/[:\s]/g, '')
    .toUpperCase()

/** An HTTP request. */
export interface Ask {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | BodySource
  /** Milliseconds until the header of the reply must have arrived; for a body that is a stream from its end on. */
  readonly timeoutMs?: number
  /** Whether the connection may be one that was used before and is kept for later. */
  readonly isKept?: boolean
}

/** A body that is sent as a stream. */
export interface BodySource {
  readonly sizeBytes: number
  /** Called for each attempt to send it. */
  open(): Readable
}

/** Sends requests to a daemon. */
export interface Transport {
  /** @throws Failure when there is no answer, or the host is not trusted */
  send(ask: Ask): Promise<IncomingMessage>
  close(): void
}

const connectMs = 10_000
// A login may wait for its turn and for PAM's delay.
const answerMs = 60_000

export function createTransport(target: Target, trust: Omit<TrustOptions, 'target'>): Transport {
  const ending = new AbortController()
  // Each request has its own connection, since the host may close an idle one while a password is typed.
  const agent = new Agent({ keepAlive: false })
  // For many requests in a row, which would need as many handshakes.
  const keptAgent = new Agent({ keepAlive: true })
  for (const each of [agent, keptAgent]) {
    if (target.kind !== 'host') break
    // The request is sent only on a connection whose key is known.
    each.createConnection = (_options, done) => {
      openTrusted(target, { target, ...trust }, ending.signal).then(
        (socket) => done?.(null, socket),
        (error: unknown) => done?.(error as Error, undefined as unknown as Duplex),
      )
      return undefined
    }
  }
  const where = target.kind === 'socket' ? { socketPath: target.path } : {}
  const name = target.kind === 'socket' ? 'localhost' : authority(target)

  const isAlive = () => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const ping = request({ agent, ...where, path: program.ping, headers: { host: name } })
    const late = setTimeout(() => resolve(false), aliveMs)
    // A refusal is an answer too. An error of the connection is reported by the request itself.
    ping.once('response', () => resolve(true)).once('error', () => resolve(true))
    ping.end()
    return promise.finally(() => {
      clearTimeout(late)
      ping.destroy()
    })
  }

  return {
    send({ method, path, headers = {}, body, timeoutMs = answerMs, isKept = false }) {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
      const sizeBytes = Buffer.isBuffer(body) ? body.length : body?.sizeBytes
      const length = sizeBytes === undefined ? {} : { 'content-length': String(sizeBytes) }
      const asked = request({
        agent: isKept ? keptAgent : agent,
        ...where,
        method,
        path,
        headers: { host: name, ...headers, ...length },
      })
      let late: NodeJS.Timeout | undefined
      const beginWaiting = () => {
        late = setTimeout(() => asked.destroy(timeout(timeoutMs)), timeoutMs)
      }
      const isStreamed = body !== undefined && !Buffer.isBuffer(body)
      if (isStreamed) asked.once('finish', beginWaiting)
      else beginWaiting()
      let answering: IncomingMessage | undefined
      watchReply(asked, isAlive, () => (answering ?? asked).destroy(describeHang(target)))
      asked.once('response', (reply) => {
        clearTimeout(late)
        answering = reply
        resolve(reply)
      })
      asked.once('error', (error) => {
        clearTimeout(late)
        reject(explain(error, target))
      })
      // A connection may close without an error and without a reply, as when the server switches to another protocol. After a
      // reply this has no effect.
      asked.once('close', () => {
        clearTimeout(late)
        reject(explain(new Error('the connection was closed without a reply'), target))
      })
      if (isStreamed) sendStream(asked, body.open(), body.sizeBytes)
      else asked.end(body)
      return promise
    },
    close() {
      ending.abort()
      agent.destroy()
      keptAgent.destroy()
    },
  }
}

/**
 * Sends a body of a known size. The request ends with its last byte: a host that has all of them may reply before the stream ends, and
 * a request that never ends would keep its connection for ever. A reply before the last byte is a refusal: no more is sent then, and
 * the connection is closed after it.
 */
function sendStream(asked: ClientRequest, body: Readable, sizeBytes: number): void {
  let leftBytes = sizeBytes
  asked.once('response', (reply: IncomingMessage) => {
    if (leftBytes <= 0) return
    body.destroy()
    reply.once('close', () => asked.destroy())
  })
  asked.once('close', () => body.destroy())
  body.once('error', (error) => asked.destroy(error))
  body.pipe(asked)
  body.on('data', ({ length }: Buffer) => {
    leftBytes -= length
    if (leftBytes <= 0) asked.end()
  })
}

const authority = ({ host, port }: HostTarget) =>
  `${host.includes(':') ? `[${host.replace(/%.*/, '')}]` : host}:${port}`

async function openTrusted(target: HostTarget, trust: TrustOptions, signal: AbortSignal): Promise<TLSSocket> {
  for (;;) {
    const known = readKnownHost(target)
    const { socket, certificate } = await openTls(target, signal)
    if (known?.publicKey === publicKeyHash(certificate)) return socket
    socket.destroy()
    if (known) throw changedKey(target, known, certificate)
    // The server would not wait for the user's answer, so the next round opens a new connection.
    trustNewHost(certificate, trust)
  }
}

async function openTls(
  target: HostTarget,
  signal: AbortSignal,
): Promise<{ socket: TLSSocket; certificate: X509Certificate }> {
  const { host, port } = target
  const { connect } = await import('node:tls')
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const socket = connect({
    host,
    port,
    minVersion: 'TLSv1.2',
    // A host makes its own certificate, so neither its name nor its issuer proves anything; its key does. The handshake
    // proves that the other side has the key.
    rejectUnauthorized: false,
    ca: [],
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host.replace(/%.*/, '')) === 0 ? { servername: host } : {}),
  })
  const giveUp = () => socket.destroy(socket.connecting ? timeout(connectMs) : describeHang(target))
  const late = setTimeout(giveUp, connectMs)
  const end = () => socket.destroy()
  signal.addEventListener('abort', end)
  socket.once('secureConnect', () => resolve(socket)).once('error', reject)
  try {
    await promise
    const certificate = socket.getPeerX509Certificate()
    if (!certificate) throw new Error(`the ${program.noun} presented no certificate`)
    return { socket, certificate }
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', end)
    socket.off('error', reject)
  }
}

const timeout = (ms: number) =>
  Object.assign(new Error(`no answer within ${ms / 1_000} seconds`), { code: 'ETIMEDOUT' })

/** The failure for an error of the connection, with a command that helps. */
function explain(error: Error, target: Target): Failure {
  if (error instanceof Failure) return error
  return target.kind === 'socket' ? explainSocket(error, target) : explainHost(error, target)
}

/** The failure for a daemon that never answers; the kernel still accepts connections for it. */
function describeHang(target: Target): Failure {
  const silence = `has sent nothing for ${(quietMs + aliveMs) / 1_000} seconds`
  return new Failure(
    'unreachable',
    target.kind === 'socket'
      ? `the daemon hangs: it has accepted the connection, but ${silence} (${target.path}).\n${seeDaemon('restart')}`
      : `the daemon on ${target.name} hangs: it has accepted the connection, but ${silence}.\nOn that ${program.noun}: systemctl restart ${program.daemon}; for the cause: journalctl -u ${program.daemon} -p warning -n 20`,
  )
}

const seeDaemon = (verb: 'start' | 'restart') => `Its state: systemctl status ${program.daemon}
The cause: journalctl -u ${program.daemon} -p warning -n 20
To ${verb}: systemctl ${verb} ${program.daemon}`

function explainSocket(error: NodeJS.ErrnoException, { path }: SocketTarget): Failure {
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new Failure(
      'notLoggedIn',
      `permission denied: only root may open ${path}. Use sudo, or log in: ${program.ctl} --host localhost login`,
    )
  if (error.code === 'ENOENT')
    return new Failure(
      'unreachable',
      `the daemon is not running on this machine, or its api.socket.path is not ${path}, which does not exist.\nFor another ${program.noun}: ${program.ctl} --host HOST …\n${seeDaemon('start')}`,
    )
  if (error.code === 'ECONNREFUSED')
    return new Failure(
      'unreachable',
      `the daemon is not running (${path}: connection refused).\n${seeDaemon('start')}`,
    )
  return new Failure('unreachable', `the daemon does not answer (${error.message}).\n${seeDaemon('restart')}`)
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused; no program listens on that port',
  ENOTFOUND: 'the name cannot be resolved',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: `no route to the ${program.noun}`,
  ENETUNREACH: 'no route to its network',
  ECONNRESET: `the ${program.noun} closed the connection`,
}

function explainHost(error: NodeJS.ErrnoException, { name, host, port }: HostTarget): Failure {
  const reason = reasons[error.code ?? ''] ?? error.message
  return new Failure(
    'unreachable',
    `${name} is not reachable: ${reason} (${host} port ${port}).\nOn that ${program.noun}: systemctl status ${program.daemon}.socket ${program.daemon}.service`,
  )
}
