import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createHistogram } from '../base/histogram.ts'
import { createLock } from '../base/lock.ts'
import { uidOf } from '../base/uid.ts'
import type { ClusterProfileDetail } from '../definition/schemas.ts'
import type { HostInCluster } from '../host/document.ts'
import { createKubernetesClient } from '../kubernetes/create-client.ts'
import type { Room } from '../room.ts'
import { createHideOf } from '../definition/slots/secrets.ts'
import { clearLeftovers } from '../store/leftovers.ts'
import { sweepTemporary } from '../system/files.ts'
import { createLastingRuns } from '../system/lasting/runs.ts'
import { createAddEvent } from './add-event.ts'
import { adopt } from './adopt.ts'
import { createCertificates } from './certificates/certificates.ts'
import { createChange } from './change/change.ts'
import { withDefinition } from './change/edits.ts'
import { createUpkeep } from './change/upkeep.ts'
import { followCopy, writeCopy } from './cluster-copy.ts'
import { createClusterStore } from './cluster-store.ts'
import { givenIn } from './configuration/read-configuration.ts'
import { createCreation, pinHolder } from './creation.ts'
import { createDetails } from './details.ts'
import { createKubeadmEngine, readAdminKubeconfig } from './engine/kubeadm.ts'
import { isScratch } from './engine/kubeadm-files.ts'
import { isProbe } from './host/preflight/probe-folder.ts'
import { clusterPaths, kubernetesFiles } from './engine/paths.ts'
import { createExamine } from './examine.ts'
import { clusterFigures } from './figures.ts'
import { createEventLog } from './events/create-event-log.ts'
import { createErrorLogs } from './events/error-logs.ts'
import { createEventList } from './events/event-list.ts'
import { conditionsOf } from './events/lifecycle.ts'
import { createClusterHost } from './host/create-cluster-host.ts'
import { applicationsOf } from './packs/applications.ts'
import { createPackWork } from './packs/create-pack-work.ts'
import { withoutSecrets, type Observed } from './observed.ts'
import { createFromPlatform, type FromPlatform } from './from-platform.ts'
import { hostInCluster } from './host-in-cluster.ts'
import { createPlatformReport, type PlatformReport } from './platform-report.ts'
import { createPreflight } from './preflight/collect.ts'
import { createContentPreflight } from './prepare/content-preflight.ts'
import { createPrepare } from './prepare/prepare.ts'
import { readProfiles, readWanted } from './read-generation.ts'
import { createReading, noCluster } from './reading.ts'
import { createReconcile } from './reconcile.ts'
import { createRequestStore } from './request-store.ts'
import { applicationRoutes } from './routes/applications.ts'
import { changeRoutes } from './routes/change.ts'
import { clusterRoutes } from './routes/cluster.ts'
import { eventRoutes } from './routes/events.ts'
import { certificateRoutes } from './routes/certificates.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { patchRoutes } from './routes/patch.ts'
import { revisionRoutes } from './routes/revisions.ts'
import { scheduleOf } from './revisions/document.ts'
import { createRevisionStore } from './revisions/revision-store.ts'
import { createSealed } from './sealed.ts'
import { createStepRunner } from './steps/step-runner.ts'
import { createStepStore } from './steps/step-store.ts'
import { createCopies } from './update/copies.ts'
import type { Wanted } from './wanted.ts'
import type { ClusterOptions } from './room-options.ts'

/** The room, and what other rooms ask of it. */
export interface ClusterRoom extends Room {
  hasCluster(): boolean
  /** Profiles of the cluster, with sensitive values masked; undefined without a cluster. */
  profiles(): Promise<readonly ClusterProfileDetail[] | undefined>
  hostInCluster(): HostInCluster
  /** Makes the cluster what the platform of this host wants. */
  readonly fromPlatform: FromPlatform
  /** What the platform is told of the cluster; undefined without one. */
  platformReport(): Promise<PlatformReport | undefined>
}

