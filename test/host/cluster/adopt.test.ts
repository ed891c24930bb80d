import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { adopt, writeCopy } from '../../../src/cluster/adopt.ts'
import { createClusterStore } from '../../../src/cluster/cluster-store.ts'
import type { NewClusterEvent } from '../../../src/cluster/events/event-log.ts'
import type { PlanParts } from '../../../src/cluster/loop/plan.ts'
import { createRevisionStore, createSealed } from '../../../src/cluster/desired/revisions.ts'
import type { Step } from '../../../src/cluster/loop/step.ts'
import { runNameOf } from '../../../src/cluster/loop/step-runner.ts'
import { createStepStore } from '../../../src/cluster/loop/step-store.ts'
import { createSecrets } from '../../../src/secrets/secrets.ts'
import { openDatabase } from '../../support/open-database.ts'
import type { RunEnd } from '../../../src/system/lasting/runs.ts'
import { planParts, wantedCluster, wantedPack } from '../../support/cluster-parts.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

const secret = 'swordfish-0907'
const asActions =
  <Args extends readonly unknown[]>(steps: (...args: Args) => readonly Step[]) =>
  (...args: Args): readonly Step[] =>
    steps(...args).map((step) => ({ ...step, work: { kind: 'action', action: step.key, order: {} } }))
const { host, engine, packs } = planParts
const parts: PlanParts = {
  host: { ...host, recordSteps: asActions(host.recordSteps), restoreSteps: asActions(host.restoreSteps) },
  engine: { ...engine, init: asActions(engine.init), reset: asActions(engine.reset) },
  packs: { ...packs, steps: asActions(packs.steps) },
}

interface LossOptions {
  readonly withSecret?: Buffer
  /** Runs of steps, by their keys; one without an end lasts. */
  readonly runs?: Readonly<Record<string, RunEnd | undefined>>
}

const plainly = {
  metadata: { name: 'edge-1' },
  spec: { archiveUploadPath: '/definitions/1', profileVariables: [{ name: 'password', value: secret }] },
}

/** A state folder with a cluster whose first step was done, and a new database. */
async function lose({ withSecret = Buffer.alloc(32, 7), runs = {} }: LossOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-adopt-'))
  const captured = captureLog()
  const database = openDatabase(join(folder, 'edgehostd.db'), captured.log)
  onTestFinished(() => {
    database.close()
    rmSync(folder, { recursive: true })
  })
  const wanted = wantedCluster({ packs: [wantedPack('web')] })
  const files = join(folder, 'cluster', wanted.uid)
  const cluster = { ...wanted, folder: join(files, '1') }
  mkdirSync(cluster.folder, { recursive: true })
  writeFileSync(join(cluster.folder, 'wanted.json'), JSON.stringify(cluster))
  await writeCopy(
    {
      ...{
        uid: cluster.uid,
        name: cluster.name,
        generation: 1,
        folder: cluster.folder,
        mark: new Uint8Array([1, 2]),
        at: 1_000,
        sensitive: [secret],
      },
      posted: { metadata: { name: cluster.name }, spec: { archiveUploadPath: '/definitions/1' } },
      summary: {
        kubernetes: { pack: 'edge-k8s', version: '1.34.4' },
        ...{ node: cluster.node, definition: { name: 'shop', version: '1.0.0', sha256: 'a' } },
      },
    },
    plainly,
    createSealed(createSecrets(Buffer.alloc(32, 7))),
  )
  const hostRecord = join(folder, 'cluster', 'host-record.json')
  writeFileSync(hostRecord, '{}')
  const sealed = createSealed(createSecrets(withSecret))
  const store = createClusterStore(database, sealed)
  const steps = createStepStore(database)
  const events: NewClusterEvent[] = []
  const begun = new Map(Object.entries(runs).map(([key, end]) => [runNameOf(key), end]))
  const start = () =>
    adopt({
      ...{ folder: join(folder, 'cluster'), hostRecord, database, store, steps, parts, sealed },
      revisions: createRevisionStore(database, sealed),
      runs: {
        find: async (name) =>
          begun.has(name) ? { program: 'node', args: [], startedAt: 5_000, end: begun.get(name) } : undefined,
      },
      ...{
        events: { add: (event) => void events.push(event) },
        clock: createTurningClock(),
        log: captured.log,
      },
    })
  return {
    start,
    store,
    steps,
    events,
    files,
    generation: cluster.folder,
    hostRecord,
    logged: captured.lines,
  }
}

