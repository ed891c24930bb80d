// A check of a connection, stage by stage as it is made: each with its time, the first failure with the next thing to do. Nothing but an
// HTTP GET of /v2/ (registry) or of the greeting (platform) is sent.

import { get as getHttp, type IncomingMessage } from 'node:http'
import { get as getHttps } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { addressWithPort } from '../base/address.ts'
import { refusedField } from '../errors/refused-field.ts'
import { systemReason } from '../errors/system-reason.ts'
import { openTunnel, proxyOf, systemAuthorities } from '../outgoing/connection.ts'
import { ProxyUnreachable, TunnelRefused } from '../outgoing/failures.ts'
import { proxyShown, type HostWay } from '../outgoing/proxy.ts'
import { causeOfError } from '../uplink/cause.ts'
import { createPlatformClient, type PlatformClientOptions } from '../uplink/client.ts'
import { createProbe } from '../uplink/probe.ts'
import { NotResolved, nextForName, type Connectivity, type Question } from './connectivity.ts'
import { parseMtu, parsePing } from './probe-output.ts'
import type { CheckKind, CheckStage, ConnectivityCheck } from './schemas.ts'
import { familyOf, parseTarget, type Target } from './target.ts'

interface CheckOptions {
  readonly connectivity: Connectivity
  /** How the platform of this host is reached; undefined without one. */
  readonly platformWay: () => Promise<PlatformClientOptions | undefined>
  /** Proxies and authorities that this host has for all calls. */
  readonly hostWay?: HostWay
  readonly monotonic: () => number
  readonly now: () => number
}

export interface CheckQuestion extends Omit<Question, 'target'> {
  readonly kind: CheckKind
  /** Absent only for the platform of this host. */
  readonly target?: string | undefined
}

/** Checks a connection. @throws AppError BadRequest, ToolMissing, DiagnosisBusy, NotReady */
export type Check = (question: CheckQuestion) => Promise<ConnectivityCheck>

/** A stage has failed. The message says what, `next` what to do. */
class StageFailed extends Error {
  override readonly name = 'StageFailed'
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}

/** What the parts of a check share. */
interface Work {
  /** Adds a stage to the reply. @param tell the message where it succeeds */
  readonly stage: <T>(name: string, work: () => Promise<T>, tell: (found: T) => string) => Promise<T>
  readonly question: Question
}

const connectMs = 5_000
const mostAddresses = 3
/** Bytes of the headers of IP and ICMP. */
const headerBytes = { 4: 28, 6: 48 } as const
/** Every link has to take this much: RFC 791 and RFC 8200. */
const leastMtu = { 4: 576, 6: 1_280 } as const
const usualMtu = 1_500

