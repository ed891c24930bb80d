import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { createLock } from '../../src/base/lock.ts'
import { isOlder } from '../../src/cluster/desired/version.ts'
import { readDesired } from '../../src/cluster/desired/prepared.ts'
import { renewalStep, type Step, type StepCalls } from '../../src/cluster/loop/step.ts'
import { createClusterStore } from '../../src/cluster/cluster-store.ts'
import { createEventLog, createEventStore } from '../../src/cluster/events/event-log.ts'
import type { Observed } from '../../src/cluster/loop/observed.ts'
import { createReconcile } from '../../src/cluster/loop/reconcile.ts'
import { type NewRevision, createRevisionStore, createSealed } from '../../src/cluster/desired/revisions.ts'
import type { DesiredState, DesiredPack } from '../../src/cluster/desired/desired-state.ts'
import { createStepRunner } from '../../src/cluster/loop/step-runner.ts'
import { createStepStore } from '../../src/cluster/loop/step-store.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { openDatabase } from './open-database.ts'
import { systemClock, type Clock } from '../../src/system/clock.ts'
import { createLastingRuns } from '../../src/system/lasting/runs.ts'
import { createRunner } from '../../src/system/runner.ts'
import { emptyHost, planParts, runningHost, wantedCluster, wantedPack } from './cluster-parts.ts'
import { loopStepProgram, playLoopRuns } from './loop-steps.ts'
import { keeperProgram } from './programs.ts'

/** The version of Kubernetes to which a host of a test can be upgraded. */
export const nextVersion = '1.35.0'

interface LifeOptions {
  readonly clock?: Clock
  /** As `UpdateLimits` has it. */
  readonly availableMs?: number
  /** Whether the host does something that a change of the cluster waits for. */
  readonly isHeld?: () => boolean
}

/** Work of the host that a change of the cluster waits for; off at first. */
export function createHold() {
  let [isOn, asked] = [false, 0]
  return {
    /** For a life. */
    isHeld() {
      asked += 1
      return isOn
    },
    turn(on: boolean) {
      isOn = on
    },
    /** How often the loop has asked. */
    asked: () => asked,
  }
}

/**
 * A host of files that a cluster is made on, which outlives every loop of a test.
 * @param asProcesses whether steps are processes with their keepers, as on a host; by default they are taken within the test process
 */
