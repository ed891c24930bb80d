import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { InjectOptions } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { createAccessTokens, deriveKeys } from '../../src/auth/tokens.ts'
import type { GuessLimits } from '../../src/credentials/config.ts'
import { loadConfig, parseCommandLine, type Config } from '../../src/edgehostd/declarations.ts'
import { createDaemon } from '../../src/edgehostd/root.ts'
import type { ClusterProfileDetail } from '../../src/definition/schemas.ts'
import { createHostFiles, type HostFiles } from '../../src/host/files.ts'
import { secretFile } from '../../src/secrets/secret-file.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import type { ServiceStatus } from '../../src/service/schemas.ts'
import { createRunner, type CommandRunner } from '../../src/system/runner.ts'
import { createFakeHost, pamtester, type FakeHost } from './fake-host.ts'
import { captureLog, generous } from './https-server.ts'
import { trialProgram } from '../../src/network/trial/verbs.ts'
import { playNetworkTrial } from './played-network-trial.ts'
import { hostWithBond, type CapturedHost } from './network-host.ts'
import { createRunningClock } from './turning-clock.ts'
import { contentHere, createWorkersHere, examineHere } from './workers-here.ts'

export interface TestEdgeOptions {
  /** For a second edge on the same machine. */
  readonly host?: FakeHost
  /** A state folder that outlives the edge or exists before it; by default a folder of its own. */
  readonly stateDirectory?: string
  /** Port of the API, for a daemon that follows another one; by default any free one. */
  readonly port?: number
  readonly mode?: 'airgap' | 'connected'
  /** How long a request may continue after its session, in milliseconds. */
  readonly longRequestMs?: number
  /** Body of `GET /v1/edge-mgmt/edgehosts/current`. */
  readonly hostBody?: string
  readonly refusalDelayMs?: number
  readonly guard?: Partial<GuessLimits>
  /** By default requests are not limited. */
  readonly rateLimits?: Config['api']['rateLimits']
  /** Monotonic milliseconds, for a clock that does not run with that of the machine. */
  readonly monotonic?: () => number
  readonly cores?: number
  /** Addresses of this host, beside loopback. */
  readonly ownAddresses?: readonly string[]
  readonly queueLength?: number
  /** A token that is accepted for the metrics. */
  readonly tokenFile?: string
  readonly metricsEnabled?: boolean
  readonly definitions?: Partial<Config['definitions']>
  /** By default archives are examined within this process; see `examineProgram`. */
  readonly examineProgram?: string
  /** For edges that prepare clusters; see `prepareProgram`. */
  readonly prepareProgram?: string
  /** By default bundles are read within this process; see `contentProgram`. */
  readonly contentProgram?: string
  readonly content?: Partial<Config['content']>
  /** For edges that read the inventory; without it they cannot. */
  readonly inventoryProgram?: string
  /** The network of the host; by default one that systemd-networkd configures, with a bond and a VLAN. */
  readonly network?: CapturedHost
  /** Whether a name server answers; by default none does. */
  readonly answersNames?: () => Promise<boolean>
  /** Folder of the pages for browsers; by default there is an empty one. */
  readonly pagesFolder?: string
  /** Folder below which container runtimes are looked for; by default there is none. */
  readonly runtimeRoot?: string
  /** Base64 or PEM of the key that verifies uploads. */
  readonly signingKey?: string
  /** Profiles of a running cluster. */
  readonly running?: () => readonly ClusterProfileDetail[] | undefined
  /** Limits of connections; wide by default. */
  readonly limits?: Partial<Pick<Config['api'], 'timeouts' | 'body' | 'connections'>>
  /** Path of root's socket; by default there is no socket. */
  readonly socket?: string
  /** More settings, as flags: `--platform.url=https://platform.example`. */
  readonly flags?: readonly string[]
}

export interface LoginReply {
  readonly Token: { readonly Authorization: string; readonly RefreshToken: string }
  readonly IsFirstLogin: boolean
}

export interface ErrorReply {
  readonly code: string
  readonly message: string
  readonly details?: { readonly field?: string }
  readonly ref?: string
}

export const loginPath = '/v1/users/default/login'
export const renewalPath = '/v1/users/default/token/renewal'
export const logoutPath = '/v1/users/default/logout'
export const resetPath = '/v1/users/default/password/reset'
export const currentPath = '/v1/users/current'
export const sessionsPath = '/v1/users/sessions'

/** The status that a daemon reports. */
export const serviceStatus = (mode: 'airgap' | 'connected'): ServiceStatus => ({
  version: '0.1.0',
  mode,
  startTimestamp: '2026-01-31T08:00:00.000Z',
  uptimeSeconds: 5_400,
  addresses: ['192.0.2.7', '2001:db8::7'],
  port: 5080,
  certificate: {
    fingerprint: Array.from({ length: 32 }, (_, index) => (0xa0 + index).toString(16).toUpperCase()).join(
      ':',
    ),
    expirationTimestamp: '2028-05-05T08:00:00.000Z',
    isOwn: true,
  },
  failing: [],
  notes: [],
  state: { freeBytes: 21_474_836_480, totalBytes: 42_949_672_960 },
  unwrittenAudits: 0,
})