export function createCheck({ connectivity, platformWay, hostWay, monotonic, now }: CheckOptions): Check {
  return (question) => connectivity.inPlace(() => check(question))

  async function check({ kind, target = '', ...question }: CheckQuestion): Promise<ConnectivityCheck> {
    const stages: CheckStage[] = []
    async function stage<T>(name: string, work: () => Promise<T>, tell: (found: T) => string): Promise<T> {
      const startedAt = monotonic()
      const add = (status: CheckStage['status'], message: string) =>
        stages.push({ name, status, durationMs: Math.round(monotonic() - startedAt), message })
      try {
        const found = await work()
        add('ok', tell(found))
        return found
      } catch (error) {
        if (error instanceof StageFailed) add('failed', error.message)
        throw error
      }
    }
    const work = { stage, question: { ...question, target } }
    try {
      const next = kind === 'platform' ? await checkPlatform(work) : await checkTarget(kind, work)
      return { target, kind, isOk: true, stages, ...(next === undefined ? {} : { next }) }
    } catch (error) {
      question.signal.throwIfAborted()
      if (!(error instanceof StageFailed)) throw error
      return { target, kind, isOk: false, stages, next: error.next }
    }
  }

  async function checkTarget(kind: CheckKind, work: Work): Promise<string | undefined> {
    const target = parseTarget(work.question.target, 'target')
    // As the calls of this host and pulls of its runtimes go. The proxy resolves the name.
    const isSecure = kind === 'tls' || (kind === 'registry' && target.scheme !== 'http')
    const proxy = isSecure ? hostWay?.proxyFor(urlOf(target, 443)) : undefined
    if (proxy !== undefined) return checkThroughProxy(kind, target, proxy, work)
    const addresses = await work.stage(
      'dns',
      () =>
        connectivity.resolve(target.host, work.question).catch((error: unknown) => {
          if (!(error instanceof NotResolved)) throw error
          throw new StageFailed(error.message, nextForName(target.host))
        }),
      (found) =>
        found[0] === target.host ? `${target.host} is an address` : `${target.host} is ${found.join(', ')}`,
    )
    if (kind === 'mtu') return checkMtu(addresses[0] ?? '', work)
    if (kind === 'dns') return undefined
    const isPlain = target.scheme === 'http' && kind === 'registry'
    const port = portOf(target, kind)
    const { socket, address } = await work.stage(
      'tcp',
      () => openAny(addresses.slice(0, mostAddresses), port, work.question.signal),
      (opened) => `${addressWithPort(opened.address, port)} accepts connections`,
    )
    try {
      if (kind === 'tcp') return undefined
      const asked = { host: target.host, port, isTls: !isPlain, to: { address } }
      if (isPlain) return await checkRegistry(asked, work)
      const next = await checkTls(socket, target.host, work)
      if (kind === 'tls') return next
      return (await checkRegistry(asked, work)) ?? next
    } finally {
      socket.destroy()
    }
  }

  /** @returns the next thing to do where the certificate is not accepted */
  async function checkTls(connection: Duplex, host: string, { stage }: Work): Promise<string | undefined> {
    const { problem } = await stage(
      'tls',
      () => openTls(connection, host, systemAuthorities(hostWay)),
      (found) => found.said,
    )
    return problem === undefined
      ? undefined
      : `programs of this host do not accept the certificate (${problem}): give them its authority, or correct the server`
  }

  async function checkThroughProxy(
    kind: CheckKind,
    target: Target,
    proxy: string,
    work: Work,
  ): Promise<string | undefined> {
    const { host } = target
    const port = portOf(target, kind)
    const { stage, question } = work
    const open = () =>
      openTunnel(
        proxy,
        { host, port },
        AbortSignal.any([question.signal, AbortSignal.timeout(connectMs)]),
        hostWay,
      )
    const shown = new URL(proxyShown(proxy)).host
    const connection = await stage(
      'route',
      () =>
        open().catch((error: unknown) => {
          question.signal.throwIfAborted()
          const isRefused = error instanceof TunnelRefused
          if (!isRefused && !(error instanceof ProxyUnreachable)) throw error
          throw new StageFailed(
            isRefused
              ? `the proxy ${shown} answers CONNECT with ${error.status}`
              : `the proxy ${shown} cannot be reached: ${error.message.slice(0, 200)}`,
            isRefused && error.status === 407
              ? 'the proxy wants another login: edgehostctl configuration set --https-proxy URL --password-file FILE'
              : 'see edgehostctl configuration get, and the log of the proxy',
          )
        }),
      () => `${addressWithPort(host, port)} accepts connections through the proxy ${shown}`,
    )
    try {
      const next = await checkTls(connection, host, work)
      if (kind === 'tls') return next
      return (await checkRegistry({ host, port, isTls: true, to: { open } }, work)) ?? next
    } finally {
      connection.destroy()
    }
  }

  async function checkMtu(address: string, { stage, question }: Work): Promise<string | undefined> {
    const family = familyOf(address)
    const echo = (mtu: number) => connectivity.echo(address, question, mtu - headerBytes[family])
    await stage(
      'ping',
      () => echo(leastMtu[family]).then((said) => requireReply(said.text, address)),
      () => `${address} answers packets of ${leastMtu[family]} bytes`,
    )
    const found = await stage(
      'mtu',
      async () => {
        let [least, most] = [leastMtu[family] as number, usualMtu + 1]
        let said: number | undefined
        for (let at = usualMtu; most - least > 1;) {
          const { text } = await echo(at)
          if (parsePing(text).isReachable) least = at
          else {
            most = at
            said = parseMtu(text) ?? said
          }
          // What a router says is tried first.
          at =
            said !== undefined && said > least && said < most ? said : least + Math.floor((most - least) / 2)
          if (said !== undefined && least >= said) break
        }
        return { least, said }
      },
      ({ least, said }) =>
        `packets of up to ${least} bytes arrive whole${said === undefined || least >= usualMtu ? '' : '; a router says so'}`,
    )
    if (found.least >= usualMtu) return undefined
    return found.said === undefined
      ? `larger packets are lost without a word, which stalls connections: set the MTU of the interface to ${found.least}, or let ICMP through`
      : undefined
  }

  async function checkPlatform({ stage, question }: Work): Promise<string | undefined> {
    const configured = await platformWay()
    const way: PlatformClientOptions | undefined =
      question.target === ''
        ? configured
        : {
            url: urlOf(parseTarget(question.target, 'target'), 443),
            now,
            ...(hostWay ? { hostWay } : {}),
          }
    if (!way) throw refusedField('target', 'is missing: this host is not connected to a platform; name one')
    const probe = createProbe(way, connectMs)
    const proxy = proxyOf(way)
    const { host } = new URL(way.url)
    const explained = <T>(step: Promise<T>) =>
      step.catch((error: unknown) => {
        const { message } = causeOfError(error, way, now())
        throw new StageFailed(message, nextForPlatform)
      })
    await stage(
      'name',
      () => explained(probe.resolve()),
      ({ name, addresses }) =>
        addresses.length === 0 ? `${name} is an address` : `${name} is ${addresses.join(', ')}`,
    )
    const connection = await stage(
      'route',
      () => explained(probe.open()),
      () =>
        `${host} accepts connections${proxy === undefined ? '' : ` through the proxy ${new URL(proxyShown(proxy)).host}`}`,
    )
    await stage(
      'tls',
      () => explained(probe.showCertificate(connection)),
      (fingerprint) => `the fingerprint of the certificate is ${fingerprint}`,
    )
    const client = createPlatformClient({ ...way, timeoutMs: connectMs })
    try {
      await stage(
        'http',
        async () => {
          const { cause, status, body } = await client.call({ method: 'GET', path: '/v1/health/ping' })
          if (cause) throw new StageFailed(cause.message, nextForPlatform)
          if ((body as { readonly msg?: unknown } | undefined)?.msg !== 'pong')
            throw new StageFailed(
              `${host} answers (${status ?? 0}), but not as a platform does`,
              'check platform.url of the configuration',
            )
        },
        () => 'the certificate is accepted, and the platform answers',
      )
    } finally {
      client.close()
    }
    return undefined
  }
}

