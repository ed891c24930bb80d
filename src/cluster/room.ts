// `cluster/desired` accepts what is desired: a posted configuration (`creation.ts`) or a change of it (`change.ts`). Both read it
// (`configuration.ts`), have everything prepared (`prepare.ts`), make all checks (`preflight.ts`), and only then keep the prepared folder,
// `cluster/<uid>/<generation>` in the state folder, and store the revision: that transaction, in `acceptance.ts`, is the acceptance. A folder
// without a row is removed at the start. Sensitive values are masked in stored data, and sealed beside it (`revisions.ts`); a body is
// recognised by its HMAC. Every event, reason and log line is masked with these values. `deletion.ts` stores that the cluster has to go.
//
// `draft.ts` makes of a write the whole desired configuration: the patch applied to the document of `GET`, masks replaced by the stored
// values, changes of lifelong fields refused; a draft that differs in nothing ends there. Creation, changes and file sync have one lock. `file-sync.ts`
// makes pins, folders of revisions and the copy for a lost database follow the stored revisions; each run does all of it, so a run that was
// cut off loses nothing. A rollback is a write too: it is prepared anew from the definition of the old revision, so that it is checked as
// any other. The loop makes one revision by itself, `cluster/loop/activation.ts`: the last good one with the Kubernetes that runs, where a
// pack failed on a new version (ADR 27); it holds the same lock. JSON Patch is code of our own (`patches.ts`): 120 lines, which name the
// place of an error and bound copies of copies; the libraries do neither.
//
// `reconcile.ts` is the loop. Each turn observes the host (`observer.ts`, `observed.ts`), plans (`plan.ts`), emits changes (`seen.ts` makes
// the events, `status.ts` the state), does one step (`step-work.ts`, `cluster/loop/step-runner.ts`), and observes again (ADR 26). While a
// step runs, it observes every five seconds, so that the state is never old. `plan`, `seen` and `status` are pure. The parts are handed in:
// `engine` makes Kubernetes, `host` records and restores this host and holds the virtual address, `packs` installs and watches, `events`
// keeps the history.
//
// Transitions between revisions: `activation.ts` starts the waiting revision when no step runs, and goes back to the last good one;
// `verdict.ts` is pure: whether the revision that is being applied may still come, has to go, or waits for an operator, and the time that is
// left to it. `observer.ts` has the times that are compared with the limits of the configuration, and stores them every ten seconds.
// `desired/diff.ts` is pure too: the differences of two revisions, and the restarts for them.
//
// Why pods do not run (`packs/troubles.ts`, `packs/read-troubles.ts`) is read with each observation, of packs that are started and not available, and of
// CoreDNS and kube-proxy; at rest the watches of the workloads wake the loop, and no pod is asked for.

