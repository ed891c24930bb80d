import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { openTunnel, proxyOf, type Way } from '../outgoing/connection.ts'
import { NoReply, ProxyUnreachable } from '../outgoing/failures.ts'

/** Check of the way to a platform, step by step before it is used. Each step rejects with an error that `causeOfError` reads. */
export interface Probe {
  /** Addresses of the name that this host has to resolve, the proxy's where there is one; empty where it is an address. */
  resolve(): Promise<{ readonly name: string; readonly addresses: readonly string[] }>
  /** A connection, through the proxy where there is one, over which nothing was sent. */
  open(): Promise<Duplex>
  /** SHA-256, as `AA:BB:…`, of the certificate that is shown over a connection, which is then closed; nothing is accepted or sent. */
  showCertificate(connection: Duplex): Promise<string>
}

/** @param timeoutMs for each step */
export function createProbe(way: Way, timeoutMs: number): Probe {
  const platform = endOf(way.url, 443)
  const proxy = proxyOf(way)
  const first = proxy === undefined ? platform : endOf(proxy, proxy.startsWith('https:') ? 443 : 80)

  async function resolve() {
    const { host: name } = first
    if (isIP(name) !== 0) return { name, addresses: [] }
    const late = Object.assign(new Error('no answer in time'), { code: 'EAI_AGAIN' })
    try {
      const found = await inTime(lookup(name, { all: true }), timeoutMs, late)
      return { name, addresses: found.map(({ address }) => address) }
    } catch (error) {
      if (proxy === undefined) throw error
      throw new ProxyUnreachable((error as NodeJS.ErrnoException).code, { cause: error })
    }
  }

  function openDirectly(): Promise<Duplex> {
    const { promise, resolve: done, reject } = Promise.withResolvers<Duplex>()
    const socket = connect(platform)
    socket.once('connect', () => done(socket)).once('error', reject)
    return inTime(promise, timeoutMs, new NoReply('no connection in time')).catch((error: unknown) => {
      socket.destroy()
      throw error
    })
  }

  function showCertificate(connection: Duplex): Promise<string> {
    const { promise, resolve: done, reject } = Promise.withResolvers<string>()
    const servername = isIP(platform.host) === 0 ? { servername: platform.host } : {}
    const socket = connectTls({
      socket: connection,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ...servername,
      ALPNProtocols: ['http/1.1'],
    })
    socket.once('secureConnect', () => done(socket.getPeerX509Certificate()?.fingerprint256 ?? 'none'))
    // Also later ones, while the connection is closed.
    socket.on('error', reject)
    socket.once('close', () => reject(Object.assign(new Error('closed'), { code: 'EPROTO' })))
    return inTime(promise, timeoutMs, new NoReply('no certificate in time')).finally(() => {
      socket.destroy()
      connection.destroy()
    })
  }

  return {
    resolve,
    open: () =>
      proxy === undefined
        ? openDirectly()
        : openTunnel(proxy, platform, AbortSignal.timeout(timeoutMs), way.hostWay),
    showCertificate,
  }
}

function endOf(url: string, defaultPort: number): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || defaultPort) }
}

async function inTime<T>(work: Promise<T>, timeoutMs: number, late: Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late), timeoutMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
