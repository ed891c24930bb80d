import { describe, expect, it } from 'vitest'
import { differences } from '../../../../../src/cluster/packs/put-right.ts'
import { createPace } from '../../../../../src/cluster/packs/drift.ts'

describe('the pace of corrections', () => {
  function start() {
    let now = 1
    const pace = createPace({ monotonic: () => now })
    /** A correction as soon as it is due. @returns how it is told, and how long it had to wait, seconds */
    const correct = () => {
      const waitMs = Math.max(pace.restsUntil('web') - now, 0)
      now += waitMs
      return `${pace.corrected('web')} after ${waitMs / 1_000}`
    }
    return { correct, pass: (ms: number) => void (now += ms) }
  }
  it('tells three in a row, then that it is a fight, once, and puts right less and less often, at least once an hour', () => {
    const { correct } = start()
    expect(Array.from({ length: 8 }, correct)).toEqual([
      ...['correction after 0', 'correction after 0', 'correction after 10', 'fight after 10'],
      ...['undefined after 20', 'undefined after 40', 'undefined after 80', 'undefined after 160'],
    ])
    const waits = Array.from({ length: 10 }, correct)
    expect(waits.at(-1)).toBe('undefined after 3600')
  })
  it('begins anew when it was quiet for a while', () => {
    const { correct, pass } = start()
    for (let count = 0; count < 5; count += 1) correct()
    pass(700_000)
    expect(correct()).toBe('correction after 0')
  })
})

describe('the differences of two forms of an object', () => {
  const base = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'web', resourceVersion: '1', generation: 1, labels: { a: '1' } },
    spec: { replicas: 1, containers: [{ name: 'web', image: 'a' }, { name: 'side' }], args: ['a', 'b'] },
  }
  it('are named by their paths, items by their names', () => {
    const other = {
      ...base,
      metadata: { ...base.metadata, labels: {} },
      spec: { replicas: 2, containers: [{ name: 'web', image: 'b' }, { name: 'side' }], args: ['a'] },
    }
    expect(differences(base, other)).toEqual([
      ...['metadata.labels.a', 'spec.replicas', 'spec.containers[web].image', 'spec.args'],
    ])
  })
  it('are none in what the API server writes with each change', () => {
    const metadata = { ...base.metadata, resourceVersion: '2', generation: 2 }
    expect(differences(base, { ...base, metadata })).toEqual([])
  })
})