const nextForPlatform = 'see the message; then: edgehostctl platform status'

const portOf = ({ port, scheme }: Target, kind: CheckKind): number => {
  if (port !== undefined) return port
  if (kind === 'tcp' && scheme === undefined) throw refusedField('target', 'needs a port for tcp: NAME:PORT')
  return scheme === 'http' ? 80 : 443
}

const urlOf = ({ host, port }: Target, fallback: number) =>
  `https://${addressWithPort(host, port ?? fallback)}`

function requireReply(text: string, address: string): void {
  const { isReachable, errors } = parsePing(text)
  if (isReachable) return
  throw new StageFailed(
    errors.length === 0 ? `${address} does not answer` : errors.join('; '),
    `the host, or a firewall on the way, may drop ICMP: edgehostctl network traceroute ${address}`,
  )
}

async function openAny(addresses: readonly string[], port: number, signal: AbortSignal) {
  const failures: string[] = []
  let code = ''
  for (const address of addresses) {
    try {
      return { socket: await open(address, port, signal), address }
    } catch (error) {
      signal.throwIfAborted()
      code = (error as NodeJS.ErrnoException).code ?? ''
      failures.push(`${addressWithPort(address, port)}: ${systemReason(error as NodeJS.ErrnoException)}`)
    }
  }
  throw new StageFailed(failures.join('; '), nextForTcp(code, addresses[0] ?? '', port))
}

function nextForTcp(code: string, address: string, port: number): string {
  if (code === 'ECONNREFUSED')
    return `nothing listens on port ${port} there, or a firewall rejects it: start the service, or correct the port`
  if (code === 'ENETUNREACH') return `this host has no route there: ip route get ${address}`
  if (code === 'EHOSTUNREACH')
    return `no machine has this address on the link, or a router says so: edgehostctl network ping ${address}`
  return `a firewall may drop the packets, or the machine is off: edgehostctl network traceroute ${address}`
}

