import { mkdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createAudit } from './audit/audit.ts'
import { createCertificates } from './api/tls/certificates.ts'
import { createHealth } from './api/health.ts'
import { createHttpsServer } from './api/connection/https-server.ts'
import { listen } from './api/connection/listen.ts'
import { createLocalServer } from './api/connection/local-server.ts'
import { createServer } from './api/server.ts'
import { createServiceStatus } from './api/service-status.ts'
import { registerAccessTokens } from './auth/access-token.ts'
import { createAuth } from './auth/auth.ts'
import { createSecret, deriveKeys } from './auth/keys.ts'
import { createDefinitions } from './cluster/definitions.ts'
import type { Config } from './config/schema.ts'
import { noteSigningKey } from './content/signing-key-store.ts'
import { readSigningKey } from './content/signing.ts'
import { createChangeWatches } from './host/change-watch.ts'
import { createHostFiles } from './host/files.ts'
import { settingsOf } from './host/settings.ts'
import { createSnapshot } from './host/snapshot.ts'
import { createJobs } from './jobs/jobs.ts'
import { createJobTable } from './jobs/table.ts'
import { createContinueTokens } from './lists/continue-token.ts'
import { createMetrics } from './metrics/metrics.ts'
import { readScrapeAccess } from './metrics/scrape-access.ts'
import { registerRooms } from './rooms.ts'
import { openDatabase } from './store/database.ts'
import { createReader } from './store/reader.ts'
import { lockState } from './store/state-lock.ts'
import { createWriteProbe } from './store/write-probe.ts'
import { createBus } from './system/bus/bus.ts'
import { systemClock } from './system/clock.ts'
import { sweepTemporary } from './system/files.ts'
import { createFollower } from './system/follower.ts'
import { greetingOf } from './system/greeting.ts'
import { createIssue } from './system/issue.ts'
import type { Logger } from './system/log.ts'
import { createRunner } from './system/runner.ts'
import { readOrMakeSecret } from './system/secret-file.ts'
import { createServiceManager } from './system/service-manager.ts'
import { createTransientUnitRunner } from './system/transient-unit.ts'

export interface DaemonOptions {
  readonly config: Config
  readonly log: Logger
  readonly version: string
  /** Milliseconds since 1970. */
  readonly buildDate: number
}

export interface Daemon {
  /** Ready once it takes connections. */
  start(): Promise<void>
  /** Finishes what is in flight, in reverse order of the start. */
  stop(): Promise<void>
  /** Reads the certificate and the token of the metrics anew; connections live on. */
  reload(): Promise<void>
}

// What is in flight gets this long; the unit's TimeoutStopSec is a little longer.
const drainMs = 10_000

