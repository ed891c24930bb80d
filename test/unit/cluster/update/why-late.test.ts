import { describe, expect, it } from 'vitest'
import { whyLate } from '../../../../src/cluster/loop/verdict.ts'
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

/** With cni applied and available, web applied only, shop not at all. */
function lateHost(api: 'answers' | 'silent' = 'answers') {
  const host = runningHost(wanted)
  return {
    ...host,
    engine: { ...host.engine, api },
    packs: new Map([
      [cni.id, appliedPack(cni, true)],
      [web.id, appliedPack(web, false)],
    ]),
  }
}

describe('why a revision has to go', () => {
  function why(pods: Readonly<Record<string, string>>, more: object = {}) {
    const asked: string[] = []
    const whyNot = async (id: string) => {
      asked.push(id)
      if (pods[id] === 'throws') throw new Error('the API server is gone')
      return pods[id] ?? ''
    }
    const input = { reason, desired: wanted, observed: lateHost(), steps: [], whyNot, ...more }
    return {
      asked,
      said: whyLate({ ...input, signal: new AbortController().signal }),
    }
  }

  it('names the pod and the container of the first pack that is not available', async () => {
    const { asked, said } = why({ 'p1/cni': 'never asked', 'p1/web': pod, 'p1/shop': 'later' })
    expect(await said).toBe(`${reason}; ${pod}`)
    expect(asked).toEqual(['p1/web'])
  })

  it('names the pod of a later pack where the one before has none', async () => {
    expect(await why({ 'p1/shop': pod }).said).toBe(`${reason}; ${pod}`)
  })

  it('tells why a step failed last, also while it is tried again, and nothing twice', async () => {
    expect(await why({}, { steps: [failedStep()] }).said).toBe(
      `${reason}; Install the chart web: helm: no room`,
    )
    const withPod = failedStep({ reason: `helm: ${pod}` })
    expect(await why({ 'p1/web': pod }, { steps: [withPod] }).said).toBe(
      `${reason}; Install the chart web: helm: ${pod}`,
    )
    expect(await why({}, { reason: 'Install: helm: no room', steps: [failedStep()] }).said).toBe(
      'Install: helm: no room',
    )
    for (const history of [failedStep({ state: 'done' }), failedStep({ failures: 0, reason: '' })])
      expect(await why({}, { steps: [history] }).said).toBe(reason)
  })

  it('is the reason alone where the API server does not answer or says nothing', async () => {
    const silent = why({ 'p1/web': pod }, { observed: lateHost('silent') })
    expect(await silent.said).toBe(reason)
    expect(silent.asked).toEqual([])
    expect(await why({ 'p1/web': 'throws', 'p1/shop': 'throws' }).said).toBe(reason)
  })
})
