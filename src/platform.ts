import type { FastifyInstance } from 'fastify'
import { join } from 'node:path'
import { requireSpace } from './api/full-disk.ts'
import { createApi, type Api } from './api/room.ts'
import { createAudit, type Audit } from './audit/audit.ts'
import { requireFinishedRestore } from './backup/unfinished-restore.ts'
import { clientOfAddress } from './base/client.ts'
import { createCertificateRoom, type CertificateRoom } from './certificate/room.ts'
import { findDamagedPair } from './certificate/self-signed.ts'
import { createJobs } from './jobs/jobs.ts'
import { createContinueTokens } from './lists/continue-token.ts'
import { createMetrics } from './metrics/room.ts'
import { families, type PlatformConfig } from './platform-declarations.ts'
import { platformEdges, type PlatformEdges } from './platform-edges.ts'
import { migrations } from './platform/migrations.ts'
import { createAuthorize, createIdentify } from './platform/requests/identify.ts'
import { createCloudParts } from './platform/clouds/clouds.ts'
import { createClusterStore } from './platform/clusters/store.ts'
import { createClusterParts, type ClusterParts } from './platform/clusters/reports.ts'
import { createWantedIndex } from './platform/clusters/downloads.ts'
import { createOwnNames, hasTenant, hasTrail, openTenant, type Tenant } from './platform/system/tenant.ts'
import { createEvents } from './platform/events/events.ts'
import { createHostParts, type HostParts } from './platform/hosts/hosts.ts'
import { keptHosts } from './platform/hosts/store.ts'
import { createKeyStore, createKeys } from './platform/keys/keys.ts'
import { createPackParts, type PackParts } from './platform/packs/packs.ts'
import type { CallerChanges } from './platform/requests/changes.ts'
import { createProjects, createRequireProject } from './platform/projects/projects.ts'
import { createProjectStore } from './platform/projects/store.ts'
import { createAudits } from './platform/audits/audits.ts'
import { apiKeyRoutes } from './platform/keys/routes.ts'
import { auditRoutes } from './platform/audits/routes.ts'
import { authRoutes } from './platform/users/routes-sign-in.ts'
import { createEdgeMachines } from './platform/clouds/machines.ts'
import { cloudConfigRoutes, cloudRoutes } from './platform/clouds/routes.ts'
import { clusterReportRoutes } from './platform/clusters/routes-reports.ts'
import { clusterRoutes } from './platform/clusters/routes.ts'
import { edgeHostRoutes } from './platform/hosts/routes.ts'
import { hostReportRoutes } from './platform/hosts/routes-reports.ts'
import { eventRoutes } from './platform/events/routes.ts'
import { packRoutes } from './platform/packs/routes.ts'
import { profileRoutes } from './platform/profiles/routes.ts'
import { projectRoutes } from './platform/projects/routes.ts'
import { registrationTokenRoutes } from './platform/tokens/routes.ts'
import { commonParameters } from './platform/requests/scope.ts'
import { systemRoutes } from './platform/system/routes.ts'
import { userRoutes } from './platform/users/routes.ts'
import { rateRows } from './platform/requests/rates.ts'
import { recordChange, requireFinishedChange } from './platform/system/secret.ts'
import { findLostKey, hasKeptFolders, notWhole, recordRecovery } from './platform/system/whole-state.ts'
import { createUserParts, type UserParts } from './platform/users/users.ts'
import { createPhases } from './phases.ts'
import type { Room } from './room.ts'
import type { Daemon, DaemonOptions } from './run-program.ts'
import { createService } from './service/room.ts'
import { createServiceManager } from './service/systemd.ts'
import { openState, type State } from './state.ts'

export interface PlatformOptions extends DaemonOptions<PlatformConfig> {
  /** The edges that a test replaces; the others are those of this machine. */
  readonly edges?: Partial<PlatformEdges>
}

export interface Platform extends Daemon {
  /** The app of the port; `inject` sends it a request without a connection. */
  readonly app: FastifyInstance
  readonly rooms: {
    readonly state: State
    readonly audit: Audit
    readonly people: UserParts
    readonly hosts: HostParts
    readonly packs: PackParts
    readonly clusters: ClusterParts
    readonly certificate: CertificateRoom
    readonly api: Api
  }
}

