import { type X509Certificate, hash } from 'node:crypto'
import { request as askHttp } from 'node:http'
import { Agent, request as askHttps, type AgentOptions } from 'node:https'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, getCACertificates, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { certificatesIn } from './authorities.ts'
import { FingerprintDiffers, NoReply, ProxyUnreachable, TunnelRefused } from './failures.ts'
import { proxyLogin, type HostWay } from './proxy.ts'

/** Destination of a call. */
export interface Way {
  /** `https:` URL of the server; only its host and port count. */
  readonly url: string
  /** `http://host:port` of the proxy for this destination alone, if there is one. */
  readonly proxy?: string
  /** Proxies and authorities of all calls of this host; a proxy of the destination comes before them. */
  readonly hostWay?: HostWay
}

/** The proxy through which a destination is reached now; undefined for none. */
export const proxyOf = ({ url, proxy, hostWay }: Way): string | undefined => proxy ?? hostWay?.proxyFor(url)

/** The authorities that this system trusts, with those that it has got since this process began. */
export const systemAuthorities = (hostWay?: HostWay): string[] => [
  ...getCACertificates('system'),
  ...(hostWay?.authorities() ?? []),
]

/**
 * Conditions for the certificate of the server. With neither, one of the authorities of this system has to have signed it. A server that
 * makes its own certificate renews it with the same key: where that key is known, the new certificate is accepted.
 */
export interface Trust {
  /** Authorities, or certificates of the server itself, whose keys are known then; names and times count. PEM. */
  readonly ca?: string
  /** SHA-256 of the certificate as `AA:BB:…`; then neither names nor times count. */
  readonly fingerprint?: string
  /** The key that the certificate with that fingerprint had: SHA-256, hex, of its SubjectPublicKeyInfo. */
  readonly pinnedKey?: { known(): string | undefined; learn(key: string): void }
}

/** Bounds of the connections of an agent. */
export interface Connections {
  /** At the same time; further requests wait. One by default. */
  readonly most?: number
  /** An idle one is closed after this time; by default only by the server. */
  readonly idleMs?: number
}

/**
 * An agent that keeps its connections, directly or through the proxy. Nothing is sent before the certificate is accepted. `destroy` also
 * ends those that are being made.
 * @param timeoutMs for a new connection, with proxy and TLS
 */
export function createAgent(way: Way, trust: Trust, timeoutMs: number, connections: Connections = {}): Agent {
  const { most = 1, idleMs } = connections
  const { hostname, port } = new URL(way.url)
  const name = hostname.replace(/^\[|\]$/g, '')
  const target = { host: name, port: Number(port || '443') }
  const options: ConnectionOptions = {
    ...target,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    // `refusalOf` judges, before anything is sent.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  }
  // A connection that is idle between two requests is kept.
  const settings: AgentOptions = {
    keepAlive: true,
    maxSockets: most,
    maxCachedSessions: 0,
    ...(idleMs === undefined ? {} : { timeout: idleMs }),
  }
  const agent = new Agent(settings)
  const ended = new AbortController()
  const endOthers = agent.destroy.bind(agent)
  agent.destroy = () => {
    ended.abort(new Error('the connections were closed'))
    endOthers()
  }
  agent.createConnection = (_, done) => {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(timeoutMs)])
    const open = async () => {
      signal.throwIfAborted()
      const proxy = proxyOf(way)
      const tunnel = proxy === undefined ? undefined : await openTunnel(proxy, target, signal, way.hostWay)
      const trusted =
        trust.fingerprint === undefined ? { ca: trust.ca ?? systemAuthorities(way.hostWay) } : {}
      return secure(
        { ...options, ...trusted, ...(tunnel ? { socket: tunnel } : {}) },
        { ...trust, name },
        signal,
      )
    }
    open().then(
      (socket) => done?.(null, socket),
      (error: unknown) => done?.(error as Error, undefined as never),
    )
    return undefined
  }
  return agent
}

/**
 * A connection through a proxy, RFC 9110, 9.3.6.
 * @param proxy `http://` or `https://` URL, perhaps with a login
 * @param hostWay has the authorities that may have signed the certificate of a proxy of `https://`
 * @throws TunnelRefused, ProxyUnreachable
 */