/** Builds every part in start order. The one file that knows all the others. */
export async function createDaemon({ config, log, version, buildDate }: DaemonOptions): Promise<Daemon> {
  const clock = systemClock
  const runner = createRunner(log)
  const systemd = createServiceManager({ runner, environment: process.env, pid: process.pid })

  // State: database, trail, secret.
  const stateDirectory = config.state.directory
  await mkdir(stateDirectory, { recursive: true, mode: 0o700 })
  const lock = lockState(stateDirectory, log)
  await sweepTemporary(stateDirectory)
  await sweepTemporary(join(stateDirectory, 'tls'))
  const database = openDatabase(join(stateDirectory, 'edgehostd.db'), log)
  const reader = createReader(database.sql)
  const audit = createAudit({ settings: config.audit, database, read: reader.read, clock, log })
  const secret = await readOrMakeSecret(join(stateDirectory, 'secret'), 32, () => {
    audit.record({ action: 'create', kind: 'secret', message: 'Make the secret that all tokens depend on' })
    return createSecret()
  })
  const keys = deriveKeys(secret)
  const listTokens = createContinueTokens(keys.lists)

  const privileged =
    systemd.runtimeDirectory === undefined
      ? runner
      : createTransientUnitRunner({ runner, runtimeDirectory: systemd.runtimeDirectory })

  // What this machine is.
  const snapshot = await createSnapshot({
    files: createHostFiles(),
    runner,
    privileged,
    bus: createBus(),
    clock,
    log,
    database,
    config: config.host,
    agentVersion: version,
    onNewIdentity: ({ id, source }) =>
      audit.record({
        action: 'create',
        kind: 'edgehost',
        resourceUid: id,
        message: `Choose the id of this host, from ${source}`,
      }),
  })

  // The HTTPS edge.
  const certificates = createCertificates({
    directory: join(stateDirectory, 'tls'),
    own: ownCertificate(config),
    buildDate,
    clock,
    log,
    names: () => ({ hostName: snapshot.hostName(), addresses: snapshot.addresses() }),
    onNewKey: () => audit.record({ action: 'create', kind: 'key', message: 'Make a private key' }),
    onRefused: (reason) =>
      audit.record({
        ...{ action: 'action', kind: 'certificate', outcome: 'failed' },
        message: `Keep the certificate, the new one cannot be used: ${reason}`,
      }),
  })
  const noteCertificate = () => {
    if (audit.lastResource('certificate', 'create') === certificates.fingerprint()) return
    const notAfter = new Date(certificates.notAfter()).toISOString()
    audit.record({
      action: 'create',
      kind: 'certificate',
      resourceUid: certificates.fingerprint(),
      message: `Put a certificate to use, good until ${notAfter}`,
    })
  }
  await snapshot.refreshNames()
  await certificates.ensure()
  noteCertificate()
  const https = createHttpsServer({ ...config.api, material: certificates.material(), log })
  const local = createLocalServer({ path: config.api.socket.path, timeouts: config.api.timeouts, log })
  const { app, requests, rateRefusals } = createServer({
    log,
    bodyLimitBytes: config.api.body.limitBytes,
    serverFactory: https.serverFactory,
    rateLimits: { settings: config.api.rateLimits, monotonic: () => clock.monotonic() },
    mode: config.host.mode,
    audit: audit.requests,
    authenticate: (token) => auth.sessions.authenticate(token),
    onAuthenticated: (request) => https.markAuthenticated(request.socket),
    isLocal: local.hasAccepted,
  })

  // Users: accounts, PAM, sessions.
  const auth = createAuth({
    settings: config.auth,
    runner,
    privileged,
    database,
    keys,
    accessTokens: await registerAccessTokens(app, keys.access),
    listTokens,
    record: audit.record,
    cores: availableParallelism(),
    clock,
    log,
  })

  // Cluster definitions.
  const signingKey = readSigningKey(config.content.signing.publicKey)
  const signedSince = noteSigningKey(signingKey, { database, record: audit.record, clock })
  const definitions = await createDefinitions({
    settings: config.definitions,
    stateDirectory,
    database,
    runner,
    program: join(import.meta.dirname, 'examine.cjs'),
    signingKey,
    // No cluster can be created yet.
    running: () => undefined,
    version,
    record: audit.record,
    clock,
    log,
  })

  const health = createHealth({
    alive: { jobs: () => jobs.areMoving() },
    ready: {
      database: createWriteProbe(database, { log, monotonic: () => clock.monotonic() }),
      'host facts': () => snapshot.current() !== undefined,
    },
    log,
  })
  const metrics = createMetrics(
    {
      build: { version, node: process.version, mode: config.host.mode },
      requests: requests.figures,
      rateRefusals,
      connections: https.connections,
      logins: auth.logins,
      pam: auth.pam,
      sessions: () => auth.sessions.list().length,
      facts: snapshot.readings,
      jobs: () => jobs.figures(),
      certificateEnd: certificates.notAfter,
      auditUnwritten: audit.unwritten,
      stateDirectory,
    },
    () => clock.monotonic(),
  )
  const scrapeAccess = await readScrapeAccess(
    config.metrics.enabled ? config.metrics.tokenFile : undefined,
    log,
  )
  const audits = audit.routes(snapshot.id)
  const status = createServiceStatus({
    version,
    mode: config.host.mode,
    port: config.api.port,
    stateDirectory,
    clock,
    addresses: snapshot.addresses,
    certificates,
    isOwnCertificate: ownCertificate(config) === undefined,
    failing: health.failing,
    unwrittenAudits: audits.unwritten,
  })
  await registerRooms(app, {
    api: { health, status },
    audit: { audits, listTokens, now: () => clock.now() },
    auth: auth.routes,
    cluster: definitions,
    content: { signing: signingKey && { key: signingKey, since: signedSince ?? clock.now() } },
    host: { snapshot, settings: settingsOf(config.host.mode) },
    metrics: config.metrics.enabled ? { metrics, scrapeAccess } : undefined,
  })

  // What the console shows.
  const issue = createIssue({ file: config.host.console.issueFile, runner, log })
  let bound: AddressInfo | undefined
  const greet = async () => {
    if (!bound) return
    const fingerprint = certificates.fingerprint()
    await issue.show(greetingOf({ bound, addresses: snapshot.addresses(), fingerprint }))
  }

  const useCertificate = (isNew: boolean) => {
    if (!isNew) return
    noteCertificate()
    void greet()
    https.useCertificate(certificates.material())
    log.info(
      { fingerprint: certificates.fingerprint(), notAfter: certificates.notAfter() },
      'certificate in use',
    )
  }
  const renewCertificate = async () => useCertificate(await certificates.ensure())

  const watches = createChangeWatches(createFollower({ log }), (part) => void snapshot.refresh(part))
  const table = createJobTable({
    refreshSeconds: () => snapshot.refresh('seconds', ...watches.unwatched()),
    refreshMinutes: () => snapshot.refresh('minutes', 'network', 'mounts'),
    checkAccounts: () => auth.accountWatch.check(),
    renewCertificate,
    keepAudit: () => audit.keep(),
  })
  const jobs = createJobs(table, { log, monotonic: () => clock.monotonic() })
  snapshot.onNamesChange(() => {
    void greet()
    renewCertificate().catch((error: unknown) =>
      log.error(
        { err: error },
        'the certificate could not be renewed; try it now with: systemctl reload edgehostd',
      ),
    )
  })

  const startBackground = () => {
    void snapshot.firstLook()
    void definitions.start()
    watches.start()
    jobs.start()
  }
  let starting: NodeJS.Timeout | undefined

  return {
    async start() {
      // Before the first request: accounts may have changed while the daemon was down.
      await auth.accountWatch.check()
      bound = await listen(app, { ...config.api, inherited: systemd.listenFds, local })
      const { address, port } = bound
      // Before systemd is told: whoever waited for the start may print it.
      await greet()
      auth.accountWatch.start()
      // Whoever waits for the daemon comes first; one that asks about the host begins the look at it himself.
      starting = setTimeout(startBackground, 1_000)
      systemd.startWatchdog(() => jobs.areMoving())
      log.info(
        { address, port, version, mode: config.host.mode, fingerprint: certificates.fingerprint() },
        'listening',
      )
      await systemd.notify('READY=1', `STATUS=listening on port ${port}`)
      audit.record({
        action: 'action',
        kind: 'daemon',
        message: `Start version ${version} in mode ${config.host.mode}`,
      })
      audit.announceHead()
    },
    async stop() {
      // Not waited for: what is in flight matters more than that systemd knows.
      systemd
        .notify('STOPPING=1')
        .catch((error: unknown) =>
          log.warn({ err: error }, 'systemd was not told; see: systemctl status edgehostd'),
        )
      clearTimeout(starting)
      jobs.stop()
      watches.stop()
      auth.accountWatch.stop()
      metrics.stop()
      const deadline = setTimeout(() => {
        https.closeConnections()
        local.closeConnections()
      }, drainMs)
      // An upload may take an hour more.
      const definitionsStopped = definitions.stop()
      await Promise.all([app.close(), local.close()])
      clearTimeout(deadline)
      await definitionsStopped
      https.stop()
      await issue.remove()
      systemd.stopWatchdog()
      audit.stop()
      audit.record({ action: 'action', kind: 'daemon', message: 'Stop' })
      audit.announceHead()
      await reader.close()
      database.close()
      lock.release()
      log.info('stopped')
    },
    async reload() {
      useCertificate(await certificates.reload())
      await scrapeAccess.reload()
    },
  }
}

function ownCertificate({ api: { tls } }: Config) {
  const { certificateFile, keyFile } = tls
  return certificateFile !== undefined && keyFile !== undefined ? { certificateFile, keyFile } : undefined
}
