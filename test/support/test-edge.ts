import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyServerFactory, InjectOptions } from 'fastify'
import type { ServiceStatus } from '../../src/service/schemas.ts'
import type { Socket } from 'node:net'
import type { HttpsServer } from '../../src/api/connection/https-server.ts'
import { createServer } from '../../src/api/server.ts'
import { createAudit } from '../../src/audit/audit.ts'
import type { RateLimitSettings } from '../../src/api/rate/limit.ts'
import { registerAccessTokens } from '../../src/auth/access-token.ts'
import { createAuth } from '../../src/auth/auth.ts'
import type { GuessLimits } from '../../src/auth/guess-guard.ts'
import { createSecret, deriveKeys } from '../../src/auth/keys.ts'
import { createDefinitions, type DefinitionSettings } from '../../src/definition/definitions.ts'
import type { ClusterProfileDetail } from '../../src/definition/schemas.ts'
import { readSigningKey } from '../../src/upload/signing.ts'
import { clientOf as clientAmong, ownAddresses } from '../../src/base/client.ts'
import { createRunner } from '../../src/system/runner.ts'
import { settingsOf } from '../../src/host/settings.ts'
import { createContinueTokens } from '../../src/lists/continue-token.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { readScrapeAccess } from '../../src/metrics/scrape-access.ts'
import { registerRooms } from '../../src/rooms.ts'
import { openDatabase } from '../../src/store/database.ts'
import { createReader } from '../../src/store/reader.ts'
import { createFakeHost, pamtester, type FakeHost } from './fake-host.ts'
import { captureLog } from './https-server.ts'
import { createRunningClock } from './turning-clock.ts'

export interface TestEdgeOptions {
  /** For a second edge on the same machine. */
  readonly host?: FakeHost
  readonly secret?: Buffer
  readonly databaseFile?: string
  /** Whose sizes the metrics show. */
  readonly stateDirectory?: string
  readonly mode?: 'airgap' | 'connected'
  /** Makes a real server; to listen is up to the test. */
  readonly serverFactory?: FastifyServerFactory
  /** That server, which is told whose connections are spared. */
  readonly https?: Pick<HttpsServer, 'markAuthenticated' | 'forget'>
  /** How long a request may go on after its session. */
  readonly longRequestMs?: number
  /** Whether a connection came over the local socket. */
  readonly isLocal?: (socket: Socket) => boolean
  /** Body of `GET /v1/edge-mgmt/edgehosts/current`. */
  readonly hostBody?: string
  readonly refusalDelayMs?: number
  readonly guard?: Partial<GuessLimits>
  /** Without it one may ask as often as one likes. */
  readonly rateLimits?: RateLimitSettings
  /** Of the rate limits, where it is not to run with the machine's. */
  readonly rateClock?: () => number
  readonly cores?: number
  /** Of this host, beside loopback. */
  readonly ownAddresses?: readonly string[]
  readonly queueLength?: number
  /** A token that opens the metrics. */
  readonly tokenFile?: string
  readonly metricsEnabled?: boolean
  readonly definitions?: Partial<DefinitionSettings>
  /** For edges that take definitions; see `examineProgram`. */
  readonly examineProgram?: string
  /** Where definitions are kept beyond the edge; without it a folder of its own. */
  readonly definitionsFolder?: string
  /** Base64 or PEM of the key that uploads are signed for. */
  readonly signingKey?: string
  /** Profiles of a running cluster. */
  readonly running?: () => readonly ClusterProfileDetail[] | undefined
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

/** How a daemon says it is. */
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
  state: { freeBytes: 21_474_836_480, totalBytes: 42_949_672_960 },
  unwrittenAudits: 0,
})