it('a cluster of a lost database is adopted from its folder with its sensitive values, and that is told', async () => {
  const { start, store, steps, events, files, logged } = await lose()
  expect(await start()).toBe(true)
  expect(store.current()).toMatchObject({
    ...{ name: 'edge-1', generation: 1, sensitive: [secret], createdAt: 1_000, deleteRequestedAt: null },
    posted: { spec: { archiveUploadPath: '/definitions/1' } },
    summary: { definition: { name: 'shop' } },
    mark: new Uint8Array([1, 2]),
  })
  expect(steps.list()).toEqual([])
  expect(events).toMatchObject([
    { reason: 'Adopted', message: /taken over from .*, and its packs are applied again$/ },
  ])
  expect(JSON.stringify(logged)).toContain('the database was lost')
  expect(readFileSync(join(files, 'cluster.json'), 'utf8')).not.toContain(secret)
  // A cluster that is known is not adopted.
  expect(await start()).toBe(true)
  expect(events).toHaveLength(1)
})

it('where the secret of the state folder is lost too, the cluster is adopted and the loss is told', async () => {
  const { start, store, events } = await lose({ withSecret: Buffer.alloc(32, 8) })
  expect(await start()).toBe(true)
  expect(store.current()).toMatchObject({ name: 'edge-1', sensitive: [] })
  expect(events[0]?.message).toMatch(/sensitive values cannot be told from others any more/)
})

it('a step whose program still runs is found again, and a deletion that was begun continues', async () => {
  const ended = { kind: 'exited', exitCode: 0 } as RunEnd
  const { start, store, steps, events } = await lose({ runs: { init: ended, reset: undefined } })
  await start()
  expect(store.current()?.deleteRequestedAt).not.toBeNull()
  expect(steps.list()).toMatchObject([{ key: 'reset', state: 'running', isDeletion: 1, startedAt: 5_000 }])
  expect(events[0]?.message).toContain('its deletion continues')
})

it('without the copy of what was stored the cluster is adopted from what is wanted', async () => {
  const { start, store, events, files } = await lose()
  writeFileSync(join(files, 'cluster.json'), '{"uid": ')
  expect(await start()).toBe(true)
  expect(store.current()).toMatchObject({ name: 'edge-1', posted: { metadata: { name: 'edge-1' } } })
  expect(events[0]?.message).toContain('what was posted is lost')
})

it('where what is wanted cannot be read the cluster is adopted from the copy, so that it can be deleted', async () => {
  const { start, store, generation } = await lose()
  writeFileSync(join(generation, 'wanted.json'), '')
  expect(await start()).toBe(true)
  expect(store.current()).toMatchObject({ name: 'edge-1', folder: generation })
})

it('a folder that cannot be read stays while its cluster is on the host, and the journal says what to do', async () => {
  const { start, store, files, generation, logged } = await lose()
  writeFileSync(join(files, 'cluster.json'), '')
  rmSync(join(generation, 'wanted.json'))
  expect(await start()).toBe(false)
  expect(store.current()).toBeUndefined()
  expect(readdirSync(files)).toContain('1')
  expect(JSON.stringify(logged)).toContain('remove Kubernetes by hand')
})

it('a folder of a cluster that was never begun, or whose deletion has ended, is not adopted', async () => {
  const { start, store, hostRecord } = await lose()
  rmSync(hostRecord)
  expect(await start()).toBe(true)
  expect(store.current()).toBeUndefined()
})
