import { describe, expect, it } from 'vitest'
import { whyLate } from '../../../../src/cluster/loop/verdict.ts'
import type { Trouble } from '../../../../src/cluster/loop/observed.ts'
import type { StepRecord } from '../../../../src/cluster/loop/step-store.ts'
import { appliedPack, runningHost, wantedCluster, wantedPack } from '../../../support/cluster-parts.ts'

const [cni, web, shop] = [wantedPack('cni', 0), wantedPack('web', 1), wantedPack('shop', 2)]
const wanted = wantedCluster({ packs: [cni, web, shop] })
const reason = 'p1/web is not applied, 600 s after it was begun'
const pod = 'pod web-1: container web: it ended with exit code 3'
const failedStep = (more: Partial<StepRecord> = {}) =>
  ({
    ...{ key: 'p1/web chart', title: 'Install the chart web', state: 'running', failures: 2 },
    ...{ reason: 'helm: no room', ...more },
  }) as StepRecord

const crashing = (name: string): Trouble => ({
  ...{ reason: 'Crashing', message: 'it ended with exit code 3', namespace: 'shop', pod: `${name}-1` },
  container: name,
})

/** With cni applied and available, web applied only, shop not at all; and the pods of those that are named crash. */
function lateHost(crashingPacks: readonly string[], api: 'answers' | 'silent' = 'answers') {
  const host = runningHost(wanted)
  const troubles = (name: string) => (crashingPacks.includes(name) ? { troubles: [crashing(name)] } : {})
  return {
    ...host,
    engine: { ...host.engine, api },
    packs: new Map([
      [cni.id, { ...appliedPack(cni, true), ...troubles('cni') }],
      [web.id, { ...appliedPack(web, false), ...troubles('web') }],
      [shop.id, { ...appliedPack(shop, false), appliedDigest: '', ...troubles('shop') }],
    ]),
  }
}

describe('why a revision has to go', () => {
  const why = (packs: readonly string[], more: object = {}) =>
    whyLate({ reason, desired: wanted, observed: lateHost(packs), steps: [], ...more })

  it('names the pod and the container of the first pack that is not available', () => {
    expect(why(['cni', 'web', 'shop'])).toBe(`${reason}; ${pod}`)
  })

  it('names the pod of a later pack where the one before has none', () => {
    expect(why(['shop'])).toBe(`${reason}; pod shop-1: container shop: it ended with exit code 3`)
  })

  it('tells why a step failed last, also while it is tried again, and nothing twice', () => {
    expect(why([], { steps: [failedStep()] })).toBe(`${reason}; Install the chart web: helm: no room`)
    const withPod = failedStep({ reason: `helm: ${pod}` })
    expect(why(['web'], { steps: [withPod] })).toBe(`${reason}; Install the chart web: helm: ${pod}`)
    expect(why([], { reason: 'Install: helm: no room', steps: [failedStep()] })).toBe(
      'Install: helm: no room',
    )
    for (const history of [failedStep({ state: 'done' }), failedStep({ failures: 0, reason: '' })])
      expect(why([], { steps: [history] })).toBe(reason)
  })

  it('is the reason alone where the API server does not answer or says nothing', () => {
    expect(why([], { observed: lateHost(['web'], 'silent') })).toBe(reason)
    expect(why([])).toBe(reason)
  })
})