/** The whole edge by `inject`; only the operating system below it is played. */
export async function createTestEdge(options: TestEdgeOptions = {}) {
  const host = options.host ?? (await createFakeHost())
  const { runner, etc } = host
  const clock = createRunningClock()
  const { log, lines } = captureLog()
  const secret = options.secret ?? createSecret()
  const keys = deriveKeys(secret)
  const mode = options.mode ?? 'airgap'
  const own = ownAddresses(options.ownAddresses ?? [])
  const clientOf = (address: string) => clientAmong(address, own)
  const database = openDatabase(options.databaseFile ?? ':memory:', log)
  const reader = createReader(database.sql)
  const audit = createAudit({
    settings: { retentionDays: 1_095, limitBytes: 268_435_456 },
    database,
    read: reader.read,
    clock,
    log,
  })
  const listTokens = createContinueTokens(keys.lists)
  const { app, routes, requests, endRequests, rateRefusals } = createServer({
    log,
    bodyLimitBytes: 65_536,
    mode,
    audit: audit.requests,
    clientOf,
    ...(options.isLocal ? { isLocal: options.isLocal } : {}),
    ...(options.serverFactory ? { serverFactory: options.serverFactory } : {}),
    ...(options.rateLimits
      ? {
          rateLimits: {
            settings: options.rateLimits,
            monotonic: options.rateClock ?? (() => clock.monotonic()),
            holderOf: (token) => sessions.holderOf(token),
            isKnownClient: (client) => auth.isKnownClient(client),
          },
        }
      : {}),
    authenticate: (token) => sessions.authenticate(token),
    onAuthenticated: ({ socket }, caller) => options.https?.markAuthenticated(socket, caller),
    ...(options.longRequestMs === undefined ? {} : { longRequestMs: options.longRequestMs }),
  })
  const accessTokens = await registerAccessTokens(app, keys.access)
  const auth = createAuth({
    settings: {
      adminGroups: ['sudo'],
      allowAnyShell: false,
      refusalDelayMs: options.refusalDelayMs ?? 50,
      // The service must be there for real: Debian's libpam brings this one.
      pam: {
        program: pamtester,
        service: 'other',
        timeoutMs: 20_000,
        maximumChildren: 32,
        queueLength: options.queueLength ?? 16,
      },
      guard: {
        delayAfterFailures: 3,
        firstDelaySeconds: 1,
        lockAfterFailures: 5,
        lockMinutes: 15,
        addressLockAfterFailures: 20,
        userFailuresPerHour: 100,
        trackedKeys: 10_000,
        ...options.guard,
      },
      tokens: {
        accessMinutes: 15,
        renewalHours: 2,
        extendedRenewalHours: 24,
        maximumDays: 7,
        replaySeconds: 30,
      },
    },
    runner,
    privileged: runner,
    database,
    keys,
    onCallersGone(isGone) {
      endRequests(isGone)
      options.https?.forget(isGone)
    },
    accessTokens,
    listTokens,
    record: audit.record,
    clientOf,
    cores: options.cores ?? 2,
    clock,
    log,
    etc,
  })
  const { sessions } = auth
  const metrics = createMetrics(
    {
      build: { version: '1.2.3', node: process.version, mode },
      requests: requests.figures,
      rateRefusals,
      connections: () => 3,
      logins: auth.logins,
      pam: auth.pam,
      sessions: () => sessions.list().length,
      facts: () => [
        { name: 'disks', refreshClass: 'seconds', ageMs: 1_500, durationMs: 12, isFailing: false },
        { name: 'ntp', refreshClass: 'minutes', ageMs: undefined, durationMs: undefined, isFailing: true },
      ],
      jobs: () => [{ name: 'accounts', runs: 7, failures: 2, durationMs: 30, sinceSuccessMs: 61_000 }],
      certificateEnd: () => new Date('2028-02-24T00:00:00Z'),
      auditUnwritten: audit.unwritten,
      stateDirectory: options.stateDirectory ?? '/nowhere',
    },
    () => clock.monotonic(),
  )
  const signingKey = readSigningKey({
    base64EncodedValue: options.signingKey ?? '',
    description: 'Key of the tests',
  })
  const definitionsFolder = options.definitionsFolder ?? (await mkdtemp(join(tmpdir(), 'edgehostd-slots-')))
  const definitions = await createDefinitions({
    settings: {
      embeddedFile: join(definitionsFolder, 'embedded.tgz'),
      upload: { limitBytes: 100_000_000, reserveBytes: 0, maximum: 2 },
      check: { seconds: 60, memoryMiB: 256 },
      archive: {},
      ...options.definitions,
    },
    stateDirectory: definitionsFolder,
    database,
    runner: createRunner(),
    program: options.examineProgram ?? '/nowhere/examine.cjs',
    signingKey,
    running: options.running ?? (() => undefined),
    version: '1.2.3',
    record: audit.record,
    clock,
    log,
  })
  const body = options.hostBody ?? '{"metadata":{}}'
  await registerRooms(app, {
    api: {
      health: { isAlive: () => true, isReady: () => true, failing: () => [] },
      status: async () => serviceStatus(mode),
    },
    audit: { audits: audit.routes('edge-test'), listTokens, now: () => clock.now() },
    auth: auth.routes,
    cluster: definitions,
    content: { signing: signingKey && { key: signingKey, since: Date.UTC(2026, 0, 31, 8) } },
    host: {
      snapshot: {
        current: () => ({ body, etag: '"1"' }),
        firstLook: () => Promise.resolve(),
        refresh: () => Promise.resolve(),
      },
      settings: settingsOf(mode),
    },
    metrics:
      options.metricsEnabled === false
        ? undefined
        : { metrics, scrapeAccess: await readScrapeAccess(options.tokenFile, log) },
  })
  await app.ready()

  const post = (url: string, payload: unknown, extra: InjectOptions = {}) =>
    app.inject({ method: 'POST', url, payload: payload as string, ...extra })
  const tryLogin = (username: string, password: string, extra?: InjectOptions) =>
    post(loginPath, { username, password }, extra)

  return {
    app,
    routes,
    host,
    clock,
    secret,
    keys,
    accessTokens,
    audit,
    database,
    sessions,
    definitions,
    definitionsFolder,
    lines,
    watch: auth.accountWatch,
    post,
    tryLogin,
    /** Logs in for sure. */
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
      await app.close()
      await definitions.stop()
      metrics.stop()
      audit.stop()
      await reader.close()
      database.close()
      if (options.host === undefined) await host.remove()
      if (options.definitionsFolder === undefined)
        await rm(definitionsFolder, { recursive: true, force: true })
    },
  }
}

export type TestEdge = Awaited<ReturnType<typeof createTestEdge>>