// Seconds of a step: from the writing of a file to the start of a control plane.
const durationBounds = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600]

// A silent API server does not hold up the look at everything else.
const longestWatchMs = 8_000

// Pods of packs in trouble are asked for; without an answer the reply says less.
const longestExplanationMs = 3_000

/** Builds the room of the cluster of this host. */
export async function createCluster(options: ClusterOptions): Promise<ClusterRoom> {
  const { settings, stateDirectory, database, host, files, content, runner, stopping, clock, log } = options
  const { architecture, hostId, completeUntil } = options
  const isComplete = completeUntil > -Infinity
  const paths = clusterPaths(stateDirectory)
  const sealed = createSealed(options.secrets)
  const store = createClusterStore(database, sealed)
  const revisions = createRevisionStore(database, sealed)
  const steps = createStepStore(database)
  const events = createEventLog({
    ...{ database, limits: settings.events, onStored: options.onEvent, clock, log },
  })

  const addEvent = createAddEvent(events)
  const client = createKubernetesClient({ kubeconfig: readAdminKubeconfig })
  const engine = createKubeadmEngine({
    ...{ stateDirectory, settings, content, architecture, runner, log, client },
    ...{ registry: content.registry.state, certificate: options.certificate, now: () => clock.now() },
  })
  const clusterHost = createClusterHost({
    ...{ stateDirectory, files, runner, privileged: options.privileged, architecture },
    ...{ cores: options.cores, now: () => clock.now(), monotonic: () => clock.monotonic() },
    ...{ sshAccount: settings.sshAccount, stepProgram: options.programs.step },
  })
  const packs = createPackWork({
    ...{ database, client, clock, helm: engine.programs.current('helm') },
    kubeconfig: kubernetesFiles.adminConfig,
    onChange: () => reconcile.wake(),
    isHeld: () => store.current()?.deleteRequestedAt === null,
    onCorrected(event) {
      const record = store.current()
      if (record) addEvent(record, event)
    },
    log,
  })
  const parts = { host: clusterHost, engine, packs }
  /** Looks at what the packs stand on. */
  async function observeBase(wanted: Wanted, signal: AbortSignal): Promise<Omit<Observed, 'packs'>> {
    const [ofHost, ofEngine] = await Promise.all([
      clusterHost.observe(wanted, signal),
      engine.observe(wanted, signal),
    ])
    return { ...ofHost, engine: ofEngine }
  }

  const runsFolder = join(paths.folder, 'steps')
  const runs = createLastingRuns({
    ...{ runner, folder: runsFolder, program: options.programs.keeper },
    ...{ asUnits: options.asUnits, unitPrefix: 'edgehostd-step-' },
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
  /** The generation that was active when the files were brought up to date last. */
  let keptUp: number | undefined
  const reconcile = createReconcile({
    ...{ database, store, revisions, steps, parts, events, inTurn, stopping, clock, log },
    limits: {
      availableMs: settings.update.timeoutSeconds * 1_000,
      kubernetesMs: settings.update.kubernetesTimeoutSeconds * 1_000,
      silentMs: settings.update.apiSilentSeconds * 1_000,
    },
    runner: createStepRunner({
      ...{ runs, store: steps, calls: { ...engine.calls, ...packs.calls }, program: options.programs.step },
      ...{ now: () => clock.now(), log },
    }),
    async observe(wanted, signal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(longestWatchMs)])
      const [rest, ofPacks] = await Promise.all([observeBase(wanted, signal), packs.observe(wanted, limited)])
      return withoutSecrets({ ...rest, packs: ofPacks }, hide())
    },
    eventOf: (step, line) =>
      engine.eventOf(step, line) ?? packs.eventOf(step, line) ?? clusterHost.eventOf(step, line),
    readWanted,
    // What is left pinned of content that cannot be used now, a job lets go.
    release: () =>
      content
        .unpin(pinHolder)
        .catch((error: unknown) => log.warn({ err: error }, 'the content of the cluster is let go later')),
    async removeFiles({ uid }) {
      await removeFiles(uid)
      await rm(runsFolder, { recursive: true, force: true })
    },
    onEnd(end, durationMs) {
      ends[end] += 1
      if (end === 'done') durations.observe(durationMs / 1_000)
    },
    onStanding() {
      void host.refresh()
      // Another revision may be active.
      const active = store.current()?.generation
      if (active !== undefined && active !== keptUp) void upkeep.run()
      keptUp = active
    },
  })

  const prepare = await createPrepare({
    ...{ folder: paths.folder, definitions: options.definition, content, runner, stopping, log },
    ...{ limits: options.definitionSettings.archive, check: options.definitionSettings.check },
    reserveBytes: options.definitionSettings.upload.reserveBytes,
    program: options.programs.prepare,
    async helm() {
      const found = await engine.programs.find('helm')
      return found.kind === 'missing' ? undefined : engine.programs.place('helm')
    },
  })
  const examine = createExamine({
    prepare,
    preflight: createPreflight({
      ...{ engine, host: clusterHost, log },
      content: createContentPreflight({ content, architecture }),
    }),
  })
  const facts = () => ({
    ...{ id: hostId, hostName: host.hostName(), architecture },
    ...{ nics: host.nics(), addresses: host.addresses() },
  })
  const onAccepted = () => {
    reconcile.wake()
    void host.refresh()
  }
  const creation = createCreation({
    ...{ database, store, revisions, sealed, inTurn, examine, parts, content, events },
    ...{ removeFiles, removePrograms },
    ...{ clock, facts, onAccepted, placeEndpoint: clusterHost.placeEndpoint },
    writeCopy: (cluster, plain) => writeCopy(cluster, plain, sealed),
    requests: createRequestStore(database),
  })
  const { copies, copyTime } = createCopies(engine, revisions)
  const upkeep = createUpkeep({
    ...{ store, revisions, content, inTurn, log },
    isComplete: () => isComplete && isKnown,
    followCopy: (record) => followCopy(record, revisions.find(record.generation)?.plain, sealed),
    copies,
  })
  const change = createChange({
    ...{ database, store, revisions, sealed, inTurn, examine, facts, content, parts, clock },
    add: addEvent,
    observe: async (wanted, signal) => ({
      ...(await observeBase(wanted, signal)),
      packs: reconcile.observed()?.packs ?? new Map(),
    }),
    ...{ copies, copyTime },
    onAccepted() {
      onAccepted()
      void upkeep.run()
    },
  })
  const reading = createReading({
    ...{ store, revisions, hostId, clock, standing: reconcile.standing, kubeconfig: engine.kubeconfig },
    details: createDetails({
      ...{ hostId, architecture, version: options.version, clock, steps: steps.list },
      scheduleAt() {
        const pending = revisions.pending()
        return pending ? scheduleOf(pending) : null
      },
      nics: host.nics,
      conditions: () => conditionsOf(events, 'cluster'),
      settings: () => reconcile.observed()?.settings,
      client: async () => (reconcile.observed()?.engine.api === 'answers' ? client : undefined),
    }),
  })

  const certificates = createCertificates({
    ...{ database, store, engine, steps, clock },
    ...{ add: addEvent, onAsked: reconcile.wake },
  })

  /** Asks for the deletion of the cluster; again while it is under way: nothing. */
  function remove() {
    const record = store.current()
    if (!record) throw noCluster()
    const { uid, name, deleteRequestedAt } = record
    if (deleteRequestedAt === null)
      database.transaction(() => {
        store.requestDeletion(clock.now())
        events.add({ clusterUid: uid, reason: 'Deleting', message: `the cluster ${name} is being deleted` })
      })
    reconcile.wake()
    void host.refresh()
    return { uid, name }
  }

  /** Removes folders of clusters that were not accepted, and what a kill of the daemon has left half written or half removed. */
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
    for (const name of await readdir(stateDirectory))
      if (isProbe(name)) await rm(join(stateDirectory, name), { recursive: true, force: true })
    await sweepTemporary(paths.folder)
  }

  /** @param explain whether the API of Kubernetes is asked why packs are not available */
  async function applications(explain = true) {
    const record = store.current()
    if (!record) throw noCluster()
    const seen = reconcile.observed()
    const [profiles, wanted, explained] = await Promise.all([
      readProfiles(record),
      readWanted(record),
      seen && explain ? packs.explain(seen.packs, AbortSignal.timeout(longestExplanationMs)) : seen?.packs,
    ])
    const observed = seen && explained && withoutSecrets({ ...seen, packs: explained }, hide())
    return applicationsOf({
      ...{ profiles, wanted, observed, records: packs.records(), steps: steps.list(), hide: hide() },
      given: givenIn(record.posted.spec ?? {}),
    })
  }

  const fromPlatform = createFromPlatform({
    ...{ store, revisions, creation, change, remove, log },
    ...{ definitions: options.definition, problemOf: options.problemOf, record: options.record },
  })
  const platformReport = createPlatformReport({
    ...{ store, standing: reconcile.standing, steps: steps.list, kubeconfig: engine.kubeconfig },
    conditions: () => conditionsOf(events, 'cluster'),
    applications: () => applications(false),
  })

  /** When the cluster was accepted; without one, when the last was deleted, 0 where that is not known. */
  const clusterSince = () =>
    store.current()?.createdAt ?? events.conditions().find(({ reason }) => reason === 'Deleted')?.probeAt ?? 0

  const { hostName } = host
  const eventList = createEventList({
    ...{ database, events, hide, hostName, listTokens: options.listTokens },
    client: () => ((reconcile.observed()?.engine.api ?? 'absent') === 'absent' ? undefined : client),
  })
  let unwatch: (() => void) | undefined
  return {
    ...{ fromPlatform, platformReport },
    hasCluster: () => store.current() !== undefined,
    async profiles() {
      const record = store.current()
      return record && readProfiles(record)
    },
    hostInCluster: () =>
      hostInCluster(store.current(), reconcile.observed()?.engine.controlPlane === 'complete'),
    async routes(app) {
      await clusterRoutes(app, { creation, reading, remove })
      await app.register(changeRoutes, {
        change,
        reading,
        withDefinition: withDefinition(options.definition),
      })
      await app.register(patchRoutes, { change, reading })
      await revisionRoutes(app, { reading })
      await nodeRoutes(app, { reading })
      await certificateRoutes(app, { certificates })
      await applicationRoutes(app, { applications: () => applications() })
      await eventRoutes(app, {
        ...{ events, eventList, hostName },
        errorLogs: createErrorLogs({ runner, hide, clock, clusterSince }),
      })
    },
    jobs: [
      { name: 'cluster-events', schedule: '41 * * * *', stuckAfterMs: 3_600_000, run: () => events.retain() },
      // Another disk may be mounted for the content, or its pins be lost.
      { name: 'cluster-content', schedule: '*/5 * * * *', stuckAfterMs: 3_600_000, run: upkeep.run },
    ],
    figures: () => clusterFigures(reconcile.standing(), ends, durations),
    // Before a request may create a cluster.
    async prepare() {
      const { folder, hostRecord } = paths
      isKnown = await adopt({
        ...{ folder, hostRecord, database, store, revisions, steps, runs, parts, sealed, events, clock, log },
      })
      if (isKnown) await removeLeftovers()
    },
    start() {
      const record = store.current()
      if (record)
        events.add({
          ...{ clusterUid: record.uid, reason: 'DaemonStarted' },
          message: `edgehostd ${options.version} was started`,
        })
      unwatch = engine.watch(reconcile.wake)
      reconcile.start()
      void upkeep.run()
    },
    async stop() {
      unwatch?.()
      packs.stop()
      await reconcile.stopped()
      client.close()
    },
  }
}
