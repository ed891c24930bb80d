import { isIP } from 'node:net'
import { withoutEndSlashes } from '../base/end-slashes.ts'
import { isRecord } from '../base/json.ts'
import { Agent, request, type RequestOptions } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { createSharedRun } from '../base/shared-run.ts'

/** Address and credentials of an API server. */
interface ApiAccess {
  /** Origin and path, without a slash at its end. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  /** Name that the certificate of the server must have, where it is not the one in `server`. */
  readonly serverName?: string
}

/**
 * Reads the current context of a kubeconfig that has all certificates in itself, as kubeadm, k3s and rke2 write it for administrators.
 * Source: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
 * @throws Error naming the missing part
 */
export async function parseKubeconfig(text: string): Promise<ApiAccess> {
  // Loaded here, since a host without a cluster does not need it.
  const { parseDocument } = await import('yaml')
  // The library would compare each key with every other one.
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error', uniqueKeys: false })
  const [problem] = document.errors
  if (problem !== undefined) throw new Error(`the kubeconfig is not YAML: ${problem.message}`)
  const config: unknown = document.toJS()
  if (!isRecord(config)) throw new Error('the kubeconfig is not a mapping')
  const context = entry(config, 'contexts', 'context', config['current-context'])
  const cluster = entry(config, 'clusters', 'cluster', context.cluster)
  const user = entry(config, 'users', 'user', context.user)
  const serverName = cluster['tls-server-name']
  return {
    server: serverOf(cluster.server),
    ca: pem(cluster, 'certificate-authority-data'),
    cert: pem(user, 'client-certificate-data'),
    key: pem(user, 'client-key-data'),
    // RFC 6066: an address is no server name.
    ...(typeof serverName === 'string' && serverName !== '' && isIP(serverName) === 0 ? { serverName } : {}),
  }
}

type Fields = Readonly<Record<string, unknown>>

function entry(config: Fields, list: string, field: string, name: unknown): Fields {
  const entries: readonly unknown[] = Array.isArray(config[list]) ? config[list] : []
  const found = entries.filter(isRecord).find((each) => each.name === name)?.[field]
  if (typeof name !== 'string' || !isRecord(found))
    throw new Error(`the kubeconfig has no entry of ${list} with the name ${JSON.stringify(name ?? '')}`)
  return found
}

function serverOf(server: unknown): string {
  const url = typeof server === 'string' ? URL.parse(server) : null
  if (url?.protocol !== 'https:') throw new Error('the server of the kubeconfig is not an https address')
  return withoutEndSlashes(url.origin + url.pathname)
}

function pem(fields: Fields, name: string): string {
  const value = fields[name]
  const text = typeof value === 'string' ? Buffer.from(value, 'base64').toString('latin1') : ''
  if (!text.includes('-----BEGIN ')) throw new Error(`the kubeconfig has no PEM in ${name}`)
  return text
}

export interface Ask {
  readonly method: 'GET' | 'PATCH' | 'POST' | 'DELETE'
  /** With its query. */
  readonly path: string
  /** Media type of the reply, `application/json` by default. */
  readonly accept?: string
  readonly contentType?: string
  readonly body?: Buffer
  /** A reply that lasts long has a connection of its own. */
  readonly isLong?: boolean
  readonly signal: AbortSignal
}

/** Connections to one API server. */
export interface Connection {
  /** @returns the reply with its body unread. @throws Error of the kubeconfig or the network; the reason of an aborted signal */
  send(ask: Ask): Promise<IncomingMessage>
  /** The API server's address, for messages; undefined until the kubeconfig is read. */
  server(): string | undefined
  close(): void
}

interface Connected {
  readonly text: string
  readonly access: ApiAccess
  readonly short: Agent
  readonly long: Agent
}

/**
 * Sends requests with the client certificate of a kubeconfig. The kubeconfig is read at the first request, and again when the API server
 * refuses the certificate or cannot be reached, since both are renewed on disk: a request is then repeated once with the new ones. It is
 * repeated too when a kept connection was closed while it was sent. All requests are such that a repetition does no harm.
 * @param kubeconfig reads the text of the kubeconfig
 */
export function createConnection(kubeconfig: () => Promise<string>): Connection {
  let current: Connected | undefined
  let first: Promise<void> | undefined
  const reading = createSharedRun(async () => {
    const text = await kubeconfig()
    if (text === current?.text) return
    const access = await parseKubeconfig(text)
    disconnect(current)
    current = connect(text, access)
  })

  async function connected(): Promise<Connected> {
    // The first reading, which all callers before it share; a later one is for changes since.
    if (current === undefined) await (first ??= reading.run().finally(() => (first = undefined)))
    if (current === undefined) throw new Error('the kubeconfig is not read')
    return current
  }

  /** @returns undefined where the kubeconfig is still the same, or cannot be read any more */
  async function renewed(used: Connected): Promise<Connected | undefined> {
    await reading.run().catch(() => undefined)
    return current === used ? undefined : current
  }

  return {
    async send(ask) {
      const used = await connected()
      try {
        const reply = await open(used, ask)
        const other = reply.statusCode === 401 ? await renewed(used) : undefined
        if (other === undefined) return reply
        reply.destroy()
        return await open(other, ask)
      } catch (error) {
        ask.signal.throwIfAborted()
        const again = isClosedWhenKept(error) ? used : await renewed(used)
        if (again === undefined) throw error
        return open(again, ask)
      }
    },
    server: () => current?.access.server,
    close() {
      disconnect(current)
      current = undefined
    },
  }
}

function connect(text: string, access: ApiAccess): Connected {
  const { ca, cert, key, serverName } = access
  const tls = { ca, cert, key, ...(serverName === undefined ? {} : { servername: serverName }) }
  return {
    text,
    access,
    short: new Agent({ ...tls, keepAlive: true, maxSockets: 2 }),
    long: new Agent(tls),
  }
}

function disconnect(connected: Connected | undefined): void {
  connected?.short.destroy()
  connected?.long.destroy()
}

const keptAndClosed = Symbol('a kept connection was closed')

function open({ access, short, long }: Connected, ask: Ask): Promise<IncomingMessage> {
  const { method, path, accept = 'application/json', contentType, body, isLong = false, signal } = ask
  const url = new URL(access.server + path)
  const options: RequestOptions = {
    method,
    signal,
    agent: isLong ? long : short,
    headers: {
      accept,
      'user-agent': 'edgehostd',
      ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': body.length }),
    },
  }
  return new Promise((resolve, reject) => {
    const sent = request(url, options)
    // A peer that has gone without a word is found by the system.
    sent.on('socket', (socket) => socket.setKeepAlive(true, 30_000))
    sent.once('response', resolve)
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const isClosed = sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
      reject(isClosed ? Object.assign(error, { [keptAndClosed]: true }) : error)
    })
    sent.end(body)
  })
}

const isClosedWhenKept = (error: unknown): boolean => error instanceof Error && keptAndClosed in error