import type { ContentRoom } from '../content/room.ts'
import type { Definitions } from '../definition/definitions.ts'
import type { DefinitionSettings } from '../definition/config.ts'
import type { HostFiles } from '../host/files.ts'
import type { Host } from '../host/room.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { ClusterSettings } from './config.ts'
import { type ClusterEvent, createAddEvent, createEventLog, conditionsOf } from './events/event-log.ts'
import { type Histogram, createHistogram } from '../base/sample.ts'
import type { BusyReason, FiguresOf, Ground, ResetPart, Room } from '../root/room.ts'
import type { about } from './about.ts'
import type { ClusterStatus } from './loop/status.ts'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createLock } from '../base/lock.ts'
import { spellSubnet } from '../base/subnet.ts'
import { uidOf } from '../base/uid.ts'
import type { ClusterProfileDetail } from '../definition/schemas.ts'
import type { HostInCluster } from '../host/document.ts'
import { createKubernetesClient } from '../kubernetes/create-client.ts'
import { createHideOf } from '../definition/slots/secrets.ts'
import { clearLeftovers } from '../store/leftovers.ts'
import { sweepTemporary } from '../system/files.ts'
import { createLastingRuns } from '../system/lasting/runs.ts'
import { adopt, followCopy, writeCopy } from './adopt.ts'
import { createClusterAttention } from './api/attention.ts'
import { busyWithCluster } from './api/busy.ts'
import { createCertificates } from './api/certificates.ts'
import { createChange } from './desired/change.ts'
import { createDeletion } from './desired/deletion.ts'
import { withDefinition } from './desired/edits.ts'
import { createFileSync } from './desired/file-sync.ts'
import { createClusterStore } from './cluster-store.ts'
import { givenIn } from './desired/configuration.ts'
import { createAcceptance, createExamine, pinHolder } from './desired/acceptance.ts'
import { createCreation, createRequestStore } from './desired/creation.ts'
import { createDetails, hostInCluster } from './api/details.ts'
import { createKubeadmEngine, type KubeadmEngineOptions, readAdminKubeconfig } from './engine/kubeadm.ts'
import { isScratch } from './engine/kubeadm-files.ts'
import { isProbe } from './host/probe-folder.ts'
import { addonObjects } from './engine/observe.ts'
import { createNodeStop, type NodeStop } from './engine/node-stop.ts'
import { clusterPaths, kubernetesFiles } from './engine/paths.ts'
import { createErrorLogs } from './events/error-logs.ts'
import { createEventList } from './events/event-list.ts'
import { createClusterHost } from './host/create-cluster-host.ts'
import { applicationsOf } from './packs/applications.ts'
import { createPackWork } from './packs/create-pack-work.ts'
import { troublesOf, withoutSecrets, type Observed } from './loop/observed.ts'
import {
  createFromPlatform,
  type FromPlatform,
  createPlatformReport,
  type PlatformReport,
} from './api/platform.ts'
import { createPodLogs } from './api/pod-logs.ts'
import { createPreflight, createContentPreflight } from './desired/preflight.ts'
import { createPrepare } from './desired/prepare.ts'
import { readProfiles, readDesired } from './desired/prepared.ts'
import { createReading, noCluster } from './api/reading.ts'
import { createReconcile } from './loop/reconcile.ts'
import {
  applicationRoutes,
  clusterRoutes,
  certificateRoutes,
  nodeRoutes,
  podRoutes,
  revisionRoutes,
} from './api/routes.ts'
import { changeRoutes, patchRoutes } from './api/routes-change.ts'
import { eventRoutes, type EventRoutesOptions } from './api/routes-events.ts'
import { createClusterStates } from './api/states.ts'
import { createRevisionStore, createSealed } from './desired/revisions.ts'
import { createStepRunner } from './loop/step-runner.ts'
import { createStepStore } from './loop/step-store.ts'
import { createCopies } from './loop/activation.ts'
import { shownPack, type DesiredState } from './desired/desired-state.ts'
import { sinceSeen } from './loop/seen.ts'

type OfEngine = Pick<KubeadmEngineOptions, 'architecture' | 'certificate' | 'externalRegistry'>

/** Parts of the room of the cluster. */
interface ClusterOptions extends OfEngine {
  /** Id of this host. */
  readonly hostId: string
  readonly host: Pick<Host, 'hostName' | 'addresses' | 'nics' | 'refresh'>
  /** Called for each event of the cluster, in the transaction that stores it. */
  readonly onEvent: (event: Omit<ClusterEvent, 'id'>) => void
  readonly files: HostFiles
  readonly definition: Pick<Definitions, 'archiveOf' | 'first' | 'takeFromPlatform' | 'dropFromPlatform'>
  /** Whether the cluster is changed on this host, and not by a platform. */
  readonly isManagedHere: boolean
  readonly states: EventRoutesOptions['states']
  /** Problem of the form of a `ClusterConfiguration` that did not come over the API; undefined for none. */
  readonly problemOf: (configuration: unknown) => string | undefined
  readonly content: Pick<
    ContentRoom,
    'find' | 'findChart' | 'findProgram' | 'programVersions' | 'pin' | 'renewPins' | 'unpin' | 'registry'
  >
  readonly cores: number
  /** Runs programs outside of the sandbox of the daemon. */
  readonly privileged: CommandRunner
  /** Whether the host does something that a change of the cluster has to wait for. */
  readonly isHeld: () => boolean
  /** Refuses a change of the cluster then. @throws AppError Busy */
  readonly refuseBusy: () => void
  /** Whether the daemon is a unit of systemd. */
  readonly asUnits: boolean
  readonly programs: { readonly step: string; readonly keeper: string; readonly prepare: string }
}

