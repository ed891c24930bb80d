import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { backlog, listenOnHost } from '../../api/connection/listen.ts'
import { addressWithPort, isLoopback } from '../../base/address.ts'
import type { Logger } from '../../system/log.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { readRegularFile } from '../../system/regular-file.ts'
import type { Replies } from '../../api/replies.ts'
import type { Flow } from '../../api/connection/fed-server.ts'
import { createHttpsServer } from '../../api/connection/https-server.ts'
import { createServer } from '../../api/server.ts'
import type { ClientOf } from '../../base/client.ts'
import { sampleEach } from '../../base/sample.ts'
import { ConfigurationError } from '../../errors/start-error.ts'
import type { FiguresOf } from '../../root/room.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import type { TlsMaterial } from '../../system/tls-options.ts'
import type { about } from '../about.ts'
import { describeOpenRegistry } from '../checks.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentProgram } from '../program/content-program.ts'
import type { OpenStore } from '../store/open-store.ts'
import { addRegistryRoutes } from './app.ts'
import { createSuspectBlobs } from './damage.ts'
import { createFileSender } from '../../api/send-file.ts'

interface ListenerOptions {
  /** Not listening yet. */
  readonly app: FastifyInstance
  readonly address: string
  readonly port: number
  /** Time until a port that could not be opened is tried again. */
  readonly retryMs: number
  readonly log: Logger
}

/** The port of the registry. One that is taken does not end the daemon, whose other work does not need it. */
interface Listener {
  /** Opens the port, or begins to try it again and again. */
  open(): Promise<void>
  isListening(): boolean
  /** Port that is open, or that is tried. */
  port(): number
  /** Why it is not open; for operators. */
  problem(): string | undefined
  /** Accepts no more connections. Resolves when all are closed. */
  close(): Promise<void>
}

