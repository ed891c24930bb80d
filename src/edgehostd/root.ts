import type { FastifyInstance } from 'fastify'
import { join } from 'node:path'
import { createBodyCheck } from '../api/compilers.ts'
import { identifyByToken } from '../api/guard.ts'
import { createApi, type Api } from '../api/room.ts'
import { createAudit, type Audit } from '../audit/audit.ts'
import { createAuth, type Auth } from '../auth/auth.ts'
import { createCertificateRoom } from '../certificate/room.ts'
import { createCluster, type ClusterRoom } from '../cluster/room.ts'
import { ClusterConfiguration } from '../cluster/schemas.ts'
import { createContent, type ContentRoom } from '../content/room.ts'
import { declarations, families, type Config } from './declarations.ts'
import { createDefinitions, type Definitions } from '../definition/definitions.ts'
import { hostEdges, type Edges } from './edges.ts'
import { openHostRecord } from '../host/identity/host-record.ts'
import { createHost } from '../host/room.ts'
import { createImagesRoom } from '../images/room.ts'
import { createInventory, inventoryUnit } from '../inventory/room.ts'
import { createJobs } from '../jobs/jobs.ts'
import { createContinueTokens } from '../lists/continue-token.ts'
import { createMetrics } from '../metrics/room.ts'
import { migrations } from './migrations.ts'
import { createPhases } from '../root/phases.ts'
import type { Ground, Room } from '../root/room.ts'
import type { Daemon as Program, DaemonOptions as ProgramOptions } from '../root/run-program.ts'
import { createService } from '../service/room.ts'
import { serviceRoutes } from '../service/routes.ts'
import { createServiceManager } from '../service/systemd.ts'
import { openState, type State } from '../root/state.ts'
import { createTransientUnitRunner, type TransientUnitOptions } from '../system/transient-unit.ts'
import { createUplink, type Uplink } from '../uplink/room.ts'
import { parseSigningKey } from '../upload/signing.ts'

export interface DaemonOptions extends ProgramOptions<Config> {
  /** The edges that a test replaces; the others are those of this machine. */
  readonly edges?: Partial<Edges>
}

export interface Daemon extends Program {
  /** The app of the port; `inject` sends it a request without a connection. */
  readonly app: FastifyInstance
  readonly rooms: {
    readonly state: State
    readonly audit: Audit
    readonly auth: Auth
    readonly api: Api
    readonly definition: Definitions
    readonly content: ContentRoom
    readonly cluster: ClusterRoom
    readonly jobs: Room
  }
}

