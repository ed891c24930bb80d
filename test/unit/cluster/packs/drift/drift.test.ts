import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createDrift, type DriftEvent } from '../../../../../src/cluster/packs/drift.ts'
import { newPack } from '../../../../../src/cluster/packs/pack-store.ts'
import type {
  KubernetesClient,
  KubernetesObject,
  WatchOptions,
} from '../../../../../src/kubernetes/client.ts'
import { wantedCluster, wantedPack } from '../../../../support/cluster-parts.ts'

const rules = {
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'rules', namespace: 'default' } },
  data: { a: '1' },
}

/**
 * A held pack with one object, on an API server where another program changes that object after each time that it is applied.
 * @param isUnseen whether the watch shows nothing of it, as after the definition of its kind was deleted and made again, and the other program nothing of
 * itself
 */
async function startFight(isUnseen = false) {
  const folder = await mkdtemp(join(tmpdir(), 'drift-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'rules.jsonl')
  await writeFile(file, `${JSON.stringify(rules)}\n`)
  const events: DriftEvent[] = []
  const counts = { looks: 0, applies: 0, failures: 0 }
  let version = 1
  let changed: WatchOptions['onChange'] = () => undefined
  const gate: { held?: Promise<unknown> | undefined; isGone?: boolean } = {}
  const stored = (data: object): KubernetesObject => ({
    ...rules,
    metadata: { ...rules.metadata, resourceVersion: String(version) },
    data,
  })
  const client = {
    resourceOf: async (_version: string, kind: string) => ({
      ...{ group: '', version: 'v1', plural: kind, kind, isNamespaced: true },
    }),
    async get(_resource: unknown, _object: unknown, signal?: AbortSignal) {
      counts.looks += 1
      await gate.held
      signal?.throwIfAborted()
      return gate.isGone === true ? undefined : stored({ a: isUnseen ? '1' : 'of another' })
    },
    list: async () => [],
    wouldApply: async () => stored({ a: '1' }),
    async apply() {
      counts.applies += 1
      gate.isGone = false
      version += 1
      changed()
      return stored({ a: '1' })
    },
    watch(_resource: unknown, { pick, onChange }: WatchOptions) {
      changed = onChange
      let shown = 0
      let picture: readonly KubernetesObject[] = []
      const current = () => {
        if (isUnseen) return picture
        if (shown !== version) picture = [pick!(stored({ a: 'of another' }))]
        shown = version
        return picture
      }
      return { current, problem: () => undefined }
    },
  }
  const drift = createDrift({
    client: client as unknown as KubernetesClient,
    clock: { monotonic: () => performance.now() },
    pauseMs: 0,
    log: { debug: () => undefined, warn: () => void (counts.failures += 1) },
    onEvent: (event) => void events.push(event),
  })
  onTestFinished(() => drift.stop())
  const pack = {
    ...wantedPack('shop'),
    manifests: [{ name: 'rules', namespace: 'default', file: 'rules.jsonl' }],
  }
  const { apiVersion, kind, metadata } = rules
  const record = {
    ...{ ...newPack(pack.id), appliedDigest: pack.digest, availableDigest: pack.digest },
    inventory: [{ apiVersion, kind, ...metadata }],
  }
  const hold = (generation = 1) =>
    drift.hold(wantedCluster({ generation, folder, packs: [pack] }), [record], new AbortController().signal)
  return { file, events, counts, gate, hold, isChanged: () => changed() }
}

const realImmediate = setImmediate

const isOfFile = (name: string) => name.startsWith('FSReq') || name === 'CloseReq'

/** Lets seconds pass. After each, what waits for files and for other turns of the event loop comes to its end, however long that takes. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await vi.advanceTimersByTimeAsync(1_000)
    for (let idle = 0; idle < 10; idle += 1) {
      await new Promise((resolve) => realImmediate(resolve))
      if (process.getActiveResourcesInfo().some(isOfFile)) idle = 0
    }
  }
}

describe('holding objects', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('ends a fight with another program in an event, and puts right less and less often', async () => {
    const { events, counts, hold } = await startFight()
    await hold()
    await pass(600)
    expect(events.map(({ reason }) => reason)).toEqual([
      ...['ObjectCorrected', 'ObjectCorrected', 'ObjectCorrected', 'ObjectContested'],
    ])
    expect(counts.applies).toBeGreaterThan(4)
    expect(counts.applies).toBeLessThan(12)
    const before = counts.applies
    await pass(600)
    expect(counts.applies - before).toBeLessThanOrEqual(2)
  })

  it('makes an object again that was deleted once more before the watch had seen it', async () => {
    const { counts, gate, hold } = await startFight(true)
    for (const times of [1, 2]) {
      gate.isGone = true
      await hold()
      await pass(30)
      expect(counts.applies).toBe(times)
    }
  })

  it('does not spin where the files of a pack cannot be read', async () => {
    const { file, counts, events, hold } = await startFight()
    await rm(file)
    await hold()
    await pass(120)
    expect([counts.looks, events]).toEqual([0, []])
    expect(counts.failures).toBeGreaterThan(0)
    expect(counts.failures).toBeLessThan(4)
    await writeFile(file, `${JSON.stringify(rules)}\n`)
    await pass(120)
    expect(events[0]).toMatchObject({ reason: 'ObjectCorrected' })
  })

  it('ends what is being put right when another revision begins, and looks at it again for that one', async () => {
    const { counts, gate, hold } = await startFight()
    const gates = Promise.withResolvers<undefined>()
    gate.held = gates.promise
    await hold()
    await pass(5)
    expect(counts).toMatchObject({ looks: 1, applies: 0 })
    const next = hold(2)
    gate.held = undefined
    gates.resolve(undefined)
    await next
    expect(counts.applies).toBe(0)
    await pass(5)
    expect(counts.applies).toBe(1)
  })
})