/** The metrics of the room. @param ends numbers of ended steps, by the kind of end */
const clusterFigures = (
  status: ClusterStatus | undefined,
  ends: Readonly<Record<string, number>>,
  durations: Pick<Histogram, 'figures'>,
): FiguresOf<typeof about.families> => ({
  edgehostd_cluster_phase: status && [{ labels: { phase: status.phase }, value: 1 }],
  edgehostd_cluster_healthy: status && Number(status.health.status === 'Healthy'),
  edgehostd_cluster_steps_total: Object.entries(ends).map(([result, value]) => ({
    labels: { result },
    value,
  })),
  edgehostd_cluster_step_duration_seconds: durations.figures(),
})

/** The room, as other rooms use it. */
export interface ClusterRoom extends Room {
  hasCluster(): boolean
  /** Profiles of the cluster, with sensitive values masked; undefined without a cluster. */
  profiles(): Promise<readonly ClusterProfileDetail[] | undefined>
  hostInCluster(): HostInCluster
  /** Adds an event of the host to the events of the cluster. @returns false without a cluster */
  noteHost(event: HostEventOfCluster): boolean
  /** The node before and after a stop of the host. */
  readonly nodeStop: NodeStop
  readonly resetPart: ResetPart
  /** What a stop of the host, or of containerd, would break off. */
  busyNow(): readonly BusyReason[]
  /** Addresses of this host as a node, and of its control plane, which may be a virtual one; none without a cluster. */
  nodeAddresses(): readonly string[]
  /** Networks of pods and services, as CIDR, and those addresses; none without a cluster. */
  ranges(): Promise<{ readonly networks: readonly string[]; readonly addresses: readonly string[] }>
  /** Applies orders of the platform of this host. */
  readonly fromPlatform: FromPlatform
  /** Masks the sensitive values of the cluster in a text. */
  hide(): (text: string) => string
  /** Time since which lines of kubelet and containerd are of the cluster that `hide` knows; 0 for all. */
  clusterSince(): number
  /** Report of the cluster to the platform; undefined without one. */
  platformReport(): Promise<PlatformReport | undefined>
}

/** An event of the host that is emitted for its cluster. */
interface HostEventOfCluster {
  readonly reason: 'HostStopping' | 'HostStopFailed' | 'HostBack'
  readonly message: string
}

// Seconds of a step: from the writing of a file to the start of a control plane.
const durationBounds = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600]

// A silent API server does not hold up other observations.
const longestWatchMs = 8_000

