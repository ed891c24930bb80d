import { describe, expect, it } from 'vitest'
import { doneOf } from '../../../../src/cluster/packs/create-pack-work.ts'
import { keysOf, packSteps, removeSteps } from '../../../../src/cluster/packs/pack-steps.ts'
import { newPack, type PackRecord } from '../../../../src/cluster/packs/pack-store.ts'
import type { PackObserved } from '../../../../src/cluster/loop/observed.ts'
import type { DesiredPack } from '../../../../src/cluster/desired/desired-state.ts'
import { wantedCluster, wantedPack } from '../../../support/cluster-parts.ts'

const tools = { helm: '/opt/helm', kubeconfig: '/etc/admin.conf' }
const shop: DesiredPack = {
  ...wantedPack('shop'),
  namespaces: [{ name: 'shop', labels: { team: 'a' }, annotations: { note: 'b' } }],
  charts: [
    {
      ...{ name: 'web', version: '1.0.0', release: 'front', namespace: 'web' },
      ...{ file: 'packs/0/web.tgz', valuesFile: 'packs/0/web.yaml' },
    },
  ],
  manifests: [{ name: 'rules', namespace: 'shop', file: 'packs/0/rules.jsonl' }],
}
const [namespaces, chart, manifests, available] = [
  'pack p1/shop namespaces',
  'pack p1/shop chart web/front',
  'pack p1/shop manifests',
  'pack p1/shop available',
]
const rules = { apiVersion: 'v1', kind: 'ConfigMap', name: 'rules', namespace: 'shop' }
const cluster = (...packs: DesiredPack[]) => wantedCluster({ packs, folder: '/state/1' })
const stepsOf = (pack: DesiredPack, observed?: PackObserved) =>
  packSteps(tools, cluster(pack), pack, observed).map(({ key }) => key)
const observedOf = (record: PackRecord, isAvailable = false): PackObserved => ({
  ...record,
  ...{ isAvailable, wasAvailable: isAvailable, hasObjects: record.inventory.length > 0 },
  message: '',
})

