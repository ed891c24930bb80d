import type { Flow } from '../../api/connection/fed-server.ts'
import { createHttpsServer } from '../../api/connection/https-server.ts'
import { createServer } from '../../api/server.ts'
import { isLoopback } from '../../base/address.ts'
import type { ClientOf } from '../../base/client.ts'
import { sampleEach } from '../../base/sample.ts'
import { ConfigurationError } from '../../errors/start-error.ts'
import type { FiguresOf } from '../../room.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import type { Logger } from '../../system/log.ts'
import type { TlsMaterial } from '../../system/tls-options.ts'
import type { about } from '../about.ts'
import { describeOpenRegistry } from '../check-registry.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentProgram } from '../program/content-program.ts'
import type { OpenStore } from '../store/open-store.ts'
import { addRegistryRoutes } from './app.ts'
import { createSuspectBlobs } from './damage.ts'
import { createListener } from './listener.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { createRegistryPassword, registryUser } from './password.ts'
import { registryReplies } from './replies.ts'
import { createFileSender } from '../../api/send-file.ts'

/** The certificate of this host. */
export interface RegistryCertificate {
  material(): TlsMaterial
  /** Registers a listener, called when new connections must use another certificate. */
  onChange(listener: () => void): void
}

export interface RegistryOptions {
  readonly settings: ContentSettings['registry']
  /** How fast a blob is read again that could not be pulled, bytes a second. */
  readonly checkRate: number
  readonly stateDirectory: string
  readonly store: OpenStore
  readonly program: Pick<ContentProgram, 'verify'>
  readonly certificate: RegistryCertificate
  readonly clientOf: ClientOf
  /** That of all servers of this process; the default is one of its own. */
  readonly flow?: Flow | undefined
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly log: Logger
  /** Log for the lines that callers without a password cause. */
  readonly anonymousLog: Lines
  readonly timing?: Partial<RegistryTiming> | undefined
}

export interface RegistryTiming {
  /** How long pulls in flight have to end after a stop has begun; clients resume the others. Milliseconds. */
  readonly drainMs: number
  /** After how long a port that could not be opened is tried again. Milliseconds. */
  readonly retryMs: number
}

/** How the registry can be reached, and whether it works. */
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

/** The registry of this host: what its bundles have can be pulled as from any other registry. */
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

/** @throws ConfigurationError for a registry without a password beyond loopback */
export function createRegistry(options: RegistryOptions): Registry {
  const { settings, stateDirectory, store, certificate, clientOf, stopping, log, anonymousLog } = options
  const { address } = settings
  const { drainMs, retryMs } = { ...usualTiming, ...options.timing }
  const refused = settings.enabled ? describeOpenRegistry(settings) : undefined
  if (refused !== undefined) throw new ConfigurationError(refused)
  const isTls = !isLoopback(address)
  const password = createRegistryPassword(stateDirectory, log)
  let passwordProblem: string | undefined
  const https = createHttpsServer({
    ...{ material: isTls ? certificate.material() : undefined, timeouts, connections, body },
    ...{ clientOf, flow: options.flow, replies: registryReplies, log, anonymousLog },
  })
  const { app, requests } = createServer({
    ...{ log, anonymousLog, bodyLimitBytes: 1_024, mode: 'airgap', clientOf, stopping },
    ...{ replies: registryReplies, slashParameter: 'name' },
    serverFactory: (handler, options) => https.serverFactory(oneAtATime(handler), options),
    // It has no sessions.
    identify: () => undefined,
    onAuthenticated: () => undefined,
  })
  const sender = createFileSender()
  const suspects = createSuspectBlobs({
    ...{ store, program: options.program, bytesPerSecond: options.checkRate, stopping, log },
  })
  addRegistryRoutes(app, {
    ...{ store, sender, suspects },
    isAllowed: ({ headers }) => settings.anonymous || password.isRight(headers.authorization),
  })
  const listener = createListener({ app, address, port: settings.port, retryMs, log })
  certificate.onChange(() => {
    if (isTls) https.useCertificate(certificate.material())
  })

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
  const close = (): Promise<void> => {
    closed ??= closeNow()
    return closed
  }
  async function closeNow(): Promise<void> {
    const deadline = setTimeout(https.closeConnections, drainMs)
    https.closeIdle()
    await listener.close()
    clearTimeout(deadline)
    https.stop()
    await app.close()
  }

  return {
    state() {
      const problem = settings.enabled ? (passwordProblem ?? listener.problem()) : undefined
      return {
        ...{ isEnabled: settings.enabled, address, port: listener.port(), isTls },
        ...{ isAnonymous: settings.anonymous, isListening: listener.isListening() },
        ...(problem === undefined ? {} : { problem }),
        ...{ username: registryUser, password: password.current() },
      }
    },
    async start() {
      if (!settings.enabled) return
      stopping.addEventListener('abort', () => void close(), { once: true })
      await readPassword()
      await app.ready()
      await listener.open()
    },
    async reload() {
      if (settings.enabled) await readPassword()
    },
    stop: close,
    figures: () => ({
      edgehostd_registry_listening: settings.enabled ? Number(listener.isListening()) : undefined,
      edgehostd_registry_requests_total: requests.figures().flatMap(({ method, route, statuses }) =>
        sampleEach(
          statuses,
          ([status]) => ({ method, route, status: String(status) }),
          ([, value]) => value,
        ),
      ),
      edgehostd_registry_sent_bytes_total: sender.sentBytes(),
      edgehostd_registry_unreadable_blobs_total: suspects.count(),
    }),
  }
}
