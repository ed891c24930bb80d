import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { createReleaseAction, createUninstallAction } from '../../src/cluster/packs/releases.ts'
import { createPackWork } from '../../src/cluster/packs/create-pack-work.ts'
import type { DriftEvent } from '../../src/cluster/packs/drift.ts'
import type { Step } from '../../src/cluster/loop/step.ts'
import type { DesiredState, DesiredChart, DesiredPack } from '../../src/cluster/desired/desired-state.ts'
import { createKubernetesClient } from '../../src/kubernetes/create-client.ts'
import { openDatabase, type Database } from './open-database.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createRunner } from '../../src/system/runner.ts'
import { wantedCluster, wantedPack } from './cluster-parts.ts'
import { startKubernetesApi, type KubernetesApi } from './kubernetes-api.ts'
import { makePodsReady } from './played-pods.ts'
import { makeChart, webTemplate } from './test-charts.ts'
import { waitFor } from './wait-for.ts'

const log = pino({ level: 'silent' })

export const deployment = (name: string, replicas: number, metadata: object = {}) => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, ...metadata } },
  spec: {
    ...{ replicas, selector: { matchLabels: { app: name } } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] },
    },
  },
})
export const map = (name: string, data: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})

/** An object as the API server gives it. */
export interface Stored {
  readonly metadata: {
    readonly name: string
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

const groups: Readonly<Record<string, string>> = {
  customresourcedefinitions: '/apis/apiextensions.k8s.io/v1',
  deployments: '/apis/apps/v1',
  wheels: '/apis/example.com/v1',
}
/** @param namespace empty for what has none */
const pathOf = (namespace: string, object: string) =>
  `${groups[object.split('/')[0] ?? ''] ?? '/api/v1'}${namespace && `/namespaces/${namespace}`}/${object}`

type PackWorld = Awaited<ReturnType<typeof startPackWorld>>

/** Packs on a real API server, for the tests of a `describe`. */
export function packWorld() {
  let world: PackWorld
  beforeAll(async () => {
    world = await startPackWorld()
  }, 120_000)
  afterAll(() => world.stop())
  const createCluster: PackWorld['createCluster'] = (...args) => world.createCluster(...args)
  const read: PackWorld['read'] = (...args) => world.read(...args)
  const names: PackWorld['names'] = (...args) => world.names(...args)
  const until: PackWorld['until'] = (condition) => world.until(condition)
  const kubectl: KubernetesApi['kubectl'] = (...args) => world.api.kubectl(...args)
  return {
    ...{ createCluster, read, names, until, kubectl },
    /** As `makePodsReady` of the played pods. */
    podsReady: (namespace: string) => makePodsReady(world.api, namespace),
  }
}

/** Packs on a real API server with its controllers, without any node. */
async function startPackWorld() {
  const api = await startKubernetesApi()
  await api.startControllers()
  const client = createKubernetesClient({ kubeconfig: () => readFile(api.kubeconfig, 'utf8') })
  const folder = await mkdtemp(join(tmpdir(), 'packs-'))
  const templates = { 'web.yaml': webTemplate }
  const chart = await makeChart(
    { helm: join(api.programs, 'helm'), folder },
    { name: 'web', version: '1.0.0', templates },
  )
  const ended = new AbortController()

  /** A cluster with one pack, whose name is that of its namespace too. */
  async function createCluster(name: string, more: Partial<DesiredPack> = {}) {
    const home = await mkdtemp(join(folder, `${name}-`))
    const changes = { count: 0 }
    const hold = { isHeld: true }
    const events: DriftEvent[] = []
    const tools = { helm: join(api.programs, 'helm'), kubeconfig: api.kubeconfig, client }
    let database: Database
    const open = () => {
      database = openDatabase(join(home, 'test.db'), log)
      return createPackWork({
        ...{ ...tools, database, clock: systemClock, onChange: () => void (changes.count += 1) },
        isHeld: () => hold.isHeld,
        ...{ log, onCorrected: (event: DriftEvent) => void events.push(event) },
        pace: { pauseMs: 1, gatherMs: 50, restMs: 1_000 },
        ...{ patienceMs: 500, pauseMs: 100 },
      })
    }
    let work = open()
    let pack = {
      ...wantedPack(name),
      namespaces: [{ name, labels: { team: 'a' }, annotations: {} }],
      ...more,
    }
    const others: DesiredPack[] = []
    let isWanted = true
    const generation = join(home, '1')
    const wanted = (): DesiredState =>
      wantedCluster({ folder: generation, packs: isWanted ? [pack, ...others] : others })
    const lines: string[] = []
    const observe = async () => (await work.observe(wanted(), ended.signal)).get(pack.id)
    async function run(step: Step, signal = ended.signal) {
      const { work: what } = step
      if (isWanted) work.noteStarted(pack, step)
      const print = (line: string) => void lines.push(line)
      if (what.kind === 'action' && what.action === 'helm-uninstall')
        await createUninstallAction(createRunner())(what.order, print)
      else if (what.kind === 'action') await createReleaseAction(createRunner())(what.order, print)
      else await work.calls[what.call]?.(what.order, { signal, onLine: (line) => void lines.push(line) })
      if (isWanted) work.noteDone(pack, step)
    }
    return {
      ...{ lines, changes, events, hold, observe, run },
      work: () => work,
      /** Writes a manifest as the preparation does. */
      async manifest(file: string, ...objects: readonly object[]) {
        const path = join(generation, file)
        await mkdir(dirname(path), { recursive: true })
        await writeFile(path, objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
        return { name: file, namespace: name, file }
      },
      async chart(values: object): Promise<DesiredChart> {
        await mkdir(generation, { recursive: true })
        await writeFile(join(generation, 'values.yaml'), JSON.stringify(values), { mode: 0o600 })
        await writeFile(join(generation, 'web.tgz'), await readFile(chart))
        return {
          ...{ name: 'web', version: '1.0.0', release: 'web', namespace: name },
          file: 'web.tgz',
          valuesFile: 'values.yaml',
          sum: 'of web.tgz',
          valuesSum: JSON.stringify(values),
        }
      },
      change: (changed: Partial<DesiredPack>) => void (pack = { ...pack, ...changed }),
      steps: async () => work.steps(wanted(), pack, await observe()),
      async runAll() {
        for (const step of work.steps(wanted(), pack, await observe())) await run(step)
      },
      others,
      /** The pack is not wanted any more. */
      drop: () => void (isWanted = false),
      async removeSteps() {
        const seen = await observe()
        return seen ? work.removeSteps(wanted(), pack.id, seen) : []
      },
      /** As a restart of the daemon. */
      restart() {
        work.stop()
        database.close()
        work = open()
      },
      forget: () => {
        work.forget()
      },
    }
  }
  return {
    ...{ api, createCluster },
    /** An object, for example `configmaps/rules`; undefined where there is none. */
    read: async (namespace: string, object: string) =>
      (await api.ask('GET', pathOf(namespace, object))) as Stored | undefined,
    /** The names of the objects of a kind. @param selector of labels */
    async names(namespace: string, kind: string, selector = '') {
      const path = `${pathOf(namespace, kind)}?labelSelector=${encodeURIComponent(selector)}`
      const list = (await api.ask('GET', path)) as { items: readonly Stored[] } | undefined
      return list?.items.map(({ metadata }) => metadata.name)
    },
    until: (condition: () => Promise<boolean>) =>
      waitFor(async () => expect(await condition()).toBe(true), 30_000),
    async stop() {
      ended.abort()
      client.close()
      await api.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