// Thousands of requests of a test do not wait for a disk.
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** The daemon's own composition root, by `inject` until it is started; only the operating system below it is fake. */
export async function createTestEdge(options: TestEdgeOptions = {}) {
  const host = options.host ?? (await createFakeHost())
  const clock = createRunningClock()
  const { log, lines } = captureLog()
  const stateDirectory = options.stateDirectory ?? (await mkdtemp(join(memory, 'edgehostd-edge-')))
  const networkFolders = {
    runtime: join(stateDirectory, 'run-network'),
    state: join(stateDirectory, 'network'),
  }
  const network = playNetworkTrial(networkFolders)
  const daemon = await createDaemon({
    config: await configFor(options, stateDirectory),
    log,
    version: '1.2.3',
    buildDate: Date.UTC(2026, 0, 1),
    edges: {
      runner: runnerOf(host, network.runner),
      clock: options.monotonic ? { ...clock, monotonic: options.monotonic } : clock,
      files: withAddresses(options.ownAddresses ?? []),
      facts: factsOf(options.hostBody ?? '{"metadata":{}}'),
      // All lines, so that a test may check each.
      anonymousLog: Object.assign(log, { reserve: () => undefined, stop: () => undefined }),
      etc: host.etc,
      cores: options.cores ?? 2,
      architecture: 'amd64',
      bootId: 'boot-1',
      environment: {},
      examineProgram: options.examineProgram ?? examineHere,
      prepareProgram: options.prepareProgram ?? '/nowhere/prepare.cjs',
      contentProgram: options.contentProgram ?? contentHere,
      network: options.network ?? hostWithBond(),
      answersNames: options.answersNames ?? (async () => false),
      runtimeRoot: options.runtimeRoot ?? '/nowhere',
      inventoryProgram: options.inventoryProgram ?? '/nowhere/inventory.cjs',
      stepProgram: '/nowhere/step.cjs',
      keeperProgram: '/nowhere/keeper.cjs',
      verbProgram: '/nowhere/verb.cjs',
      supportProgram: '/nowhere/support.cjs',
      pagesFolder: options.pagesFolder ?? join(import.meta.dirname, 'pages'),
      platformProgram: '/nowhere/platform.cjs',
      networkFolder: networkFolders.runtime,
      clusterOfSlots: options.running && {
        hasCluster: () => options.running?.() !== undefined,
        profiles: () => Promise.resolve(options.running?.()),
      },
      longRequestMs: options.longRequestMs,
    },
  })
  const { app, rooms } = daemon
  const { audit, auth, state, definition, content } = rooms
  const secret = readFileSync(join(stateDirectory, secretFile))
  const keys = deriveKeys(createSecrets(secret))
  // Clients know the clock of the host by this field.
  app.addHook('onSend', async (_request, reply) => {
    reply.header('date', new Date(clock.now()).toUTCString())
  })
  // An injected request gets the beginning of a stream, which would not end.
  app.addHook('onSend', async (request, reply, payload) => {
    const isStream = reply.getHeader('content-type') === 'text/event-stream'
    return isStream && payload instanceof Readable && '_lightMyRequest' in request.raw
      ? firstPiece(payload)
      : payload
  })
  await app.ready()

  const post = (url: string, payload: unknown, extra: InjectOptions = {}) =>
    app.inject({ method: 'POST', url, payload: payload as string, ...extra })
  const tryLogin = (username: string, password: string, extra?: InjectOptions) =>
    post(loginPath, { username, password }, extra)

  return {
    app,
    daemon,
    content,
    /** In the place of the shell program that tries changes of the network. */
    network,
    routes: rooms.api.table,
    host,
    clock,
    secret,
    keys,
    accessTokens: await createAccessTokens(keys.access),
    audit,
    database: state.database,
    sessions: auth.sessions,
    definition,
    stateDirectory,
    lines,
    watch: auth.accountWatch,
    post,
    tryLogin,
    /** A login that has to succeed. */
    async login(name: string, extra?: InjectOptions) {
      const reply = await tryLogin(name, host.accounts.get(name)?.password ?? '', extra)
      if (reply.statusCode !== 200) throw new Error(`${name}: ${reply.statusCode} ${reply.body}`)
      const { Token } = reply.json<LoginReply>()
      return { access: Token.Authorization, refresh: Token.RefreshToken, reply }
    },
    get: (url: string, token?: string) =>
      app.inject({ method: 'GET', url, headers: token === undefined ? {} : { authorization: token } }),
    pamCalls: () => host.calls.filter(({ program }) => program === pamtester),
    async stop() {
      await daemon.stop()
      if (options.host === undefined) await host.remove()
      if (options.stateDirectory === undefined) await rm(stateDirectory, { recursive: true, force: true })
    },
  }
}