export function openTunnel(
  proxy: string,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
  hostWay?: HostWay,
): Promise<Duplex> {
  const { protocol, hostname, port: proxyPort } = new URL(proxy)
  const isTls = protocol === 'https:'
  const login = proxyLogin(proxy)
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return new Promise((resolve, reject) => {
    const asked = (isTls ? askHttps : askHttp)({
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: proxyPort || (isTls ? 443 : 80),
      ...(isTls ? { ca: systemAuthorities(hostWay), minVersion: 'TLSv1.2' } : {}),
      method: 'CONNECT',
      path: authority,
      agent: false,
      signal,
      headers: { host: authority, ...(login === undefined ? {} : { 'proxy-authorization': login }) },
    })
    asked.once('connect', ({ statusCode = 0 }, socket) => {
      if (statusCode >= 200 && statusCode < 300) {
        resolve(socket)
        return
      }
      socket.destroy()
      reject(new TunnelRefused(statusCode))
    })
    // Some proxies answer a refusal as if it were no CONNECT.
    asked.once('response', (reply) => {
      reply.destroy()
      reject(new TunnelRefused(reply.statusCode ?? 0))
    })
    asked.once('error', (error: NodeJS.ErrnoException) => {
      reject(new ProxyUnreachable(signal.aborted ? 'no answer in time' : (error.code ?? error.message)))
    })
    asked.end()
  })
}

interface NamedTrust extends Trust {
  /** Of the server. */
  readonly name: string
}

function secure(options: ConnectionOptions, trust: NamedTrust, signal: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(options)
    const end = (error: Error) => {
      signal.removeEventListener('abort', late)
      socket.destroy()
      options.socket?.destroy()
      reject(error)
    }
    const late = () => end(new NoReply('no connection in time'))
    signal.addEventListener('abort', late)
    socket.once('error', end)
    socket.once('secureConnect', () => {
      const refusal = judge(socket, trust)
      if (refusal) {
        end(refusal)
        return
      }
      signal.removeEventListener('abort', late)
      socket.off('error', end)
      resolve(socket)
    })
  })
}

/** As `refusalOf`. An unreadable part of the certificate of a foreign server is a refusal too: nothing catches an error of a listener. */
function judge(socket: TLSSocket, trust: NamedTrust): Error | undefined {
  try {
    return refusalOf(socket, trust)
  } catch (error) {
    return error instanceof Error ? error : new Error('the certificate cannot be read', { cause: error })
  }
}

/** The refusal of the certificate of a connection; undefined where it is accepted. */
function refusalOf(socket: TLSSocket, { ca, fingerprint, pinnedKey, name }: NamedTrust): Error | undefined {
  const shown = socket.getPeerX509Certificate()
  if (fingerprint !== undefined) {
    const key = shown && keyOf(shown)
    if (key !== undefined && shown?.fingerprint256 === fingerprint.toUpperCase()) pinnedKey?.learn(key)
    else if (key === undefined || pinnedKey?.known() !== key)
      return new FingerprintDiffers(shown?.fingerprint256 ?? 'none')
    return undefined
  }
  if (socket.authorized || (shown && ca !== undefined && isRenewed(shown, ca, name))) return undefined
  // Node gives the code of OpenSSL here, a text.
  const code = String(socket.authorizationError)
  return Object.assign(new Error(`the certificate is not accepted: ${code}`), { code })
}

/** Whether a certificate has the key of one that is trusted, and is valid now for this name. */
function isRenewed(shown: X509Certificate, ca: string, name: string): boolean {
  const now = Date.now()
  const isNow = shown.validFromDate.getTime() <= now && now <= shown.validToDate.getTime()
  const isNamed = isIP(name) === 0 ? shown.checkHost(name) : shown.checkIP(name)
  if (!isNow || isNamed === undefined) return false
  const key = keyOf(shown)
  return certificatesIn(ca).some((trusted) => !trusted.ca && keyOf(trusted) === key)
}

const keyOf = ({ publicKey }: X509Certificate): string =>
  hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'hex')