/** Builds the room of the cluster of this host. */
export async function createCluster(
  ground: Ground<{ readonly cluster: ClusterSettings; readonly definitions: DefinitionSettings }>,
  own: ClusterOptions,
): Promise<ClusterRoom> {
  const { config, version, stateDirectory, database, secrets, completeUntil, listTokens } = ground
  const { record: audit, runner, stopping, clock, log } = ground
  const { hostId, host, files, definition, content, privileged, architecture, cores, programs, refuseBusy } =
    own
  const settings = config.cluster
  const isComplete = completeUntil > -Infinity
  const paths = clusterPaths(stateDirectory)
  const sealed = createSealed(secrets)
  const store = createClusterStore(database, sealed)
  const revisions = createRevisionStore(database, sealed)
  const steps = createStepStore(database)
  const events = createEventLog({
    database,
    limits: settings.events,
    onStored: own.onEvent,
    clock,
    log,
  })

  const addEvent = createAddEvent(events)
  const client = createKubernetesClient({ kubeconfig: readAdminKubeconfig })
  const engine = createKubeadmEngine({
    stateDirectory,
    settings,
    content,
    architecture,
    runner,
    log,
    client,
    registry: content.registry.state,
    externalRegistry: own.externalRegistry,
    certificate: own.certificate,
    now: () => clock.now(),
  })
  const clusterHost = createClusterHost({
    stateDirectory,
    files,
    runner,
    privileged,
    architecture,
    cores,
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sshAccount: settings.sshAccount,
    stepProgram: programs.step,
  })
  const packs = createPackWork({
    database,
    client,
    clock,
    helm: engine.programs.current('helm'),
    kubeconfig: kubernetesFiles.adminConfig,
    onChange: () => reconcile.wake(),
    addonObjects,
    isHeld: () => store.current()?.deleteRequestedAt === null,
    onCorrected(event) {
      const record = store.current()
      if (record) addEvent(record, event)
    },
    log,
  })
  const parts = { host: clusterHost, engine, packs }
  /** Observes the base of the packs. */
  async function observeBase(desired: DesiredState, signal: AbortSignal): Promise<Omit<Observed, 'packs'>> {
    const [ofHost, ofEngine] = await Promise.all([
      clusterHost.observe(desired, signal),
      engine.observe(desired, signal),
    ])
    return { ...ofHost, engine: ofEngine }
  }

  const runsFolder = join(paths.folder, 'steps')
  const runs = createLastingRuns({
    runner,
    folder: runsFolder,
    program: programs.keeper,
    asUnits: own.asUnits,
    unitPrefix: 'edgehostd-step-',
  })
  const durations = createHistogram(durationBounds)
  const ends = { done: 0, failed: 0, 'cut-off': 0 }
  const removeFiles = async (uid: string) => {
    await rm(join(paths.folder, uid), { recursive: true, force: true })
  }
  const removePrograms = () => rm(paths.programs, { recursive: true, force: true })
  /** Masks the sensitive values of the cluster in a text. */
  const hide = () => createHideOf(store.current()?.sensitive ?? [])
  const inTurn = createLock()
  /** Whether the cluster that is on this host is the one of the database. */
  let isKnown = true
  /** The active generation at the last file sync. */
  let keptUp: number | undefined
  const reconcile = createReconcile({
    database,
    store,
    revisions,
    steps,
    parts,
    events,
    inTurn,
    isHeld: own.isHeld,
    stopping,
    clock,
    log,
    limits: {
      availableMs: settings.update.timeoutSeconds * 1_000,
      kubernetesMs: settings.update.kubernetesTimeoutSeconds * 1_000,
      silentMs: settings.update.apiSilentSeconds * 1_000,
    },
    runner: createStepRunner({
      runs,
      store: steps,
      calls: { ...engine.calls, ...packs.calls },
      program: programs.step,
      now: () => clock.now(),
      log,
    }),
    async observe(desired, signal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(longestWatchMs)])
      const [rest, ofPacks] = await Promise.all([
        observeBase(desired, signal),
        packs.observe(desired, limited),
      ])
      return withoutSecrets({ ...rest, packs: ofPacks }, hide())
    },
    eventOf: (step, line) =>
      engine.eventOf(step, line) ?? packs.eventOf(step, line) ?? clusterHost.eventOf(step, line),
    readDesired,
    // Remaining pins of content that cannot be used now are released by a job.
    release: () =>
      content
        .unpin(pinHolder)
        .catch((error: unknown) => log.warn({ err: error }, 'the content of the cluster is released later')),
    async removeFiles({ uid }) {
      await removeFiles(uid)
      await rm(runsFolder, { recursive: true, force: true })
    },
    onEnd(end, durationMs) {
      ends[end] += 1
      if (end === 'done') durations.observe(durationMs / 1_000)
    },
    onStatus() {
      void host.refresh()
      // Another revision may be active.
      const active = store.current()?.generation
      if (active !== undefined && active !== keptUp) void fileSync.run()
      keptUp = active
    },
  })

  const prepare = await createPrepare({
    folder: paths.folder,
    definitions: definition,
    content,
    runner,
    stopping,
    log,
    limits: config.definitions.archive,
    check: config.definitions.check,
    reserveBytes: config.definitions.upload.reserveBytes,
    program: programs.prepare,
    async helm() {
      const found = await engine.programs.find('helm')
      return found.kind === 'missing' ? undefined : engine.programs.place('helm')
    },
  })
  const examine = createExamine({
    prepare,
    preflight: createPreflight({
      engine,
      host: clusterHost,
      log,
      content: createContentPreflight({ content, programs: engine.programs, architecture }),
    }),
  })
  const facts = () => ({
    id: hostId,
    hostName: host.hostName(),
    architecture,
    nics: host.nics(),
    addresses: host.addresses(),
  })
  /** Another state is desired. */
  const onChanged = () => {
    reconcile.wake()
    void host.refresh()
  }
  const accept = createAcceptance({ database, revisions, sealed, content, refuseBusy, clock })
  const creation = createCreation({
    store,
    refuseBusy,
    sealed,
    inTurn,
    examine,
    accept,
    parts,
    events,
    removeFiles,
    removePrograms,
    clock,
    facts,
    onAccepted: onChanged,
    placeEndpoint: clusterHost.placeEndpoint,
    writeCopy: (cluster, plain) => writeCopy(cluster, plain, sealed),
    requests: createRequestStore(database),
  })
  const { copies, copyTime } = createCopies(engine, revisions)
  const fileSync = createFileSync({
    store,
    revisions,
    content,
    inTurn,
    log,
    isComplete: () => isComplete && isKnown,
    followCopy: (record) => followCopy(record, revisions.find(record.generation)?.plain, sealed),
    copies,
  })
  const change = createChange({
    store,
    refuseBusy,
    revisions,
    inTurn,
    examine,
    accept,
    facts,
    parts,
    clock,
    add: addEvent,
    observe: async (desired, signal) => ({
      ...(await observeBase(desired, signal)),
      packs: reconcile.observed()?.packs ?? new Map(),
    }),
    copies,
    copyTime,
    onAccepted() {
      onChanged()
      void fileSync.run()
    },
  })
  const reading = createReading({
    store,
    revisions,
    hostId,
    clock,
    status: reconcile.status,
    kubeconfig: engine.kubeconfig,
    details: createDetails({
      hostId,
      architecture,
      version,
      clock,
      steps: steps.list,
      pending: revisions.pending,
      runningVersion: () => reconcile.observed()?.engine.version ?? '',
      nics: host.nics,
      conditions: () => conditionsOf(events, 'cluster'),
      settings: () => reconcile.observed()?.settings,
      troubles() {
        const [record, observed] = [store.current(), reconcile.observed()]
        if (!record || !observed) return []
        return sinceSeen(troublesOf(observed), record.seen).map((each) => ({
          ...each,
          pack: shownPack(each.pack),
        }))
      },
      deadline: reconcile.deadline,
      client: async () => (reconcile.observed()?.engine.api === 'answers' ? client : undefined),
    }),
  })

  const certificates = createCertificates({
    database,
    refuseBusy,
    store,
    engine,
    steps,
    clock,
    add: addEvent,
    onAsked: reconcile.wake,
  })

  const { remove, resetPart } = createDeletion({
    database,
    store,
    events,
    refuseBusy,
    onAsked: onChanged,
    clock,
  })

  /** Removes folders of clusters that were not accepted, and half written or half removed ones of a killed daemon. */
  async function removeLeftovers(): Promise<void> {
    const current = store.current()?.uid
    if (current === undefined && isComplete) {
      await rm(runsFolder, { recursive: true, force: true })
      await removePrograms()
    }
    await clearLeftovers({
      folder: paths.folder,
      completeUntil,
      log,
      isLeftover: (name) => uidOf(name) !== undefined && name !== current,
    })
    for (const name of await readdir(paths.folder)) if (isScratch(name)) await removeFiles(name)
    for (const folder of [stateDirectory, paths.folder, paths.containerd])
      for (const name of await readdir(folder).catch(() => []))
        if (isProbe(name)) await rm(join(folder, name), { recursive: true, force: true })
    await sweepTemporary(paths.folder)
  }

  /** @param known the desired state, where it was read already */
  async function applications(known?: DesiredState) {
    const record = store.current()
    if (!record) throw noCluster()
    const [profiles, desired] = await Promise.all([readProfiles(record), known ?? readDesired(record)])
    return applicationsOf({
      profiles,
      desired,
      observed: reconcile.observed(),
      records: packs.records(),
      steps: steps.list(),
      hide: hide(),
      given: givenIn(record.posted.spec ?? {}),
    })
  }

  const podLogs = createPodLogs({
    client() {
      if (!store.current()) throw noCluster()
      return reconcile.observed()?.engine.api === 'answers' ? client : undefined
    },
    hide,
  })
  const fromPlatform = createFromPlatform({
    store,
    revisions,
    creation,
    change,
    remove,
    log,
    definitions: definition,
    problemOf: own.problemOf,
    record: audit,
  })
  const platformReport = createPlatformReport({
    store,
    status: reconcile.status,
    steps: steps.list,
    kubeconfig: engine.kubeconfig,
    conditions: () => conditionsOf(events, 'cluster'),
    applications: () => applications(),
  })

  /** When the cluster was accepted; without one, when the last was deleted, 0 where that is not known. */
  const clusterSince = () =>
    store.current()?.createdAt ?? events.conditions().find(({ reason }) => reason === 'Deleted')?.probeAt ?? 0

  const { hostName } = host
  const eventList = createEventList({
    database,
    events,
    hide,
    hostName,
    listTokens,
    client: () => ((reconcile.observed()?.engine.api ?? 'absent') === 'absent' ? undefined : client),
  })
  function busyNow(): readonly BusyReason[] {
    const record = store.current()
    return record
      ? busyWithCluster({ record, steps: steps.list(), revisions: reading.revisions().items })
      : []
  }
  const nodeAddresses = () => {
    const node = store.current()?.summary.node
    return node === undefined ? [] : [...new Set([node.address, node.endpoint])]
  }
  /** Of which generation they are: they are asked for each second, and a generation does not change. */
  let networks: { readonly key: string; readonly found: readonly string[] } | undefined
  async function ranges() {
    const record = store.current()
    if (!record) return { networks: [], addresses: [] }
    const key = `${record.uid} ${record.generation}`
    if (networks?.key !== key) {
      const { kubernetesSettings } = await import('./host/kubernetes-settings.ts')
      const { config } = (await readDesired(record)).kubernetes
      const { pods, services } = kubernetesSettings(config)
      networks = { key, found: [...pods, ...services].map(spellSubnet) }
    }
    return { networks: networks.found, addresses: nodeAddresses() }
  }
  let unwatch: (() => void) | undefined
  return {
    fromPlatform,
    platformReport,
    nodeStop: createNodeStop({ client, node: () => store.current()?.summary.node.name, log }),
    resetPart,
    noteHost(event) {
      const record = store.current()
      if (record) addEvent(record, event)
      return record !== undefined
    },
    busy: busyNow,
    busyNow,
    hide,
    clusterSince,
    hasCluster: () => store.current() !== undefined,
    async profiles() {
      const record = store.current()
      return record && readProfiles(record)
    },
    hostInCluster: () =>
      hostInCluster(store.current(), reconcile.observed()?.engine.controlPlane === 'complete'),
    nodeAddresses,
    ranges,
    async routes(app) {
      await clusterRoutes(app, { creation, reading, remove })
      await app.register(changeRoutes, { change, reading, withDefinition: withDefinition(definition) })
      await app.register(patchRoutes, { change, reading })
      await revisionRoutes(app, { reading })
      await nodeRoutes(app, { reading })
      await podRoutes(app, { podLogs })
      await certificateRoutes(app, { certificates })
      await applicationRoutes(app, { applications: () => applications() })
      await eventRoutes(app, {
        events,
        eventList,
        hostName,
        states: own.states,
        errorLogs: createErrorLogs({ runner, hide, clock, clusterSince }),
      })
    },
    jobs: [
      { name: 'cluster-events', schedule: '41 * * * *', stuckAfterMs: 3_600_000, run: () => events.retain() },
      // Another disk may be mounted for the content, or its pins be lost.
      { name: 'cluster-content', schedule: '*/5 * * * *', stuckAfterMs: 3_600_000, run: fileSync.run },
    ],
    states: createClusterStates({ store, reading }),
    attention: createClusterAttention({
      store,
      reading,
      applications,
      readDesired,
      host: clusterHost,
      waitingDefinition: definition.first,
      isManagedHere: own.isManagedHere,
    }),
    figures: () => clusterFigures(reconcile.status(), ends, durations),
    // Before a request may create a cluster.
    async prepare() {
      const { folder, hostRecord } = paths
      isKnown = await adopt({
        folder,
        hostRecord,
        database,
        store,
        revisions,
        steps,
        runs,
        parts,
        sealed,
        events,
        clock,
        log,
      })
      if (isKnown) await removeLeftovers()
    },
    start() {
      const record = store.current()
      if (record)
        events.add({
          clusterUid: record.uid,
          reason: 'DaemonStarted',
          message: `edgehostd ${version} was started`,
        })
      unwatch = engine.watch(reconcile.wake)
      reconcile.start()
      void fileSync.run()
    },
    async stop() {
      unwatch?.()
      packs.stop()
      await reconcile.stopped()
      client.close()
    },
  }
}