/** Builds every room in start order. Only this file knows all rooms. */
export async function createDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, log, version, buildDate } = options
  const edges = { ...hostEdges(log), ...options.edges }
  const { runner, clock, files, anonymousLog } = edges
  const { mode } = config.host
  const stop = new AbortController()
  const stopping = stop.signal
  const systemd = createServiceManager({ runner, environment: edges.environment, pid: process.pid })
  const { runtimeDirectory } = systemd
  /** Runs commands outside the sandbox of the daemon's unit. */
  const outside = (more: Partial<TransientUnitOptions> = {}) =>
    runtimeDirectory === undefined ? runner : createTransientUnitRunner({ runner, runtimeDirectory, ...more })
  const privileged = outside()

  // The state folder, the identity of this host, and the audit trail.
  const state = await openState({ settings: config.state, migrations, clock, log })
  const { database, read, secrets } = state
  const record = await openHostRecord({ settings: config.host, files, database, clock, log })
  const listTokens = createContinueTokens(secrets.derive('continue token'))
  const audit = createAudit({
    ...{ settings: config.audit, database, read, edgeHostId: record.id, listTokens, clock, log },
    stateDirectory: state.directory,
    startMessage: `Start version ${version} in mode ${mode}`,
    onAnonymous: anonymousLog.reserve,
  })
  for (const entry of [...state.auditEntries, ...record.auditEntries]) audit.record(entry)

  const inventory = createInventory({
    ...{ database, runner: outside(inventoryUnit), program: edges.inventoryProgram, files },
    ...{ stopping, clock, log },
  })
  const host = await createHost({
    ...{ config: config.host, record, agentVersion: version, files, runner, privileged, clock, log },
    ...{ follower: edges.follower, facts: edges.facts, supplement: inventory.supplement },
    cluster: () => cluster.hostInCluster(),
    platform: () => uplink.inHostInfo(),
  })
  const uplink: Uplink = await createUplink({
    ...{
      settings: config.platform,
      mode,
      stateDirectory: state.directory,
      secrets,
      database,
      hostId: record.id,
      host,
    },
    ...{ configuredName: config.host.name, agentVersion: version, record: audit.record },
    ...{ client: edges.platformClient, pause: edges.platformPause, stopping, clock, log },
    cluster: {
      current: () => cluster.fromPlatform.current(),
      apply: (delivery, signal) => cluster.fromPlatform.apply(delivery, signal),
      report: () => cluster.platformReport(),
    },
    limits: {
      definitionBytes: config.definitions.upload.limitBytes,
      reserveBytes: config.definitions.upload.reserveBytes,
    },
    failing: () =>
      observed
        .flatMap((room) => room.checks ?? [])
        .filter(({ holds }) => !holds())
        .map(({ name }) => name),
  })
  uplink.onChange(() => void host.refresh())
  const certificate = await createCertificateRoom({
    ...{ settings: config.api.tls, directory: join(state.directory, 'tls'), buildDate, names: host },
    ...{ record: audit.record, lastResource: audit.lastResource, clock, log },
  })
  const auth = await createAuth({
    ...{ settings: config.auth, runner, privileged, database, secrets, listTokens, clock, log, anonymousLog },
    stateDirectory: state.directory,
    ...{ record: audit.record, clientOf: host.clientOf, cores: edges.cores, etc: edges.etc },
  })
  const api = createApi({
    ...{ settings: config.api, mode, material: certificate.material(), audit: audit.requests, clock, log },
    ...{
      disk: state.reserve,
      identify: identifyByToken(auth.authenticate),
      holderOf: auth.holderOf,
      isKnownClient: auth.isKnownClient,
    },
    ...{ clientOf: host.clientOf, anonymousLog, stopping, longRequestMs: edges.longRequestMs },
  })
  auth.onCallersGone(api.endSessions)
  certificate.onChange(() => api.useCertificate(certificate.material()))
  const signingKey = parseSigningKey(config.content.signing.publicKey)
  const definition = await createDefinitions({
    ...{ settings: config.definitions, stateDirectory: state.directory, database, version, stopping },
    ...{ runner, program: edges.examineProgram, record: audit.record, clock, log },
    completeUntil: audit.completeUntil,
    signingKey,
    hasCluster: () => (edges.running ? edges.running() !== undefined : cluster.hasCluster()),
    running: async () => (edges.running ? edges.running() : cluster.profiles()),
  })
  const content = createContent({
    ...{ settings: config.content, stateDirectory: state.directory, database, signingKey, runner, stopping },
    ...{ program: edges.contentProgram, architecture: edges.architecture },
    definitions: {
      examineBundled: definition.examineBundled,
      async bundlesChanged(bundled) {
        // What a room needs of the content does not wait until a definition was examined.
        uplink.contentChanged()
        await definition.bundlesChanged(bundled)
      },
    },
    ...{ bootId: edges.bootId, record: audit.record, listTokens, clock, log },
    ...{ certificate, clientOf: host.clientOf, flow: api.flow, anonymousLog },
  })

  const cluster: ClusterRoom = await createCluster({
    ...{ settings: config.cluster, definitionSettings: config.definitions, database, secrets, files, host },
    ...{ stateDirectory: state.directory, hostId: record.id, definition, content, version, runner, stopping },
    ...{ listTokens, certificate: () => certificate.material().cert, architecture: edges.architecture },
    ...{ cores: edges.cores, asUnits: runtimeDirectory !== undefined, privileged, clock, log },
    completeUntil: audit.completeUntil,
    problemOf: createBodyCheck(ClusterConfiguration),
    record: audit.record,
    programs: { step: edges.stepProgram, keeper: edges.keeperProgram, prepare: edges.prepareProgram },
    onEvent: ({ severity, reason, message, object, clusterUid }) =>
      uplink.report({
        ...{ severity, reason, message, component: 'cluster' },
        involvedObject: object ?? { kind: 'Cluster', uid: clusterUid },
      }),
  })

  const images = createImagesRoom({
    ...{ stored: content.images, root: edges.runtimeRoot, runner, listTokens, stopping, clock, log },
  })

  const working: Room[] = [
    ...[
      audit,
      state.room,
      host,
      inventory.with(host),
      certificate,
      auth,
      api,
      definition,
      content,
      cluster,
      images,
      uplink,
    ],
  ]
  const ground: Ground<Config> = {
    ...{ config, stateDirectory: state.directory, database, record: audit.record, listTokens },
    ...{ runner, stopping, clock, log },
  }
  // Each room reads only the sections of the configuration that it declares.
  for (const { create } of declarations) if (create) working.push(await create(ground as Ground<never>))

  // The rooms that collect from all others.
  const jobs = createJobs(
    working.flatMap((room) => room.jobs ?? []),
    { log, monotonic: () => clock.monotonic() },
  )
  const observed: Room[] = [...working, jobs]
  const metrics = await createMetrics({
    ...{ settings: config.metrics, families, build: { version, mode }, clock, log },
    figures: observed.flatMap((room) => room.figures ?? []),
  })
  const service = createService({
    ...{
      console: { ...config.host.console, platform: uplink },
      version,
      mode,
      listen: config.api,
      stateDirectory: state.directory,
    },
    addRoutes: async (app, { health, status }) => {
      await serviceRoutes(app, { health, status: async () => ({ ...(await status()), mode }) })
    },
    ...{ names: host, certificate, unwrittenAudits: audit.unwritten, systemd, runner, stopping, clock, log },
    checks: observed.flatMap((room) => room.checks ?? []),
  })
  const rooms: readonly Room[] = [...observed, metrics, service]
  for (const room of rooms) await room.routes?.(api.app)

  return {
    app: api.app,
    rooms: { state, audit, auth, api, definition, content, cluster, jobs },
    ...createPhases({ rooms, api, inherited: systemd.listenFds, state, stop, anonymousLog, log }),
  }
}
