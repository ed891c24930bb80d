import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, expect } from 'vitest'
import { createLock } from '../../src/base/lock.ts'
import { createAddEvent } from '../../src/cluster/events/event-log.ts'
import { createChange } from '../../src/cluster/desired/change.ts'
import { createFileSync } from '../../src/cluster/desired/file-sync.ts'
import { createClusterStore, type NewCluster } from '../../src/cluster/cluster-store.ts'
import { createAcceptance, createExamine } from '../../src/cluster/desired/acceptance.ts'
import { emptyHost } from '../../src/cluster/loop/observed.ts'
import type { Prepared, PreparedVariable, PrepareRequest } from '../../src/cluster/desired/prepared.ts'
import type { PreflightProblem } from '../../src/cluster/desired/preflight-codes.ts'
import { documentOf, shownRevision } from '../../src/cluster/desired/revision-document.ts'
import { makeWayBack } from '../../src/cluster/loop/activation.ts'
import { createRevisionStore, createSealed } from '../../src/cluster/desired/revisions.ts'
import type { ClusterConfiguration } from '../../src/cluster/schemas.ts'
import type { DesiredState } from '../../src/cluster/desired/desired-state.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { openDatabase } from './open-database.ts'
import { planParts, runningHost, wantedCluster, wantedPack } from './cluster-parts.ts'
import { captureLog } from './https-server.ts'
import { createTurningClock } from './turning-clock.ts'

export const secret = 'swordfish-0907'
export const signal = new AbortController().signal
export const by = 'ada'
export const posted: ClusterConfiguration = {
  metadata: { name: 'edge-1', labels: { site: 'press-hall' } },
  spec: {
    archiveUploadPath: '/definitions/1',
    profileVariables: [
      { name: 'replicas', value: '2' },
      { name: 'password', value: secret },
    ],
  },
}

interface WorldOptions {
  readonly kubernetes?: Partial<DesiredState['kubernetes']>
  readonly copiedAt?: number
  readonly packs?: DesiredState['packs']
}