/** Builds every room of the platform in start order, as `daemon.ts` does for a host. Nothing of `host` or PAM is a part of it. */
export async function createPlatform(options: PlatformOptions): Promise<Platform> {
  const { config, log, version, buildDate } = options
  const edges = { ...platformEdges(log), ...options.edges }
  const { runner, clock, anonymousLog } = edges
  const stop = new AbortController()
  const stopping = stop.signal
  const systemd = createServiceManager({ runner, environment: edges.environment, pid: process.pid })

  // The state folder, the tenant, and the audit trail.
  await requireFinishedRestore(config.state.directory)
  await requireFinishedChange(config.state.directory)
  if (config.api.tls.certificateFile === undefined) {
    const damaged = await findDamagedPair(join(config.state.directory, 'tls'))
    if (damaged !== undefined) throw notWhole(damaged)
  }
  // Twenty users who filter at once wait for each other, and none is refused.
  let begun: Tenant | undefined
  const state = await openState({
    ...{ settings: config.state, migrations, maximumWaiting: 64, clock, log },
    whole: {
      hasFiles: hasKeptFolders,
      isBegun: hasTenant,
      isUsed: hasTrail,
      begin(opened) {
        begun = openTenant({ database: opened, clock })
      },
      refuse: notWhole,
    },
  })
  const { database, read, secrets } = state
  const tenant = begun ?? openTenant({ database, clock })
  const listTokens = createContinueTokens(secrets.derive('continue token'))
  const audit = createAudit({
    ...{ settings: config.audit, database, read, edgeHostId: tenant.uid, listTokens, clock, log },
    stateDirectory: state.directory,
    startMessage: `Start version ${version}`,
    onAnonymous: anonymousLog.reserve,
  })
  if (config.api.tls.certificateFile === undefined && audit.lastResource('key', 'create') !== undefined) {
    const lost = await findLostKey(state.directory)
    if (lost !== undefined) {
      await state.close()
      throw notWhole(lost)
    }
  }
  for (const entry of [...state.auditEntries, ...tenant.auditEntries]) audit.record(entry)
  await recordChange(state.directory, audit.record)
  await recordRecovery(state.directory, audit.record)

  const names = createOwnNames({ hostName: config.platform.hostName })
  const certificate = await createCertificateRoom({
    ...{ settings: config.api.tls, directory: join(state.directory, 'tls'), buildDate, names },
    // Hosts that have pinned it would not connect any more.
    staysForAddresses: true,
    ...{ record: audit.record, lastResource: audit.lastResource, clock, log },
  })
  const changes: CallerChanges = {
    gone: (isGone) => api.endSessions(isGone),
    rightsChanged: () => api.recheckRights(),
  }
  const port = config.api.port === 443 ? '' : `:${config.api.port}`
  const people = await createUserParts({
    ...{
      guard: config.platform.guard,
      database,
      secrets,
      clientOf: clientOfAddress,
      changes,
      clock,
      log,
      anonymousLog,
    },
    origin: () => `https://${names.hostName()}${port}`,
    passwordCost: edges.passwordCost,
  })
  const projectStore = createProjectStore(database)
  const requireProject = createRequireProject(projectStore)
  const clusterStore = createClusterStore(database)
  const index = createWantedIndex(clusterStore)
  const hosts = await createHostParts({
    ...{ database, read, secrets, tenantUid: tenant.uid, findProject: projectStore.find, clock, log },
    clusterOn: index.clusterOn,
    changes,
    requireSpace: () => requireSpace(state.reserve),
  })
  const packs = await createPackParts({
    ...{ stateDirectory: state.directory, settings: config.platform.packs, database, read, secrets },
    completeUntil: audit.completeUntil,
    ...{ worker: { runner, program: edges.examineProgram, log }, usesOf: clusterStore.using },
    madeOf: clusterStore.madeOf,
    ...{ requireProject, stopping, clock, log },
  })
  const clusters = await createClusterParts({
    ...{ stateDirectory: state.directory, settings: config.platform.packs, store: clusterStore, index },
    completeUntil: audit.completeUntil,
    ...{ database, read, secrets, tenantUid: tenant.uid, hosts, packs, clock, log },
    hasSpace: () => state.reserve.admits(),
  })
  const clouds = await createCloudParts({
    ...{ settings: config.clouds, database, read, secrets, requireProject, stopping, clock, log },
  })
  const events = createEvents({ database, read, clock })
  const keys = createKeys({
    ...{ store: createKeyStore(database), findUser: people.find, transaction: database.transaction },
    ...{ changes, clock },
  })
  const audits = createAudits({
    ...{ database, read, count: audit.count, tenantUid: tenant.uid },
    ...{ findUser: people.find, findProject: projectStore.find },
  })
  const projects = createProjects({
    ...{
      store: projectStore,
      isUser: people.isUser,
      roleOf: people.roleOf,
      usesOf: (uid) => [
        ...[...clusters.clusters.usesOfProject(uid), ...hosts.usesOf(uid), ...packs.usesOf(uid)],
        ...clouds.usesOf(uid),
      ],
      transaction: database.transaction,
      changes,
      clock,
    },
  })
  const api = createApi({
    ...{
      settings: config.api,
      mode: 'airgap',
      material: certificate.material(),
      audit: audit.requests,
      disk: state.reserve,
    },
    ...{
      identify: createIdentify({ ...people, keys, authenticateHost: hosts.authenticate }),
      authorize: createAuthorize({ ...people, projects: projectStore }),
      holderOf: () => undefined,
      isKnownClient: () => false,
      rateRows,
      commonParameters,
      keptConnections: keptHosts(config.platform.keptConnections),
    },
    ...{ clientOf: clientOfAddress, anonymousLog, stopping, clock, log },
  })
  certificate.onChange(() => api.useCertificate(certificate.material()))

  // The platform has routes of its own for the trail.
  const trail: Room = Object.fromEntries(Object.entries(audit).filter(([name]) => name !== 'routes'))
  const platform: Room = {
    jobs: [names.job, ...people.jobs, ...hosts.jobs, events.job],
    async stop() {
      hosts.stop()
      people.stop()
      clouds.stop()
      await packs.stop()
    },
    async routes(app) {
      await authRoutes(app, people)
      await apiKeyRoutes(app, { keys, listTokens })
      await registrationTokenRoutes(app, { tokens: hosts.tokens, listTokens })
      await edgeHostRoutes(app, { ...clusters, hosts, listTokens })
      await hostReportRoutes(app, { ...clusters, hosts })
      await eventRoutes(app, { events, findHost: hosts.find, listTokens })
      await packRoutes(app, { packs: packs.packs, listTokens })
      await profileRoutes(app, { ...packs, listTokens })
      await cloudConfigRoutes(app, {
        ...{ clusters: clusters.clusters, edgeMachines: createEdgeMachines({ ...hosts, now: clock.now }) },
        ...{ configs: clouds.configs, listTokens },
      })
      await cloudRoutes(app, { accounts: clouds.accounts, listTokens })
      await clusterRoutes(app, { clusters: clusters.clusters, listTokens })
      await clusterReportRoutes(app, clusters)
      await auditRoutes(app, { audits, access: audit.access, listTokens, now: () => clock.now() })
      await projectRoutes(app, { projects, listTokens, emailOf: (uid) => people.find(uid)?.email })
      await userRoutes(app, { ...people, tenantUid: tenant.uid, listTokens })
    },
  }
  const working: Room[] = [trail, state.room, platform, certificate, api]

  // The rooms that collect from all others.
  const jobs = createJobs(
    working.flatMap((room) => room.jobs ?? []),
    { log, monotonic: () => clock.monotonic() },
  )
  const observed = [...working, jobs]
  const metrics = await createMetrics({
    ...{ settings: config.metrics, families, build: { version }, clock, log },
    figures: observed.flatMap((room) => room.figures ?? []),
  })
  const service = createService({
    ...{ version, listen: config.api, stateDirectory: state.directory, names, certificate, systemd, runner },
    ...{ unwrittenAudits: audit.unwritten, stopping, clock, log },
    addRoutes: async (app, { health, status }) => {
      await systemRoutes(app, { health, status })
    },
    checks: observed.flatMap((room) => room.checks ?? []),
  })
  const rooms: readonly Room[] = [...observed, metrics, service]
  for (const room of rooms) await room.routes?.(api.app)

  return {
    app: api.app,
    rooms: { state, audit, people, hosts, packs, clusters, certificate, api },
    ...createPhases({ rooms, api, inherited: systemd.listenFds, state, stop, anonymousLog, log }),
  }
}