function createListener({ app, address, port, retryMs, log }: ListenerOptions): Listener {
  const { server } = app
  let problem: string | undefined
  let retry: NodeJS.Timeout | undefined
  let isClosed = false

  async function open(): Promise<void> {
    if (isClosed) return
    try {
      await listenOnHost(address, listen)
    } catch (error) {
      const found = describeProblem(error as NodeJS.ErrnoException, address, port)
      if (found !== problem) log.error({ address, port, code: (error as NodeJS.ErrnoException).code }, found)
      problem = found
      retry = setTimeout(() => void open(), retryMs).unref()
      return
    }
    if (problem !== undefined) log.info({ address, port }, 'the port of the registry is open now')
    problem = undefined
  }

  function listen(host: string): Promise<unknown> {
    const listening = once(server, 'listening')
    server.listen({ host, port, backlog })
    return listening
  }

  return {
    open,
    isListening: () => server.listening,
    port: () => (server.address() as AddressInfo | null)?.port ?? port,
    problem: () => problem,
    async close() {
      isClosed = true
      clearTimeout(retry)
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

function describeProblem({ code, message }: NodeJS.ErrnoException, address: string, port: number): string {
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process listens there: find it with ss -ltnp 'sport = :${port}' and end it, or set content.registry.port`,
    EADDRNOTAVAIL:
      'this host does not have the address: see ip -brief address, or set content.registry.address',
    EACCES: 'the daemon may not open a port below 1024: set content.registry.port',
  }
  return `the registry cannot listen on ${addressWithPort(address, port)}: ${advice[code ?? ''] ?? message}`
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Handles the requests of each connection one after the other. A client may send many without waiting: each would hold an
 * open file and a buffer until its turn comes. How many may wait is bounded for all servers by `api/connection/fed-socket.ts`.
 */
function oneAtATime(handler: Handler): Handler {
  const waitingOn = new WeakMap<Socket, (() => void)[]>()

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    response.once('close', () => {
      const next = socket.destroyed ? undefined : waitingOn.get(socket)?.shift()
      if (next) next()
      else waitingOn.delete(socket)
    })
    handler(request, response)
  }

  return (request, response) => {
    const { socket } = request
    const waiting = waitingOn.get(socket)
    if (!waiting) {
      waitingOn.set(socket, [])
      handle(request, response)
    } else waiting.push(() => handle(request, response))
  }
}

/** The user name of the registry. */
const registryUser = 'edgehostd'

const fileName = 'registry-password'
const fileBytes = 4_096
// Without control characters, which no header field may contain.
const passwordForm = /^[\x21-\x7e]{8,256}$/

/** The password of the registry: a file of the state folder, so that an administrator may replace it. */
interface RegistryPassword {
  /**
   * Reads the file, and makes it with a new password where it is missing.
   * @throws an Error for operators, or the system's error; the password of before then stays
   */
  read(): Promise<void>
  /** Empty before the first `read`. */
  current(): string
  /** Whether the field `Authorization` has user name and password. */
  isRight(authorization: string | undefined): boolean
}

function createRegistryPassword(stateDirectory: string, log: Logger): RegistryPassword {
  const file = join(stateDirectory, fileName)
  let password = ''
  let expected: Buffer | undefined

  async function readOrMake(): Promise<string> {
    const found = await readRegularFile(file, fileBytes).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return undefined
    })
    if (!found) {
      const made = randomBytes(32).toString('base64url')
      await replaceFile(file, `${made}\n`, 0o600)
      log.info({ file }, 'a password for the registry was made')
      return made
    }
    // An editor may have given it another mode.
    if ((found.stats.mode & 0o077) !== 0) await chmod(file, 0o600)
    const text = found.bytes.toString('latin1').replace(/\r?\n$/, '')
    if (!passwordForm.test(text))
      throw new Error(
        `${file} is not one line of 8 to 256 characters of ASCII without spaces; correct it, or remove it for a new one`,
      )
    return text
  }

  return {
    async read() {
      password = await readOrMake()
      expected = sum(`${registryUser}:${password}`)
    },
    current: () => password,
    isRight(authorization) {
      const [, encoded] = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization ?? '') ?? []
      if (encoded === undefined || expected === undefined) return false
      return timingSafeEqual(sum(Buffer.from(encoded, 'base64')), expected)
    },
  }
}

// Sums have one length, which timingSafeEqual needs.
const sum = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest()

// Codes of the daemon where the specification has another word for the same.
const words: Readonly<Record<string, string>> = {
  MethodNotAllowed: 'UNSUPPORTED',
  Unauthenticated: 'UNAUTHORIZED',
  ContentUnavailable: 'UNAVAILABLE',
  NotReady: 'UNAVAILABLE',
  Internal: 'UNKNOWN',
}

/** `BlobUnknown` as `BLOB_UNKNOWN`. */
const wordOf = (code: string) => words[code] ?? code.replace(/(?<=.)[A-Z]/g, '_$&').toUpperCase()

/**
 * Reply form of the registry.
 * Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes
 */
const registryReplies: Replies = {
  headers: { 'docker-distribution-api-version': 'registry/2.0', 'x-content-type-options': 'nosniff' },
  errorType: 'application/json',
  errorBody: ({ code, message, details }, ref) => ({
    errors: [{ code: wordOf(code), message, detail: { ...details, ref } }],
  }),
}

/** The certificate of this host. */
export interface RegistryCertificate {
  material(): TlsMaterial
  /** Registers a listener, called when new connections must use another certificate. */
  onChange(listener: () => void): void
}

export interface RegistryOptions {
  readonly settings: ContentSettings['registry']
  /** Rate at which a blob that could not be pulled is read again, bytes a second. */
  readonly checkRate: number
  readonly stateDirectory: string
  readonly store: OpenStore
  readonly program: Pick<ContentProgram, 'verify'>
  readonly certificate: RegistryCertificate
  readonly clientOf: ClientOf
  /** The flow of all servers of this process; the default is one of its own. */
  readonly flow?: Flow | undefined
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly log: Logger
  /** Log for the lines that callers without a password cause. */
  readonly anonymousLog: Lines
  readonly timing?: Partial<RegistryTiming> | undefined
}

export interface RegistryTiming {
  /** Time for pulls in flight to end after a stop has started; clients resume the others. Milliseconds. */
  readonly drainMs: number
  /** Time until a port that could not be opened is tried again. Milliseconds. */
  readonly retryMs: number
}

/** Address of the registry, and whether it works. */
export interface RegistryState {
  /** `content.registry.enabled`. */
  readonly isEnabled: boolean
  readonly address: string
  readonly port: number
  readonly isTls: boolean
  /** Whether pulls need no password. */
  readonly isAnonymous: boolean
  readonly isListening: boolean
  /** Why it does not work, and what to do; for operators. */
  readonly problem?: string
  readonly username: string
  /** Empty before the start, and without a usable file of the password. */
  readonly password: string
}

type Families = typeof about.families
type RegistryFigure = Extract<keyof Families, `edgehostd_registry_${string}`>

/** The registry of this host: content of its bundles can be pulled as from any other registry. */
export interface Registry {
  state(): RegistryState
  /** Opens the port, unless the registry is turned off. */
  start(): Promise<void>
  /** Reads the password again. */
  reload(): Promise<void>
  /** Resolves when all pulls have ended; `stopping` begins that. */
  stop(): Promise<void>
  figures(): Pick<FiguresOf<Families>, RegistryFigure>
}

// Containers of one host share its addresses.
const connections = { maximum: 1_000, maximumPerAddress: 1_000, settingsName: 'the registry' }
// Pulls may wait for a slow disk of the client.
const timeouts = { handshakeMs: 5_000, headersMs: 5_000, idleMs: 60_000, stalledMs: 120_000 }
// No route reads a body.
const body = { minimumBytesPerSecond: 1_024, windowSeconds: 10 }
const usualTiming: RegistryTiming = { drainMs: 5_000, retryMs: 5_000 }

/** The server of the registry, its app and its port. */
function createServing(options: RegistryOptions, password: RegistryPassword) {
  const { settings, store, certificate, clientOf, stopping, log, anonymousLog } = options
  const { address, port } = settings
  const { drainMs, retryMs } = { ...usualTiming, ...options.timing }
  const isTls = !isLoopback(address)
  const https = createHttpsServer({
    material: isTls ? certificate.material() : undefined,
    timeouts,
    connections,
    body,
    clientOf,
    flow: options.flow,
    replies: registryReplies,
    log,
    anonymousLog,
  })
  const { app, requests } = createServer({
    log,
    anonymousLog,
    bodyLimitBytes: 1_024,
    mode: 'airgap',
    clientOf,
    stopping,
    replies: registryReplies,
    slashParameter: 'name',
    serverFactory: (handler, more) => https.serverFactory(oneAtATime(handler), more),
    // It has no sessions.
    identify: () => undefined,
    onAuthenticated: () => undefined,
  })
  const sender = createFileSender()
  const suspects = createSuspectBlobs({
    store,
    program: options.program,
    bytesPerSecond: options.checkRate,
    stopping,
    log,
  })
  addRegistryRoutes(app, {
    store,
    sender,
    suspects,
    isAllowed: ({ headers }) => settings.anonymous || password.isRight(headers.authorization),
  })
  const listener = createListener({ app, address, port, retryMs, log })
  certificate.onChange(() => {
    if (isTls) https.useCertificate(certificate.material())
  })
  return {
    listener,
    requests,
    sender,
    suspects,
    async open() {
      await app.ready()
      await listener.open()
    },
    async close() {
      const deadline = setTimeout(https.closeConnections, drainMs)
      https.closeIdle()
      await listener.close()
      clearTimeout(deadline)
      https.stop()
      await app.close()
    },
  }
}

/** @throws ConfigurationError for a registry without a password beyond loopback */
export function createRegistry(options: RegistryOptions): Registry {
  const { settings, stateDirectory, stopping, log } = options
  const { address } = settings
  const refused = settings.enabled ? describeOpenRegistry(settings) : undefined
  if (refused !== undefined) throw new ConfigurationError(refused)
  const password = createRegistryPassword(stateDirectory, log)
  let passwordProblem: string | undefined
  /** Made by the start, after the port of the API is open; a registry that is turned off has none. */
  let serving: ReturnType<typeof createServing> | undefined

  async function readPassword(): Promise<void> {
    try {
      await password.read()
      passwordProblem = undefined
    } catch (error) {
      passwordProblem = `the password of the registry cannot be read or made: ${(error as Error).message}; mend that, then: systemctl reload edgehostd`
      log.error({ err: error }, passwordProblem)
    }
  }

  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    closed ??= serving?.close()
    await closed
  }

  return {
    state() {
      const problem = settings.enabled ? (passwordProblem ?? serving?.listener.problem()) : undefined
      return {
        isEnabled: settings.enabled,
        address,
        port: serving?.listener.port() ?? settings.port,
        isTls: !isLoopback(address),
        isAnonymous: settings.anonymous,
        isListening: serving?.listener.isListening() ?? false,
        ...(problem === undefined ? {} : { problem }),
        username: registryUser,
        password: password.current(),
      }
    },
    async start() {
      if (!settings.enabled) return
      serving = createServing(options, password)
      stopping.addEventListener('abort', () => void close(), { once: true })
      await readPassword()
      await serving.open()
    },
    async reload() {
      if (settings.enabled) await readPassword()
    },
    stop: close,
    figures: () => ({
      edgehostd_registry_listening: settings.enabled
        ? Number(serving?.listener.isListening() ?? false)
        : undefined,
      edgehostd_registry_requests_total: (serving?.requests.figures() ?? []).flatMap(
        ({ method, route, statuses }) =>
          sampleEach(
            statuses,
            ([status]) => ({ method, route, status: String(status) }),
            ([, value]) => value,
          ),
      ),
      edgehostd_registry_sent_bytes_total: serving?.sender.sentBytes() ?? 0,
      edgehostd_registry_unreadable_blobs_total: serving?.suspects.count() ?? 0,
    }),
  }
}