async function configFor(options: TestEdgeOptions, stateDirectory: string): Promise<Config> {
  const { config } = await loadConfig({
    commandLine: parseCommandLine([
      `--state.directory=${stateDirectory}`,
      `--api.socket.path=${options.socket ?? ''}`,
      '--api.address=127.0.0.1',
      '--host.id=edge-test',
      `--host.mode=${options.mode ?? 'airgap'}`,
      '--host.console.issueFile=',
      `--metrics.enabled=${options.metricsEnabled ?? true}`,
      ...(options.tokenFile === undefined ? [] : [`--metrics.tokenFile=${options.tokenFile}`]),
      ...(options.flags ?? []),
    ]),
    environment: {},
    defaultFile: '/nowhere/config.yaml',
  })
  const { api, auth, content, definitions } = config
  return {
    ...config,
    api: {
      ...api,
      // Any free port.
      port: options.port ?? 0,
      timeouts: generous,
      body: { ...api.body, limitBytes: 65_536, minimumBytesPerSecond: 1, windowSeconds: 60 },
      connections: { maximum: 100, maximumPerAddress: 100 },
      ...options.limits,
      rateLimits: options.rateLimits
        ? { ...options.rateLimits, resources: [...options.rateLimits.resources] }
        : { ...api.rateLimits, enabled: false },
    },
    auth: {
      ...auth,
      adminGroups: ['sudo'],
      refusalDelayMs: options.refusalDelayMs ?? 50,
      // The service file has to exist: Debian's libpam brings this one.
      pam: { ...auth.pam, program: pamtester, service: 'other', queueLength: options.queueLength ?? 16 },
      guard: { ...auth.guard, ...options.guard },
    },
    content: {
      ...content,
      // Any free port.
      registry: { ...content.registry, port: 0 },
      ...options.content,
      signing: {
        publicKey: { base64EncodedValue: options.signingKey ?? '', description: 'Key of the tests' },
      },
    },
    definitions: {
      ...definitions,
      embeddedFile: join(stateDirectory, 'embedded.tgz'),
      upload: { limitBytes: 100_000_000, reserveBytes: 0, maximum: 2 },
      check: { seconds: 300, memoryMiB: 256 },
      ...options.definitions,
    },
  }
}

async function firstPiece(stream: Readable): Promise<string> {
  for await (const piece of stream) return String(piece)
  return ''
}

/** Archives and bundles are really read; all other programs belong to the fake host. */
function runnerOf({ runner }: FakeHost, network: CommandRunner): CommandRunner {
  const workers = createWorkersHere(createRunner())
  return {
    ...runner,
    run: (program, args, options) =>
      (program === trialProgram
        ? network
        : [process.execPath, 'sync'].includes(program)
          ? workers
          : runner
      ).run(program, args, options),
  }
}

/** The files of this machine, except for its addresses. */
function withAddresses(addresses: readonly string[]): HostFiles {
  const files = createHostFiles()
  const tables: Readonly<Record<string, string>> = {
    '/proc/net/fib_trie': addresses
      .filter((address) => !address.includes(':'))
      .map((address) => `  |-- ${address}\n     /32 host LOCAL\n`)
      .join(''),
    '/proc/net/if_inet6': addresses
      .filter((address) => address.includes(':'))
      .map((address) => `${digitsOf(address)} 02 40 00 80     eth0\n`)
      .join(''),
  }
  return { ...files, text: async (path, ...more) => tables[path] ?? files.text(path, ...more) }
}

/** `2001:db8::7` as the kernel's tables have it. */
function digitsOf(address: string): string {
  const [left = '', right] = address.split('::')
  const parts = (text: string) => (text === '' ? [] : text.split(':')).map((part) => part.padStart(4, '0'))
  const [before, after] = [parts(left), parts(right ?? '')]
  return [...before, ...Array<string>(8 - before.length - after.length).fill('0000'), ...after].join('')
}

const factsOf = (body: string) => ({
  readings: () => [
    { name: 'disks', refreshClass: 'seconds' as const, ageMs: 1_500, durationMs: 12, isFailing: false },
    {
      ...{ name: 'ntp', refreshClass: 'services' as const, isFailing: true },
      ...{ ageMs: undefined, durationMs: undefined },
    },
  ],
  current: () => ({ body, etag: '"1"' }),
  firstReading: () => Promise.resolve(),
  refresh: () => Promise.resolve(),
})

export type TestEdge = Awaited<ReturnType<typeof createTestEdge>>

/**
 * One edge for all tests of a file or of a `describe` that leave nothing behind; what it was asked to run and to write before is forgotten for each.
 * @param use is given the edge, to keep and to prepare it
 */
export function useOneEdge(use: (edge: TestEdge) => unknown, options: TestEdgeOptions = {}): void {
  let edge: TestEdge
  beforeAll(async () => {
    edge = await createTestEdge(options)
    await use(edge)
  })
  beforeEach(() => {
    for (const kept of [edge.host.calls, edge.lines]) kept.length = 0
  })
  afterAll(() => edge.stop())
}

/** An edge for each test of a file or of a `describe`. */
export function useEdges(use: (edge: TestEdge) => unknown, options: TestEdgeOptions = {}): void {
  let edge: TestEdge
  beforeEach(async () => {
    edge = await createTestEdge(options)
    await use(edge)
  })
  afterEach(async () => {
    edge.host.release()
    await edge.stop()
  })
}
