import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createHealth } from './service/health.ts'
import { createServiceStatus } from './service/status.ts'
import { registerAccessTokens } from './auth/access-token.ts'
import { createAuth } from './auth/auth.ts'
import { createDefinitions } from './definition/definitions.ts'
import type { Config } from './config/schema.ts'
import { noteSigningKey } from './upload/signing-key-store.ts'
import { readSigningKey } from './upload/signing.ts'
import { createEdge } from './edge.ts'
import { createChangeWatches } from './host/change-watch.ts'
import { createHostFiles } from './host/files.ts'
import { createOwnAddresses } from './host/network/own-addresses.ts'
import { settingsOf } from './host/settings.ts'
import { createSnapshot } from './host/snapshot.ts'
import { createJobs } from './jobs/jobs.ts'
import { createJobTable } from './jobs/table.ts'
import { createContinueTokens } from './lists/continue-token.ts'
import { createMetrics } from './metrics/metrics.ts'
import { readScrapeAccess } from './metrics/scrape-access.ts'
import { registerRooms } from './rooms.ts'
import { openState } from './state.ts'
import { createWriteProbe } from './store/write-probe.ts'
import { reachableBy } from './base/address.ts'
import { clientOf as clientAmong } from './base/client.ts'
import { systemClock } from './system/clock.ts'
import { createFollower } from './system/follower.ts'
import { greetingOf } from './service/console-text.ts'
import { createIssue } from './service/console.ts'
import type { Logger } from './system/log.ts'
import { createRunner } from './system/runner.ts'
import { createStrangerLog } from './system/stranger-log.ts'
import { createServiceManager } from './service/systemd.ts'
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

/** Builds every part in start order. The one file that knows all the others. */
export async function createDaemon({ config, log, version, buildDate }: DaemonOptions): Promise<Daemon> {
  const clock = systemClock
  const strangers = createStrangerLog(log, () => clock.monotonic())
  const runner = createRunner(log)
  const systemd = createServiceManager({ runner, environment: process.env, pid: process.pid })

  // What outlives the daemon.
  const state = await openState({ config, clock, log, onStranger: strangers.reserve })
  const { database, audit, keys } = state
  const listTokens = createContinueTokens(keys.lists)

  const privileged =
    systemd.runtimeDirectory === undefined
      ? runner
      : createTransientUnitRunner({ runner, runtimeDirectory: systemd.runtimeDirectory })

  // What this machine is.
  const files = createHostFiles()
  const own = createOwnAddresses(files)
  await own.refresh()
  const clientOf = (address: string) => clientAmong(address, own.current())
  const snapshot = await createSnapshot({
    files,
    runner,
    privileged,
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
  await snapshot.refreshNames()
  const stopping = new AbortController()
  const edge = await createEdge({
    stopping: stopping.signal,
    config,
    stateDirectory: state.directory,
    buildDate,
    names: snapshot,
    audit,
    authenticate: (token) => auth.sessions.authenticate(token),
    holderOf: (token) => auth.sessions.holderOf(token),
    isKnownClient: (client) => auth.isKnownClient(client),
    clientOf,
    onNewCertificate: () => void greet(),
    clock,
    log,
    strangers,
  })
  const { app, certificates } = edge

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
    onCallersGone: edge.endSessions,
    clientOf,
    cores: availableParallelism(),
    clock,
    log,
    strangers,
  })

  // Cluster definitions.
  const signingKey = readSigningKey(config.content.signing.publicKey)
  const signedSince = noteSigningKey(signingKey, { database, record: audit.record, clock })
  const definitions = await createDefinitions({
    settings: config.definitions,
    stateDirectory: state.directory,
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
      ...edge.figures,
      logins: auth.logins,
      pam: auth.pam,
      sessions: () => auth.sessions.list().length,
      facts: snapshot.readings,
      jobs: () => jobs.figures(),
      certificateEnd: certificates.notAfter,
      auditUnwritten: audit.unwritten,
      stateDirectory: state.directory,
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
    stateDirectory: state.directory,
    clock,
    addresses: () => reachableBy(config.api.address, snapshot.addresses()),
    certificates,
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

  const watches = createChangeWatches(
    { follower: createFollower({ log }), log },
    (part) => void snapshot.refresh(part),
  )
  const table = createJobTable({
    refreshSeconds: () => snapshot.refresh('seconds', ...watches.unwatched()),
    refreshOwnAddresses: () => own.refresh(),
    refreshMinutes: () => snapshot.refresh('minutes', 'network', 'mounts', 'services'),
    keepGuesses: async () => auth.guesses.keep(),
    checkAccounts: () => auth.accountWatch.check(),
    renewCertificate: edge.renewCertificate,
    keepAudit: () => audit.keep(),
  })
  const jobs = createJobs(table, { log, monotonic: () => clock.monotonic() })
  snapshot.onNamesChange(() => {
    void greet()
    edge
      .renewCertificate()
      .catch((error: unknown) =>
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
    auth.accountWatch.checkInBackground()
  }
  let starting: NodeJS.Timeout | undefined

  return {
    async start() {
      // Before the first request: accounts may have changed while the daemon was down. Only what the local files say;
      // a directory that hangs must not keep the port closed.
      auth.accountWatch.start()
      bound = await edge.listen(systemd.listenFds)
      const { address, port } = bound
      // Before systemd is told: whoever waited for the start may print it.
      await greet()
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
      stopping.abort()
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
      // An upload may take an hour more.
      const definitionsStopped = definitions.stop()
      await edge.close()
      await definitionsStopped
      await issue.remove()
      systemd.stopWatchdog()
      auth.guesses.keep()
      strangers.stop()
      audit.stop()
      audit.record({ action: 'action', kind: 'daemon', message: 'Stop' })
      audit.announceHead()
      await state.close()
      log.info('stopped')
    },
    async reload() {
      await edge.reloadCertificate()
      await scrapeAccess.reload()
    },
  }
}