function open(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, signal })
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer within ${connectMs / 1_000} s`)),
      connectMs,
    )
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(socket)
    })
    // Also later ones: the other end may cut the connection.
    socket.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

/** @returns what the server has shown, and why programs of this host would not accept it */
function openTls(
  connection: Duplex,
  host: string,
  ca: string[],
): Promise<{ shown: TLSSocket; said: string; problem: string | undefined }> {
  return new Promise((resolve, reject) => {
    const shown = connectTls({
      socket: connection,
      // Only the shown certificate is reported.
      rejectUnauthorized: false,
      ca,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    })
    const fail = (message: string) =>
      reject(
        new StageFailed(
          message,
          'the port speaks no TLS, or another version of it: check the port, and the server',
        ),
      )
    const timer = setTimeout(() => {
      shown.destroy()
      fail(`no TLS handshake within ${connectMs / 1_000} s`)
    }, connectMs)
    shown.on('error', (error: Error) => {
      clearTimeout(timer)
      fail(`the TLS handshake has failed: ${error.message.slice(0, 200)}`)
    })
    shown.once('close', () => {
      clearTimeout(timer)
      fail('the connection was closed in the TLS handshake')
    })
    shown.once('secureConnect', () => {
      clearTimeout(timer)
      const certificate = shown.getPeerX509Certificate()
      const isNamed =
        certificate &&
        (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
      const problem = !shown.authorized
        ? String(shown.authorizationError)
        : isNamed === false
          ? `it is not for ${host}`
          : undefined
      const names = certificate?.subjectAltName ?? certificate?.subject ?? 'none'
      resolve({
        shown,
        problem,
        said: `${shown.getProtocol() ?? 'TLS'}; the certificate is for ${names.slice(0, 300)}, by ${(certificate?.issuer ?? 'none').replaceAll('\n', ', ').slice(0, 200)}, until ${certificate?.validToDate.toISOString() ?? 'unknown'}${problem === undefined ? '' : `; not trusted here: ${problem}`}`,
      })
    })
  })
}

async function checkRegistry(
  asked: Omit<RegistryAsk, 'signal'>,
  { stage, question }: Work,
): Promise<string | undefined> {
  const { host, port } = asked
  const status = await stage(
    'http',
    async () => {
      const reply = await askRegistry({ ...asked, signal: question.signal })
      reply.resume()
      const code = reply.statusCode ?? 0
      // The distribution specification, "end-1": 200, or 401 where a login is needed.
      if (![200, 401].includes(code))
        throw new StageFailed(
          `${addressWithPort(host, port)} answers /v2/ with status ${code}, as no registry does`,
          'check name and port of the registry',
        )
      return code
    },
    (found) => (found === 200 ? 'it is a registry' : 'it is a registry, and asks for a login'),
  )
  return status === 401 ? 'pulls need a login: see edgehostctl content registry config' : undefined
}

interface RegistryAsk {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** The checked address, or a connection through the proxy. */
  readonly to: { readonly address: string } | { readonly open: () => Promise<Duplex> }
  readonly signal: AbortSignal
}

/** With the name that was asked for. */
async function askRegistry({ host, port, to, isTls, signal }: RegistryAsk): Promise<IncomingMessage> {
  const tunnel = 'open' in to ? await to.open() : undefined
  return new Promise((resolve, reject) => {
    const options = {
      host: 'address' in to ? to.address : host,
      port,
      path: '/v2/',
      agent: false as const,
      signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]),
      headers: { host: addressWithPort(host, port) },
    }
    const asked = isTls
      ? getHttps({
          ...options,
          // As `openTls`: nothing secret is sent.
          rejectUnauthorized: false,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(tunnel === undefined
            ? {}
            : {
                // Without an agent, which would make the connection itself.
                agent: undefined,
                createConnection: () =>
                  connectTls({
                    socket: tunnel,
                    rejectUnauthorized: false,
                    ...(isIP(host) === 0 ? { servername: host } : {}),
                  }),
              }),
        })
      : getHttp(options)
    asked.once('response', resolve)
    asked.on('error', (error: Error) => {
      reject(
        new StageFailed(
          `no reply to /v2/: ${signal.aborted ? 'it was ended' : error.message.slice(0, 200)}`,
          'check name and port of the registry, and whether it speaks TLS: http://NAME:PORT for one that does not',
        ),
      )
    })
  })
}