/** A cluster that runs with its first revision, and the writes of it; what prepares and checks is played. */
export function createChangingCluster({
  kubernetes = {},
  copiedAt,
  packs = [wantedPack('web')],
}: WorldOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-change-'))
  const file = join(folder, 'edgehostd.db')
  const { log } = captureLog()
  const database = openDatabase(file, log)
  onTestFinished(() => {
    database.close()
    rmSync(folder, { recursive: true })
  })
  const clock = createTurningClock()
  const sealed = createSealed(createSecrets(Buffer.alloc(32, 7)))
  const store = createClusterStore(database, sealed)
  const revisions = createRevisionStore(database, sealed)
  const ofPack = wantedCluster().kubernetes
  const first = wantedCluster({ packs, kubernetes: { ...ofPack, ...kubernetes } })
  const folderOf = (generation: number) => join(folder, first.uid, String(generation))
  const place = (wanted: DesiredState) => {
    mkdirSync(wanted.folder, { recursive: true })
    writeFileSync(join(wanted.folder, 'wanted.json'), JSON.stringify(wanted))
    writeFileSync(join(wanted.folder, 'details.json'), '[]')
  }
  const wanted = { ...first, folder: folderOf(1) }
  place(wanted)
  const definition = { name: 'factory', version: '1.0.0', sha256: 'a'.repeat(64) }
  const cluster: NewCluster = {
    ...{ uid: wanted.uid, name: wanted.name, generation: 1, folder: wanted.folder, at: clock.now() },
    posted: {
      ...posted,
      spec: {
        ...posted.spec,
        profileVariables: [
          { name: 'replicas', value: '2' },
          { name: 'password', value: '********' },
        ],
      },
    },
    ...{ sensitive: [secret], mark: new Uint8Array(32) },
    summary: { kubernetes: wanted.kubernetes, node: wanted.node, definition, content: ['sha256:1'] },
  }
  store.add(cluster)
  revisions.add({
    ...{ ...cluster, by, origin: 'create', plain: posted, outcome: 'applying', scheduleAt: null },
  })
  store.noteRan(1)
  revisions.note(1, 'good', { at: clock.now() })

  const requests: PrepareRequest[] = []
  const done: string[] = []
  const events: string[] = []
  const found = { problems: [] as PreflightProblem[], variables: [] as PreparedVariable[], isSecret: true }
  const next = { kubernetes: wanted.kubernetes, packs: first.packs }
  const hold: { gate?: Promise<void>; busy?: Error } = {}
  const prepare = async (request: PrepareRequest): Promise<Prepared> => {
    requests.push(request)
    await hold.gate
    const prepared = {
      ...{ ...first, generation: request.generation, folder: folderOf(request.generation) },
      ...{ node: request.node, settings: request.settings },
      kubernetes: request.kubernetes ?? next.kubernetes,
      packs: next.packs,
    }
    const given = (name: string) => {
      const { profileUid = '', value = '' } = request.variables.find((each) => each.name === name) ?? {}
      return { profileUid: profileUid || 'p1', name, value }
    }
    return {
      ...{
        desired: prepared,
        problems: [],
        profiles: [],
        needs: [],
        derived: [],
        chartDigests: [],
        definition,
      },
      variables: [
        { ...given('replicas'), isSensitive: false },
        { ...given('password'), isSensitive: found.isSecret },
        ...found.variables,
      ],
      keep: async () => place(prepared),
      discard: async () => undefined,
    }
  }
  const inTurn = createLock()
  const refuseBusy = () => {
    if (hold.busy) throw hold.busy
  }
  const content = {
    pin: async (_holder: string, digests: readonly string[]) => void done.push(`pin ${digests.join()}`),
    renewPins: async (_holder: string, digests: readonly string[]) =>
      void done.push(`renew ${digests.join()}`),
  }
  const change = createChange({
    ...{ store, revisions, inTurn, clock, parts: planParts },
    accept: createAcceptance({ database, revisions, sealed, content, clock, refuseBusy }),
    refuseBusy,
    examine: createExamine({
      prepare: { prepare },
      preflight: async (_prepared, ofPosted, _signal, running) => {
        expect(running?.generation).toBe(store.current()?.generation)
        const problems = [...ofPosted, ...found.problems]
        const isPossible = !problems.some(({ severity }) => severity === 'error')
        return { problems, isPossible, needs: [], digests: ['sha256:2'] }
      },
    }),
    facts: () => ({
      ...{ id: 'edge-7', hostName: 'other', architecture: 'amd64', addresses: ['198.51.100.1'] },
      nics: [{ nicName: 'eth0', ip: '198.51.100.1', isDefault: true }],
    }),
    observe: async () => ({ ...runningHost(wanted), packs: emptyHost.packs }),
    copyTime: async () => copiedAt,
    copies: async () => [],
    add: createAddEvent({ add: ({ reason, message }) => void events.push(`${reason}: ${message}`) }),
    onAccepted: () => void done.push('accepted'),
  })
  const upkeep = createFileSync({
    isComplete: () => true,
    ...{ store, revisions, content, inTurn, log },
    ...{ followCopy: async () => undefined, copies: async () => [] },
  })
  const shown = () => documentOf(store.current()!, shownRevision(revisions, store.current()!))
  const write = (
    edit: (document: ClusterConfiguration) => ClusterConfiguration,
    more: { ifMatch?: string; name?: string } = {},
  ) => change.write({ ifMatch: undefined, by, ...more, edit: async (document) => edit(document) }, signal)
  /** As the loop does it. */
  const activate = (outcome: 'good' | 'failed' = 'good') => {
    const revision = revisions.newest()!
    const good = store.current()!.goodGeneration
    store.activate(revision, clock.now())
    if (outcome === 'good') store.noteRan(revision.generation)
    else store.activate(revisions.find(good)!, clock.now())
    revisions.note(revision.generation, outcome, { at: clock.now() })
  }
  /** As the loop does it: the newest revision, with another Kubernetes, has failed; its Kubernetes stays. */
  const goBackWithKubernetes = async () => {
    const [record, kept] = [store.current()!, revisions.newest()!]
    const good = revisions.find(record.goodGeneration)!
    revisions.note(kept.generation, 'failed', { at: clock.now() })
    const generation = kept.generation + 1
    const made = await makeWayBack(record, { good, kept, generation, at: clock.now() })
    revisions.add(made)
    store.activate(made, clock.now())
    store.noteRan(generation)
    revisions.note(generation, 'good', { at: clock.now() })
  }
  return {
    ...{
      change,
      upkeep,
      store,
      goBackWithKubernetes,
      revisions,
      shown,
      write,
      activate,
      clock,
      requests,
      done,
      events,
      found,
    },
    ...{ next, hold, file, database },
    generations: () => readdirSync(join(folder, first.uid)).sort((a, b) => Number(a) - Number(b)),
  }
}

export type ChangingCluster = ReturnType<typeof createChangingCluster>
export const spec = (document: ClusterConfiguration, more: Partial<ClusterConfiguration['spec']>) => ({
  ...document,
  spec: { ...document.spec, ...more },
})
/** Another number of replicas, and the mask of the password. */
export const withReplicas = (value: string) => (document: ClusterConfiguration) =>
  spec(document, {
    profileVariables: [
      { name: 'replicas', value },
      { name: 'password', value: '********' },
    ],
  })
export const rollBack = ({ change }: ChangingCluster, revision?: number, discardChanges = false) =>
  change.rollBack({ ifMatch: undefined, by, revision, discardChanges }, signal)