export async function createLoopWorld(packs = [wantedPack('web')], { asProcesses = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-loop-'))
  const lines: { level: number; msg: string }[] = []
  const log = pino(
    { level: 'debug' },
    { write: (line: string) => void lines.push(JSON.parse(line) as never) },
  )
  const file = (name: string) => join(folder, name)
  const has = (name: string) => existsSync(file(name))
  const put = (name: string, text = '') => {
    writeFileSync(file(name), text)
  }
  writeFileSync(file('step.cjs'), loopStepProgram(folder))
  await mkdir(file('state'))
  const place = (generation: number, more: Partial<DesiredState>): DesiredState => {
    const placed = wantedCluster({ ...more, generation, folder: file(`cluster/${generation}`) })
    mkdirSync(placed.folder, { recursive: true })
    writeFileSync(join(placed.folder, 'wanted.json'), JSON.stringify(placed))
    writeFileSync(join(placed.folder, 'details.json'), '[]')
    return placed
  }
  const wanted = place(1, { packs })
  const text = (name: string) => (has(name) ? readFileSync(file(name), 'utf8') : '')
  const runs = asProcesses
    ? createLastingRuns({
        runner: createRunner(),
        folder: file('state/steps'),
        program: keeperProgram(),
        asUnits: false,
      })
    : playLoopRuns(folder)
  const ends: AbortController[] = []
  const stops: (() => Promise<void>)[] = []
  onTestFinished(async () => {
    for (const end of ends) end.abort()
    for (const stop of stops) await stop()
    // A keeper whose daemon is gone may still write its end.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  })
  const action = (key: string, more: Partial<Step> = {}): Step => ({
    ...{ key, title: `Do ${key}`, timeoutMs: 60_000, work: { kind: 'action', action: key, order: { n: 1 } } },
    ...more,
  })

  /** What the files say. */
  function observed(): Observed {
    const whole = runningHost(wanted)
    const isInit = has('is-init')
    const { version: first } = wanted.kubernetes
    const version = has('is-kubernetes-upgrade') && !has('is-kubernetes-restore') ? nextVersion : first
    const isChanging = has('begun-kubernetes-upgrade') && !has('is-kubernetes-upgrade')
    const change = { from: first, to: nextVersion, generation: 2, phase: 'upgrading' } as const
    return {
      isHostRecorded: has('is-record'),
      isAddressHeld: true,
      settings: whole.settings,
      engine: isInit
        ? {
            ...whole.engine,
            version,
            ...(isChanging ? { change } : {}),
            api: has('silent') ? 'silent' : 'answers',
          }
        : { ...emptyHost.engine, isPresent: has('is-prepare'), isPrepared: has('is-prepare') },
      packs: new Map(
        packs.flatMap(({ id, name }) => {
          const digest = text(`applied-${name}`)
          if (digest === '') return []
          const isAvailable = text(`available-${name}`) === digest
          const message = `Deployment ${name} is down`
          const ofPack = { appliedDigest: digest, partDigest: digest, doneSteps: [], charts: [], message }
          const hasObjects = true
          const why = text(`why-${id.replace('/', '-')}`)
          const place = {
            namespace: 'shop',
            pod: `${name}-1`,
            workload: `Deployment/${name}`,
            container: name,
          }
          const troubles = [{ reason: 'Crashing', message: why, ...place }] as const
          return [
            [
              id,
              {
                ...{ ...ofPack, hasObjects, isAvailable, wasAvailable: isAvailable },
                ...(why === '' || isAvailable ? {} : { troubles }),
              },
            ] as const,
          ]
        }),
      ),
    }
  }

  const calls: StepCalls = {
    async apply({ pack, digest }, { onLine, signal }) {
      onLine(`applying ${String(pack)}`)
      for (const name of ['fail-apply', `fail-apply-${String(digest)}`])
        if (has(name)) throw new Error(text(name))
      while (has('hold-apply') && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10))
      signal.throwIfAborted()
      if (has(`available-${String(pack)}`)) put(`available-${String(pack)}`)
      put(`applied-${String(pack)}`, String(digest))
    },
    async wait({ pack, digest }, { signal }) {
      while (has(`down-${String(digest)}`) && !signal.aborted)
        await new Promise((resolve) => setTimeout(resolve, 10))
      signal.throwIfAborted()
      put(`available-${String(pack)}`, String(digest))
    },
  }

  /** A daemon's life: the loop over the database and the files. */
  function live({ clock = systemClock, availableMs = 600_000, isHeld = () => false }: LifeOptions = {}) {
    const stopping = new AbortController()
    ends.push(stopping)
    const database = openDatabase(file('state/edgehostd.db'), log)
    const sealed = createSealed(createSecrets(Buffer.alloc(32, 1)))
    const store = createClusterStore(database, sealed)
    const revisions = createRevisionStore(database, sealed)
    const steps = createStepStore(database)
    const events = createEventLog({
      ...{ database, limits: { retentionDays: 30, maximum: 10_000 }, clock, log },
    })
    const stepRunner = createStepRunner({
      ...{ runs, store: steps, calls, program: file('step.cjs'), now: () => clock.now(), log },
    })
    const all = () => createEventStore(database).after(0, 1_000)
    const released: string[] = []
    const loop = createReconcile({
      ...{
        database,
        store,
        revisions,
        steps,
        runner: stepRunner,
        events,
        stopping: stopping.signal,
        clock,
        isHeld,
        log,
      },
      limits: { availableMs, kubernetesMs: 1_800_000, silentMs: 120_000 },
      parts: {
        host: {
          recordSteps: ({ isHostRecorded }) => (isHostRecorded ? [] : [action('record')]),
          addressSteps: () => [],
          settingsSteps: () => [],
          // Like the real one it plans all of its steps until the last one is done.
          restoreSteps: (_wanted, { isHostRecorded }) =>
            isHostRecorded ? [action('drop'), action('restore')] : [],
        },
        engine: {
          prepare: (_wanted, { isPrepared }) => (isPrepared ? [] : [action('prepare')]),
          init: (_wanted, { controlPlane }) => (controlPlane === 'complete' ? [] : [action('init')]),
          change: ({ kubernetes: { version } }, seen) => {
            if (version === seen.version) return []
            const name = isOlder(version, seen.version)
              ? 'restore'
              : version === nextVersion
                ? 'upgrade'
                : 'check'
            return [action(`kubernetes-${name}`)]
          },
          renew: (_wanted, _observed, isAskedFor) =>
            isAskedFor || has('due') ? [action(renewalStep, { isAside: true })] : [],
          reset: (_wanted, { isPresent }) => (isPresent ? [action('reset')] : []),
        },
        packs: {
          steps: (given, pack, seen) =>
            planParts.packs.steps(given, pack, seen).map((step) => ({
              ...step,
              work: {
                kind: 'call',
                call: step.key.split(' ')[1] ?? '',
                order: { pack: pack.name, digest: pack.digest },
              },
            })),
          removeSteps: () => [],
          noteStarted: () => undefined,
          noteDone: ({ id }, { key }) => put(`noted-${id.replace('/', '-')}-${key.split(' ')[1]}`),
          doubt: () => put('doubted'),
          forget: () => put('forgotten'),
        },
      },
      observe: async () => observed(),
      eventOf: ({ key }, line) =>
        key === 'init' && line.startsWith('[') ? { reason: 'StepProgress', message: line } : undefined,
      readDesired,
      inTurn: createLock(),
      release: async ({ name }) => void released.push(name),
      removeFiles: async () => put('removed'),
      random: () => 0.5,
      pauses: { healthy: 50, moving: 30, failed: 30, least: 5 },
    })
    const end = async () => {
      stopping.abort()
      await loop.stopped()
      if (database.sql.isOpen) database.close()
    }
    stops.push(end)
    return {
      ...{ database, store, revisions, steps, all, loop, released, end },
      accept(more: { sensitive?: readonly string[] } = {}) {
        const first = revisionOf(wanted, { origin: 'create', outcome: 'applying', ...more })
        store.add({ ...first, uid: wanted.uid, name: wanted.name })
        revisions.add(first)
      },
      /** Accepts a revision with other packs. */
      revise(
        generation: number,
        packsOfIt: readonly DesiredPack[],
        { version, ...more }: Partial<NewRevision> & { readonly version?: string } = {},
      ) {
        const kubernetes = { ...wanted.kubernetes, ...(version === undefined ? {} : { version }) }
        revisions.add(revisionOf(place(generation, { packs: packsOfIt, kubernetes }), more))
        loop.wake()
      },
      /** Reasons of the stored events, the oldest first. */
      reasons: () => all().map(({ reason }) => reason),
      messages: () => all().map(({ message }) => message),
      delete() {
        store.requestDeletion(clock.now())
        loop.wake()
      },
    }
  }
  return {
    ...{ folder, wanted, live, put, has, file, lines },
    remove: (name: string) => rm(file(name), { force: true }),
    /** How often the program of an action was begun. */
    begun: (name: string) => (has(`begun-${name}`) ? readFileSync(file(`begun-${name}`), 'utf8').length : 0),
    names: (below = '') => readdirSync(file(below)),
    text,
    /** Makes a folder. */
    fold: (name: string) => void mkdirSync(file(name), { recursive: true }),
  }
}

const revisionOf = (wanted: DesiredState, more: Partial<NewRevision>): NewRevision => ({
  ...{ generation: wanted.generation, at: Date.now(), by: 'ada', origin: 'update', outcome: 'waiting' },
  ...{ posted: { metadata: { name: wanted.name } }, plain: { metadata: { name: wanted.name } } },
  summary: {
    ...{ kubernetes: wanted.kubernetes, node: wanted.node, content: [] },
    definition: { name: 'd', version: '1', sha256: '0'.repeat(64) },
  },
  ...{ folder: wanted.folder, sensitive: [], mark: new Uint8Array(32), scheduleAt: null },
  ...more,
})
