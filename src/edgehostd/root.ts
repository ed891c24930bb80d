import type { FastifyInstance } from 'fastify'
import { createBodyCheck } from '../api/compilers.ts'
import { identifyByToken } from '../api/guard.ts'
import { createApi, type Api } from '../api/room.ts'
import { createStates } from '../api/states.ts'
import { createTickets } from '../api/tickets.ts'
import { createAudit, type Audit } from '../audit/audit.ts'
import { createAuth, type Auth } from '../auth/auth.ts'
import { createCertificateRoom } from '../certificate/room.ts'
import { createCluster, type ClusterRoom } from '../cluster/room.ts'
import { ClusterConfiguration } from '../cluster/schemas.ts'
import { createConfigurationRoom } from '../configuration/room.ts'
import { createContent, type ContentRoom } from '../content/room.ts'
import { families, type Config } from './declarations.ts'
import { createDefinitions, type Definitions } from '../definition/definitions.ts'
import { hostEdges, type Edges } from './edges.ts'
import { openHostRecord } from '../host/identity/host-record.ts'
import { createDiagnosis } from '../diagnosis/room.ts'
import { findAnsweringDevice } from '../host/network/answering-device.ts'
import { createHost } from '../host/room.ts'
import { createImagesRoom } from '../images/room.ts'
import { createInventory, inventoryUnit } from '../inventory/room.ts'
import { openUid } from '../network/trial/progress.ts'
import { createTrialRoom } from '../network/trial/room.ts'
import { createJobs } from '../jobs/jobs.ts'
import { createContinueTokens } from '../lists/continue-token.ts'
import { createMetrics } from '../metrics/room.ts'
import { createNetwork } from '../network/room.ts'
import { createSetup } from '../setup/room.ts'
import { migrations } from './migrations.ts'
import { createPages } from '../pages/routes.ts'
import { createPhases } from '../root/phases.ts'
import type { Ground, Room } from '../root/room.ts'
import type { Daemon as Program, DaemonOptions as ProgramOptions } from '../root/run-program.ts'
import { createService } from '../service/room.ts'
import { serviceRoutes } from '../service/routes.ts'
import { createServiceManager } from '../service/systemd.ts'
import { createPower, type PowerRoom } from '../power/room.ts'
import { createBusy, isOfHost, refusalInReset } from '../root/busy.ts'
import { openState, type State } from '../root/state.ts'
import { bootIdOf } from '../system/lasting/runs.ts'
import { createTransientUnitRunner, type TransientUnitOptions } from '../system/transient-unit.ts'
import { createUplink, type Uplink } from '../uplink/room.ts'
import { parseSigningKey } from '../upload/signing.ts'
import { createVerbs } from '../verbs/call.ts'

export interface DaemonOptions extends ProgramOptions<Config> {
  /** The edges that a test replaces; the others are of this machine. */
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
    readonly power: PowerRoom
    readonly jobs: Room
    readonly uplink: Uplink
  }
}

