import { expect, it } from 'vitest'
import { nextOf, plan, withoutAside, type PlanInput, type Stage } from '../../../src/cluster/loop/plan.ts'
import {
  appliedPack,
  callStep,
  emptyHost,
  noSetting,
  planParts,
  runningHost,
  wantedCluster,
  wantedPack,
} from '../../support/cluster-parts.ts'

const [cni, web, shop, late] = [
  wantedPack('cni', 0),
  wantedPack('web', 1),
  wantedPack('shop', 1),
  wantedPack('late', 2),
]
const wanted = wantedCluster({ packs: [cni, web, shop, late] })

const still = { isDeleting: false, isRenewalAskedFor: false, hasRun: false, isUpdate: false }
const planned = (more: Partial<PlanInput>) =>
  plan(planParts, { desired: wanted, observed: emptyHost, ...still, ...more }).map((stage) =>
    stage.map(({ key }) => key),
  )

it('a host without a cluster gets everything, stage by stage, packs by their order, and waits last', () => {
  expect(planned({})).toEqual([
    ['record'],
    ['prepare'],
    ['init'],
    ['p1/cni apply', 'p1/cni wait'],
    ['p1/web apply', 'p1/shop apply', 'p1/web wait', 'p1/shop wait'],
    ['p1/late apply', 'p1/late wait'],
  ])
})

it('a virtual address that is not held is held before Kubernetes is set up', () => {
  expect(planned({ observed: { ...emptyHost, isAddressHeld: false } }).slice(0, 3)).toEqual([
    ['record'],
    ['address'],
    ['prepare'],
  ])
})

it('nothing is planned for what is so already', () => {
  expect(planned({ observed: runningHost(wanted) })).toEqual([])
})

it('a pack that is applied and not available is waited for until the cluster has run, and only watched from then on', () => {
  const running = runningHost(wanted)
  const observed = { ...running, packs: new Map([...running.packs, [web.id, appliedPack(web, false)]]) }
  expect(planned({ observed })).toEqual([['p1/web wait']])
  expect(planned({ observed, hasRun: true })).toEqual([])
})

it('a pack whose content changed is applied again, also after the cluster has run', () => {
  const changed = wantedCluster({ packs: [{ ...cni, digest: 'another' }, web, shop, late] })
  const observed = runningHost(wanted)
  expect(planned({ desired: changed, observed, hasRun: true })).toEqual([['p1/cni apply']])
})

it('what changes of Kubernetes comes before the packs, and packs that are not wanted any more go before the others', () => {
  const running = runningHost(wanted)
  const newer = wantedCluster({
    packs: [{ ...cni, digest: 'another' }, web],
    kubernetes: { ...wanted.kubernetes, version: '1.35.0' },
  })
  const observed = { ...running, settings: { ntpServers: { ...noSetting, isDue: true }, sshKeys: noSetting } }
  expect(planned({ desired: newer, observed, isRenewalAskedFor: true })).toEqual([
    ['change'],
    ['renew'],
    ['p1/shop remove'],
    ['p1/late remove'],
    ['p1/cni apply'],
    ['settings'],
  ])
})

it('a deletion takes Kubernetes away, then restores the host, and has an end', () => {
  expect(planned({ observed: runningHost(wanted), isDeleting: true })).toEqual([['reset'], ['restore']])
  expect(planned({ isDeleting: true })).toEqual([])
})

it('a plan for 200 packs asks for the steps of each once', () => {
  const many = wantedCluster({
    packs: Array.from({ length: 200 }, (_, n) => wantedPack(`pack-${n}`, n % 20)),
  })
  const asked: string[] = []
  const steps: typeof planParts.packs.steps = (desired, pack, seen) => {
    asked.push(pack.id)
    return planParts.packs.steps(desired, pack, seen)
  }
  const parts = { ...planParts, packs: { ...planParts.packs, steps } }
  const stages = plan(parts, { desired: many, observed: emptyHost, ...still })
  expect(stages.flat()).toHaveLength(403)
  expect(asked.toSorted()).toEqual(many.packs.map(({ id }) => id).toSorted())
})

const one = callStep('one', { pack: 'a' })
const two = callStep('two', { pack: 'a' })
const other = callStep('other', { pack: 'b' })
const whole = callStep('whole')
const after = callStep('after')

const history = { waitMs: () => 0, isDone: () => false, hasFailed: () => false }

it.each([
  ['the first step of the first stage', [[whole, after], [one]], {}, { step: whole }],
  ['nothing for an empty plan', [], {}, undefined],
  ['the wait of a step that all others need', [[whole, after], [one]], { whole: 700 }, { waitMs: 700 }],
  [
    'the wait of a later step, before which the others are done again',
    [[whole, after]],
    { after: 700 },
    { waitMs: 700 },
  ],
  ['a step of another pack while one waits', [[one, two, other]], { one: 700 }, { step: other }],
  ['the shortest wait where all packs wait', [[one, other]], { one: 700, other: 300 }, { waitMs: 300 }],
  [
    'no step of the next stage while a pack of this one waits',
    [[one], [after]],
    { one: 700 },
    { waitMs: 700 },
  ],
])('next is %s', (_what, stages, waits: Record<string, number>, expected) => {
  expect(nextOf(stages, { ...history, waitMs: (key) => waits[key] ?? 0 })).toEqual(expected)
})

it('steps that are done are passed over until all of the stage are; then it is gone through again', () => {
  const done = (...keys: string[]) =>
    nextOf([[whole, after], [one]], { ...history, isDone: (key) => keys.includes(key) })
  expect(done('whole')).toEqual({ step: after })
  expect(done('whole', 'after')).toEqual({ again: after })
})

it('a pack that fails does not hold up what others of its order install, and a wait comes after the tries of all', () => {
  const [applyA, waitA] = [callStep('apply a', { pack: 'a' }), callStep('wait a', { pack: 'a' })]
  const [applyB, waitB] = [callStep('apply b', { pack: 'b' }), callStep('wait b', { pack: 'b' })]
  const next = (stage: Stage, waiting = '') =>
    nextOf([stage], {
      ...history,
      waitMs: (key) => (key === waiting ? 700 : 0),
      hasFailed: (key) => key === 'apply a',
    })
  expect(next([applyA, applyB, waitA, waitB])).toEqual({ step: applyB })
  expect(next([applyA, waitA, waitB])).toEqual({ step: applyA })
  expect(next([applyA, waitA, waitB], 'apply a')).toEqual({ step: waitB })
})

it('a stage that holds up nothing is left out while it waits for its next try, and is done first otherwise', () => {
  const renew = callStep('renew', { isAside: true })
  const stages = [[renew], [whole], [renew, after]]
  const left = (waits: Record<string, number>) => withoutAside(stages, (key) => waits[key] ?? 0)
  expect(left({})).toEqual({ stages, asideMs: Infinity })
  expect(left({ renew: 700 })).toEqual({ stages: [[whole], [renew, after]], asideMs: 700 })
  expect(left({ whole: 700 })).toEqual({ stages, asideMs: Infinity })
})
