import type { FastifyInstance } from 'fastify'
import { join } from 'node:path'
import { requireSpace } from '../api/full-disk.ts'
import { createApi, type Api } from '../api/room.ts'
import { createAudit, type Audit } from '../audit/audit.ts'
import { requireFinishedRestore } from '../backup/unfinished-restore.ts'
import { clientOfAddress } from '../base/client.ts'
import { createCertificateRoom, type CertificateRoom } from '../certificate/room.ts'
import { findDamagedPair } from '../certificate/self-signed.ts'
import { createJobs } from '../jobs/jobs.ts'
import { createContinueTokens } from '../lists/continue-token.ts'
import { createMetrics } from '../metrics/room.ts'
import { createPages } from '../pages/routes.ts'
import { families, type PlatformConfig } from './declarations.ts'
import { platformEdges, type PlatformEdges } from './edges.ts'
import { migrations } from './migrations.ts'
import { commonParameters } from '../platform/requests/scope.ts'
import { createCallerChanges } from '../platform/requests/changes.ts'
import { rateRows } from '../platform/requests/rates.ts'
import { createPlatformRoom, type PlatformRoom } from '../platform/room.ts'
import { systemRoutes } from '../platform/system/routes.ts'
import { recordChange, requireFinishedChange } from '../platform/system/secret.ts'
import { createOwnNames, hasTenant, hasTrail, openTenant, type Tenant } from '../platform/system/tenant.ts'
import { findLostKey, hasKeptFolders, notWhole, recordRecovery } from '../platform/system/whole-state.ts'
import { createPhases } from '../root/phases.ts'
import type { Ground, Room } from '../root/room.ts'
import type { Daemon, DaemonOptions } from '../root/run-program.ts'
import { createService } from '../service/room.ts'
import { createServiceManager } from '../service/systemd.ts'
import { openState, type State } from '../root/state.ts'

export interface PlatformOptions extends DaemonOptions<PlatformConfig> {
  /** The edges that a test replaces; the others are of this machine. */
  readonly edges?: Partial<PlatformEdges>
}

export interface Platform extends Daemon {
  /** The app of the port; `inject` sends it a request without a connection. */
  readonly app: FastifyInstance
  readonly rooms: {
    readonly state: State
    readonly audit: Audit
    readonly people: PlatformRoom['people']
    readonly hosts: PlatformRoom['hosts']
    readonly packs: PlatformRoom['packs']
    readonly clusters: PlatformRoom['clusters']
    readonly certificate: CertificateRoom
    readonly api: Api
  }
}

/** Builds every room of the platform in start order, as `edgehostd/root.ts` does for a host. Nothing of `host` or PAM is a part of it. */
export async function createPlatform(options: PlatformOptions): Promise<Platform> {
  const { config, log, version, buildDate } = options
  const edges = { ...platformEdges(log), ...options.edges }
  const { runner, clock, anonymousLog } = edges
  const stop = new AbortController()
  const systemd = createServiceManager({ runner, environment: edges.environment, pid: process.pid })

  // The ground: the state folder, the tenant, and the audit trail.
  await requireFinishedRestore(config.state.directory)
  await requireFinishedChange(config.state.directory)
  if (config.api.tls.certificateFile === undefined) {
    const damaged = await findDamagedPair(join(config.state.directory, 'tls'))
    if (damaged !== undefined) throw notWhole(damaged)
  }
  // Twenty users who filter at once wait for each other, and none is refused.
  let firstTenant: Tenant | undefined
  const state = await openState({
    settings: config.state,
    migrations,
    maximumWaiting: 64,
    clock,
    log,
    whole: {
      hasFiles: hasKeptFolders,
      hasStarted: hasTenant,
      isUsed: hasTrail,
      begin(opened) {
        firstTenant = openTenant({ database: opened, clock })
      },
      refuse: notWhole,
    },
  })
  const { database, read, secrets } = state
  const tenant = firstTenant ?? openTenant({ database, clock })
  const listTokens = createContinueTokens(secrets.derive('continue token'))
  const audit = createAudit({
    settings: config.audit,
    database,
    read,
    edgeHostId: tenant.uid,
    listTokens,
    clock,
    log,
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

  const ground: Ground<PlatformConfig> = {
    config,
    version,
    stateDirectory: state.directory,
    database,
    read,
    secrets,
    record: audit.record,
    completeUntil: audit.completeUntil,
    listTokens,
    runner,
    stopping: stop.signal,
    clock,
    log,
    anonymousLog,
  }

  const names = createOwnNames({ hostName: config.platform.hostName })
  const certificate = await createCertificateRoom(ground, {
    buildDate,
    names,
    // Hosts that have pinned it would not connect any more.
    staysForAddresses: true,
    lastResource: audit.lastResource,
  })
  const port = config.api.port === 443 ? '' : `:${config.api.port}`
  const changes = createCallerChanges()
  const platform = await createPlatformRoom(ground, {
    tenantUid: tenant.uid,
    audit,
    changes,
    hasSpace: () => state.reserve.admits(),
    requireSpace: () => requireSpace(state.reserve),
    examineProgram: edges.examineProgram,
    passwordCost: edges.passwordCost,
    origin: () => `https://${names.hostName()}${port}`,
  })
  const api = createApi(ground, {
    mode: 'airgap',
    material: certificate.material(),
    audit: audit.requests,
    disk: state.reserve,
    identify: platform.identify,
    authorize: platform.authorize,
    holderOf: () => undefined,
    isKnownClient: () => false,
    rateRows,
    commonParameters,
    keptConnections: platform.keptConnections,
    clientOf: clientOfAddress,
  })
  changes.attach(api)
  certificate.onChange(() => api.useCertificate(certificate.material()))

  // The platform has routes of its own for the trail.
  const trail: Room = Object.fromEntries(Object.entries(audit).filter(([name]) => name !== 'routes'))
  const working: Room[] = [trail, state.room, { jobs: [names.job] }, platform, certificate, api]

  // The rooms that collect from all others.
  const jobs = createJobs(
    working.flatMap((room) => room.jobs ?? []),
    { log, monotonic: () => clock.monotonic() },
  )
  const observed = [...working, jobs]
  const metrics = await createMetrics(ground, {
    families,
    figures: observed.flatMap((room) => room.figures ?? []),
  })
  const service = createService(ground, {
    names,
    certificate,
    checks: observed.flatMap((room) => room.checks ?? []),
    unwrittenAudits: audit.unwritten,
    systemd,
    addRoutes: async (app, { health, status }) => {
      await systemRoutes(app, { health, status })
    },
  })
  const pages = createPages(ground, { folder: edges.pagesFolder })
  const rooms: readonly Room[] = [...observed, metrics, service, pages]
  for (const room of rooms) await room.routes?.(api.app)
  const { people, hosts, packs, clusters } = platform

  return {
    app: api.app,
    rooms: { state, audit, people, hosts, packs, clusters, certificate, api },
    ...createPhases({ rooms, api, inherited: systemd.listenFds, state, stop, anonymousLog, log }),
  }
}