/** Builds every room in start order. Only this file knows all rooms. */
export async function createDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, log, version, buildDate } = options
  const edges = { ...hostEdges(log), ...options.edges }
  const { runner, clock, files, anonymousLog, architecture, cores } = edges
  const { mode } = config.host
  const stop = new AbortController()
  const systemd = createServiceManager({ runner, environment: edges.environment, pid: process.pid })
  const { runtimeDirectory } = systemd
  /** Runs commands outside the sandbox of the daemon's unit. */
  const outside = (more: Partial<TransientUnitOptions> = {}) =>
    runtimeDirectory === undefined ? runner : createTransientUnitRunner({ runner, runtimeDirectory, ...more })
  const privileged = outside()
  const verbs = createVerbs({
    outside,
    program: edges.verbProgram,
    place: {
      stateDirectory: config.state.directory,
      pam: config.auth.pam,
      support: { program: edges.supportProgram, socket: config.api.socket.path },
      platformProgram: edges.platformProgram,
    },
  })

  // The ground: the state folder, the identity of this host, and the audit trail.
  const state = await openState({ settings: config.state, migrations, clock, log })
  const { database, read, secrets } = state
  const record = await openHostRecord({ settings: config.host, files, database, clock, log })
  const listTokens = createContinueTokens(secrets.derive('continue token'))
  const audit = createAudit({
    settings: config.audit,
    database,
    read,
    edgeHostId: record.id,
    listTokens,
    clock,
    log,
    stateDirectory: state.directory,
    startMessage: `Start version ${version} in mode ${mode}`,
    onAnonymous: anonymousLog.reserve,
  })
  for (const entry of [...state.auditEntries, ...record.auditEntries]) audit.record(entry)
  const ground: Ground<Config> = {
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

  const busy = createBusy(() => working, log)
  // Each room is built from those above it; a dependency on one below is attached when that one is built.
  const inventory = createInventory(ground, {
    outside: outside(inventoryUnit),
    program: edges.inventoryProgram,
    files,
  })
  const host = await createHost(ground, {
    record,
    files,
    privileged,
    follower: edges.follower,
    facts: edges.facts,
    supplement: inventory.supplement,
  })
  const configuration = createConfigurationRoom(ground, { verbs })
  const uplink = await createUplink(ground, {
    hostId: record.id,
    host,
    hostWay: configuration.way,
    client: edges.platformClient,
    pause: edges.platformPause,
    limits: {
      definitionBytes: config.definitions.upload.limitBytes,
      reserveBytes: config.definitions.upload.reserveBytes,
    },
  })
  host.attachPlatform(uplink)
  configuration.onChange(uplink.reconnect)
  uplink.onChange(() => void host.refresh())
  const certificate = await createCertificateRoom(ground, {
    buildDate,
    names: host,
    lastResource: audit.lastResource,
    // The rooms of the network come later, and a start may be in a trial.
    isHeld: () => openUid({ runtime: edges.networkFolder }) !== undefined,
  })
  const auth = await createAuth(ground, {
    verbs,
    onKeysChange: ({ userName, fingerprints }) =>
      uplink.report({
        severity: 'Normal',
        reason: 'SshKeysChanged',
        message: `${userName} has set its SSH keys: ${fingerprints.join(', ') || 'none'}`,
        component: 'users',
        involvedObject: { kind: 'User', name: userName },
      }),
    clientOf: host.clientOf,
    cores,
    etc: edges.etc,
  })
  const api = createApi(ground, {
    mode,
    material: certificate.material(),
    audit: audit.requests,
    disk: state.reserve,
    standstill: () => refusalInReset(power.underReset()),
    identify: identifyByToken(auth.authenticate),
    tickets: createTickets({ authenticate: auth.authenticate, clock }),
    holderOf: auth.holderOf,
    isKnownClient: auth.isKnownClient,
    clientOf: host.clientOf,
    longRequestMs: edges.longRequestMs,
  })
  auth.onCallersGone(api.endSessions)
  certificate.onChange(() => api.useCertificate(certificate.material()))
  const signingKey = parseSigningKey(config.content.signing.publicKey)
  const definition = await createDefinitions(ground, { program: edges.examineProgram, signingKey })
  const content = createContent(ground, {
    signingKey,
    program: edges.contentProgram,
    architecture,
    bootId: edges.bootId,
    certificate,
    clientOf: host.clientOf,
    flow: api.flow,
    definitions: {
      examineBundled: definition.examineBundled,
      async bundlesChanged(bundled) {
        // Rooms that need the content do not wait for the examination of a definition.
        uplink.contentChanged()
        await definition.bundlesChanged(bundled)
      },
    },
  })
  const states = createStates()
  const cluster = await createCluster(ground, {
    states,
    hostId: record.id,
    host,
    files,
    definition,
    isManagedHere: mode === 'airgap',
    content,
    architecture,
    cores,
    privileged,
    isHeld: () => busy.reasons().some(isOfHost),
    refuseBusy: () => busy.refuse('a change of the cluster', isOfHost),
    externalRegistry: configuration.externalRegistry,
    certificate: () => certificate.material().cert,
    asUnits: runtimeDirectory !== undefined,
    problemOf: createBodyCheck(ClusterConfiguration),
    programs: { step: edges.stepProgram, keeper: edges.keeperProgram, prepare: edges.prepareProgram },
    onEvent: ({ severity, reason, message, object, clusterUid }) =>
      uplink.report({
        severity,
        reason,
        message,
        component: 'cluster',
        involvedObject: object ?? { kind: 'Cluster', uid: clusterUid },
      }),
  })
  host.attachCluster(cluster)
  configuration.attachCluster({ ranges: cluster.ranges, busy: cluster.busyNow })
  definition.attachCluster(edges.clusterOfSlots ?? cluster)
  uplink.attachCluster({ ...cluster.fromPlatform, report: cluster.platformReport })
  const isPlatformConnected = () => uplink.link().isConnected
  const trial = createTrialRoom(ground, {
    verbs,
    runtimeFolder: edges.networkFolder,
    outside: {
      answersNames: edges.answersNames,
      platform: { ...uplink, isConnected: isPlatformConnected },
    },
    acceptedAt: api.acceptedAt,
  })
  trial.trials.onEnd(certificate.renew)
  trial.trials.onChange(() => void host.refresh())
  const network = createNetwork(ground, {
    ...(edges.network ?? {
      files,
      runner,
      findDevice: (address, networkInterface) =>
        findAnsweringDevice({ address, networkInterface }, { files, runner }, stop.signal),
    }),
    clusterAddresses: cluster.nodeAddresses,
    trials: trial.trials,
    resetOfLinks: trial.resetPart,
    busy,
    isPlatformConnected,
    onManagement: () => host.refresh(),
  })
  host.attachManagement(network.management)
  const setup = createSetup(ground, {
    verbs,
    files,
    hostName: host.hostName,
    hasCluster: () => cluster.nodeAddresses().length > 0,
    onChange: () => host.refresh('seconds'),
  })
  configuration.attachParts({
    links: network.links,
    hasCluster: cluster.hasCluster,
    hostName: host.hostName,
    host: setup,
    platform() {
      const { mode: linked, url, projectName } = uplink.link()
      if (linked === 'airgap') return { type: 'local' }
      return {
        type: 'central',
        ...(url === undefined ? {} : { platformEndpoint: url }),
        ...(projectName === undefined ? {} : { projectName }),
      }
    },
  })
  const diagnosis = createDiagnosis(ground, {
    verbs,
    streamer: edges.streamer,
    cluster,
    hostName: host.hostName,
    platformWay: uplink.way,
    hostWay: configuration.way,
  })
  const images = createImagesRoom(ground, { stored: content.images, root: edges.runtimeRoot })

  const power = createPower(ground, {
    busy,
    verbs,
    bootId: async () => (runtimeDirectory === undefined ? edges.bootId : bootIdOf(runner, edges.bootId)),
    cluster: cluster.nodeStop,
    hostName: host.hostName,
    platform() {
      const { mode: linked, url = 'of this host' } = uplink.link()
      return linked === 'connected' ? url : undefined
    },
    parts: {
      cluster: cluster.resetPart,
      definitions: definition.resetPart,
      content: content.resetPart,
      sessions: auth.resetPart,
      network: network.resetPart,
      identity: {
        describe: async () => [
          `the id ${record.id}, its certificate and key, and its key and registration on a platform`,
        ],
        async clear() {
          await certificate.forget()
          await uplink.forget()
          record.forget()
          return true
        },
      },
    },
    endSessions: auth.endSessions,
    // The events of a cluster go to the platform by themselves.
    onEvent({ severity, reason, message }) {
      if (reason === 'HostReset' || !cluster.noteHost({ reason, message }))
        uplink.report({ severity, reason, message, component: 'edgehostd' })
    },
  })

  // The rooms that collect from all others.
  const working: readonly Room[] = [
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
    network,
    setup,
    images,
    diagnosis,
    trial,
    configuration,
    uplink,
    power,
  ]
  const jobs = createJobs(
    working.flatMap((room) => room.jobs ?? []),
    { log, monotonic: () => clock.monotonic() },
  )
  const observed: readonly Room[] = [...working, jobs]
  states.add(observed.flatMap((room) => room.states ?? []))
  const checks = observed.flatMap((room) => room.checks ?? [])
  uplink.attachChecks(checks)
  const metrics = await createMetrics(ground, {
    families,
    mode,
    figures: observed.flatMap((room) => room.figures ?? []),
  })
  const service = createService(ground, {
    console: {
      ...config.host.console,
      platform: uplink,
      network: { tried: trial.tried, onChange: trial.trials.onChange },
    },
    mode,
    names: host,
    certificate,
    checks,
    unwrittenAudits: audit.unwritten,
    systemd,
    attention: observed.flatMap((room) => room.attention ?? []),
    addRoutes: async (app, { health, status, attention }) => {
      await serviceRoutes(app, { health, attention, status: async () => ({ ...(await status()), mode }) })
    },
  })
  const pages = createPages(ground, { folder: edges.pagesFolder })
  const rooms: readonly Room[] = [...observed, metrics, service, pages]
  for (const room of rooms) await room.routes?.(api.app)

  return {
    app: api.app,
    rooms: { state, audit, auth, api, definition, content, cluster, power, jobs, uplink },
    ...createPhases({ rooms, api, inherited: systemd.listenFds, state, stop, anonymousLog, log }),
  }
}