describe('the steps of a pack', () => {
  it('are namespaces, then charts, then manifests, and last the wait for its workloads', () => {
    expect(stepsOf(shop)).toEqual([namespaces, chart, manifests, available])
    expect(keysOf(shop)).toEqual({ apply: [namespaces, chart, manifests], available })
  })
  it('define the kinds of its manifests before the charts, which may need them', () => {
    const steps = packSteps(tools, cluster(shop), { ...shop, definitions: ['tills.shop.example'] }, undefined)
    expect(steps.map(({ key }) => key)).toEqual([
      ...[namespaces, 'pack p1/shop definitions', chart, manifests, available],
    ])
    expect(steps[1]?.work).toMatchObject({
      ...{ kind: 'call', call: 'pack-manifests' },
      order: { id: 'p1/shop', definitions: ['tills.shop.example'] },
    })
    expect(steps[3]?.work).not.toHaveProperty('order.definitions')
  })
  it('leave out those that are done, until the pack is another one', () => {
    const half = [namespaces, chart].reduce((record, key) => doneOf(record, shop, key, 1), newPack(shop.id))
    expect(half).toMatchObject({ appliedDigest: '', partDigest: shop.digest, startedAt: 1, endedAt: null })
    expect(stepsOf(shop, observedOf(half))).toEqual([manifests, available])
    expect(stepsOf({ ...shop, digest: 'other' }, observedOf(half))).toHaveLength(4)
  })
  it('are only the wait for a pack that is applied, and nothing for one that is available', () => {
    const applied = [namespaces, chart, manifests].reduce(
      (record, key) => doneOf(record, shop, key, 1),
      newPack(shop.id),
    )
    expect(applied.appliedDigest).toBe(shop.digest)
    expect(stepsOf(shop, observedOf(applied))).toEqual([available])
    const waited = doneOf(applied, shop, available, 2)
    expect(waited).toMatchObject({ availableDigest: shop.digest, startedAt: 1, endedAt: 2 })
    expect(stepsOf(shop, observedOf(waited, true))).toEqual([])
  })
  it('begin anew with another digest, and what was applied counts as a part then', () => {
    const all = [namespaces, chart, manifests, available].reduce(
      (record, key) => doneOf(record, shop, key, 1),
      newPack(shop.id),
    )
    expect(doneOf(all, { ...shop, digest: 'other' }, namespaces, 5)).toMatchObject({
      ...{ appliedDigest: '', partDigest: 'other', doneSteps: [namespaces], availableDigest: '' },
      ...{ startedAt: 5, endedAt: null },
    })
  })
  it('are the wait alone for a pack that brings nothing, which is applied by it', () => {
    const empty = wantedPack('empty')
    expect(stepsOf(empty)).toEqual(['pack p1/empty available'])
    expect(doneOf(newPack(empty.id), empty, 'pack p1/empty available', 1).appliedDigest).toBe(empty.digest)
  })
  it('uninstall releases that it does not have any more first, and prune its objects where it has no manifests now', () => {
    const before = { ...newPack(shop.id), charts: ['web/front', 'web/old'], inventory: [rules] }
    const bare = { ...shop, digest: 'other', manifests: [] }
    expect(stepsOf(bare, observedOf(before))).toEqual([
      ...['pack p1/shop release web/old gone', namespaces, chart, manifests, available],
    ])
    const other = { ...wantedPack('other'), charts: shop.charts }
    const none = { ...bare, charts: [] }
    const steps = packSteps(tools, cluster(none, other), none, observedOf(before))
    expect(steps.map(({ key }) => key)).not.toContain('pack p1/shop release web/front gone')
    const ended = doneOf({ ...newPack(shop.id), charts: before.charts }, none, available, 1)
    expect(ended.charts).toEqual([])
  })
  it('evict its pods first where it says so, once, and not where nothing of it is there or it is only in doubt', () => {
    const drained = { ...shop, drain: { podSelector: 'app=web', isEvictionDisabled: false } }
    const key = 'pack p1/shop drain'
    const before = { ...newPack(shop.id), partDigest: 'before', inventory: [rules], charts: ['web/old'] }
    expect(stepsOf(drained, observedOf(before)).slice(0, 2)).toEqual([
      key,
      'pack p1/shop release web/old gone',
    ])
    expect(stepsOf(shop, observedOf(before))).not.toContain(key)
    expect(stepsOf(drained)).not.toContain(key)
    expect(stepsOf(drained, observedOf(doneOf(before, drained, key, 1)))).not.toContain(key)
    expect(stepsOf(drained, observedOf({ ...before, partDigest: '' }))).not.toContain(key)
  })
  it('carry absolute paths, and last longer than the wait of helm', () => {
    const [, helm] = packSteps(tools, cluster(shop), shop, undefined)
    expect(helm?.work).toEqual({
      ...{ kind: 'action', action: 'helm' },
      order: {
        ...{ program: '/opt/helm', kubeconfig: '/etc/admin.conf', release: 'front', namespace: 'web' },
        ...{ chart: '/state/1/packs/0/web.tgz', values: '/state/1/packs/0/web.yaml', digest: '' },
        ...{
          home: '/state/1/helm/web.front',
          objects: '/state/releases/web.front.json',
          wanted: '/state/releases/web.front.jsonl',
          timeoutMs: 600_000,
        },
      },
    })
    expect(helm?.timeoutMs).toBeGreaterThan(600_000 + 180_000)
  })
  it('name a chart with its values by a digest, which is another one with each of them', () => {
    const [web] = shop.charts
    const digestOf = (sum: string, valuesSum: string) => {
      const pack = { ...shop, charts: web ? [{ ...web, sum, valuesSum }] : [] }
      return packSteps(tools, cluster(pack), pack, undefined)[1]?.work.order.digest
    }
    expect(new Set([digestOf('a', 'b'), digestOf('a', 'c'), digestOf('c', 'b')]).size).toBe(3)
    expect(digestOf('a', 'b')).toMatch(/^[0-9a-f]{64}$/)
  })
  it('make also the namespaces that only charts and manifests name, but none that every cluster has', () => {
    const pack = { ...shop, manifests: [{ name: 'a', namespace: 'kube-system', file: 'a' }] }
    const [step] = packSteps(tools, cluster(pack), pack, undefined)
    expect(step?.work.order.namespaces).toEqual([
      { name: 'shop', labels: { team: 'a' }, annotations: { note: 'b' } },
      { name: 'web', labels: {}, annotations: {} },
    ])
  })
  it('give a namespace the labels of all packs that share it, since one field manager applies them', () => {
    const other = {
      ...wantedPack('other'),
      namespaces: [{ name: 'shop', labels: { tier: 'x' }, annotations: {} }],
    }
    const [step] = packSteps(tools, cluster(shop, other), other, undefined)
    expect(step?.work.order.namespaces).toEqual([
      { name: 'shop', labels: { team: 'a', tier: 'x' }, annotations: { note: 'b' } },
    ])
  })
})

describe('the steps that take a pack away', () => {
  const record = { ...newPack(shop.id), charts: ['web/first', 'web/second'], inventory: [rules] }
  const keys = (wanted = cluster(), seen = record) =>
    removeSteps(tools, wanted, shop.id, observedOf(seen)).map(({ key }) => key)

  it('are in the opposite order of its installation', () => {
    expect(keys()).toEqual([
      ...['pack p1/shop objects gone', 'pack p1/shop release web/second gone'],
      ...['pack p1/shop release web/first gone', 'pack p1/shop gone'],
    ])
  })
  it('leave a release that a wanted pack has, and name what the wanted packs need', () => {
    const [first] = shop.charts
    const other = {
      ...wantedPack('other'),
      ...{ charts: first ? [{ ...first, release: 'second' }] : [], manifests: shop.manifests },
    }
    expect(keys(cluster(other))).not.toContain('pack p1/shop release web/second gone')
    const last = removeSteps(tools, cluster(other), shop.id, observedOf(record)).at(-1)
    expect(last?.work.order).toEqual({
      ...{ id: 'p1/shop', namespaces: ['web', 'shop'] },
      others: [{ file: '/state/1/packs/0/rules.jsonl', namespace: 'shop' }],
    })
  })
  it('are only the last one for a pack of which nothing was applied', () => {
    expect(keys(cluster(), { ...newPack(shop.id), charts: [], inventory: [] })).toEqual(['pack p1/shop gone'])
  })
})
