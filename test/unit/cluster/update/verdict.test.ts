import { describe, expect, it } from 'vitest'
import type { VersionChange } from '../../../../src/cluster/loop/observed.ts'
import type { StepRecord } from '../../../../src/cluster/loop/step-store.ts'
import { deadlineOf, verdictOf, type VerdictInput } from '../../../../src/cluster/loop/verdict.ts'
import { runningHost, wantedCluster } from '../../../support/cluster-parts.ts'

const limits = { availableMs: 600_000, kubernetesMs: 1_800_000, silentMs: 120_000 }
const host = runningHost(wantedCluster())
const inChange = (phase: VersionChange['phase']) => ({
  ...host,
  engine: { ...host.engine, change: { from: '1.33.13', to: '1.34.4', generation: 2, phase } },
})
const failed: StepRecord = {
  ...{ key: 'kubernetes-upgrade', title: 'Upgrade Kubernetes', pack: '', kind: 'action', timeoutMs: 1 },
  ...{ state: 'failed', failures: 1, reason: 'no image', startedAt: 0, endedAt: 1, retryMs: 1, cursor: 0 },
  isDeletion: 0,
}

const verdict = (more: Partial<VerdictInput>) =>
  verdictOf(
    {
      record: { generation: 2, ranGeneration: 0, goodGeneration: 1 },
      isGoingBack: false,
      ...{ observed: host, trouble: '', steps: [], silentMs: 0, inChangeMs: 0, elsewhereMs: 0 },
      ...more,
    },
    limits,
  )

it.each([
  ['it has time left', { elsewhereMs: 600_000 }],
  ['it has run', { record: { generation: 2, ranGeneration: 2, goodGeneration: 2 }, elsewhereMs: 700_000 }],
  [
    'none was good yet',
    { record: { generation: 1, ranGeneration: 0, goodGeneration: 0 }, elsewhereMs: 700_000 },
  ],
  ['a step of a pack fails, which is tried again', { steps: [failed] }],
  [
    'a change of Kubernetes takes longer than a pack may',
    { observed: inChange('upgraded'), inChangeMs: 700_000 },
  ],
  ['the copy fails, before which nothing was changed', { observed: inChange('copying'), steps: [failed] }],
  [
    'a step after the upgrade of Kubernetes fails for the second time',
    { observed: inChange('upgraded'), steps: [{ ...failed, failures: 2 }] },
  ],
  ['the API server restarts in an upgrade', { observed: inChange('upgrading'), silentMs: 119_000 }],
  [
    'the last good one is applied again, and comes',
    {
      isGoingBack: true,
      record: { generation: 1, ranGeneration: 0, goodGeneration: 1 },
      elsewhereMs: 700_000,
    },
  ],
] satisfies [string, Partial<VerdictInput>][])('a revision is waited for while %s', (_what, more) => {
  expect(verdict(more)).toEqual({ kind: 'wait' })
})

it.each([
  [
    'it is not available in time',
    { elsewhereMs: 600_001, trouble: 'p1/web: 0 of 1' },
    'p1/web: 0 of 1, 600 s after it was begun',
  ],
  [
    'a step of a change of Kubernetes fails',
    { observed: inChange('upgrading'), steps: [failed] },
    'Upgrade Kubernetes: no image',
  ],
  [
    'a step after it fails for the third time',
    { observed: inChange('upgraded'), steps: [{ ...failed, failures: 3 }] },
    'Upgrade Kubernetes: no image',
  ],
  [
    'the API server is silent too long in one',
    { observed: inChange('upgrading'), silentMs: 120_001 },
    'the API server has not answered for 120 s',
  ],
  [
    'such a change takes too long',
    { observed: inChange('upgraded'), inChangeMs: 1_800_001 },
    'Kubernetes was not good 1800 s after its change was begun',
  ],
] satisfies [string, Partial<VerdictInput>, string][])(
  'a revision is taken back when %s',
  (_what, more, reason) => {
    expect(verdict(more)).toEqual({ kind: 'back', reason })
  },
)

it('a change that is refused before anything was changed is given up at once', () => {
  const reason = 'UpgradeRefused: the file system of /data has 1 MiB free'
  const refused = { ...failed, key: 'kubernetes-check', reason }
  expect(verdict({ steps: [refused] })).toEqual({ kind: 'back', reason })
  expect(verdict({ steps: [refused], observed: inChange('copying') })).toEqual({ kind: 'back', reason })
})

it.each([
  ['by itself', true, { generation: 1, ranGeneration: 0, goodGeneration: 1 }],
  ['by hand', false, { generation: 3, ranGeneration: 0, goodGeneration: 2 }],
])('a restoration %s that fails is stuck, and not taken back', (_how, isGoingBack, given) => {
  const record = { record: given, isGoingBack }
  const steps = [{ ...failed, title: 'Restore Kubernetes 1.33.13', reason: 'the copy in /c is damaged' }]
  expect(verdict({ ...record, steps, observed: inChange('restoring'), silentMs: 400_000 })).toEqual({
    ...{ kind: 'stuck', reason: 'Restore Kubernetes 1.33.13: the copy in /c is damaged' },
  })
  expect(verdict({ ...record, observed: inChange('restoring'), silentMs: 400_000 })).toEqual({ kind: 'wait' })
  expect(verdict({ ...record, observed: inChange('restoring'), inChangeMs: 720_001 })).toMatchObject({
    kind: 'stuck',
  })
})

it('a restoration that is refused before it has begun, since its copy is damaged, is stuck at once', () => {
  const record = { generation: 1, ranGeneration: 0, goodGeneration: 1 }
  const steps = [{ ...failed, title: 'Restore Kubernetes 1.33.13', reason: 'the copy in /c is damaged' }]
  expect(verdict({ record, isGoingBack: true, steps, observed: inChange('upgrading') })).toEqual({
    ...{ kind: 'stuck', reason: 'Restore Kubernetes 1.33.13: the copy in /c is damaged' },
  })
})

it.each([
  ['the last good revision', { generation: 1, ranGeneration: 0, goodGeneration: 1 }],
  ['a way back with a Kubernetes that stays', { generation: 3, ranGeneration: 0, goodGeneration: 1 }],
])('%s that does not come is stuck, and not taken back again', (_what, record) => {
  const input = { record, isGoingBack: true, trouble: 'p1/web: 0 of 1' }
  expect(verdict({ ...input, elsewhereMs: 720_000 })).toEqual({ kind: 'wait' })
  expect(verdict({ ...input, elsewhereMs: 720_001 })).toEqual({ kind: 'stuck', reason: 'p1/web: 0 of 1' })
})

describe('the time that is left to a revision', () => {
  const left = (more: Partial<VerdictInput> = {}) => {
    const input: VerdictInput = {
      record: { generation: 2, ranGeneration: 0, goodGeneration: 1 },
      isGoingBack: false,
      ...{ observed: host, trouble: '', steps: [], silentMs: 0, inChangeMs: 0, elsewhereMs: 0 },
      ...more,
    }
    return deadlineOf({ ...input, verdict: verdictOf(input, limits) }, limits)
  }

  it.each([
    ['of packs', { elsewhereMs: 348_000 }, { leftMs: 252_000, action: 'takenBack' }],
    [
      'of packs after a change of Kubernetes',
      { inChangeMs: 900_000 },
      { leftMs: 600_000, action: 'takenBack' },
    ],
    [
      'of a change of Kubernetes',
      { observed: inChange('upgrading'), inChangeMs: 800_000, elsewhereMs: 5_000 },
      { leftMs: 1_000_000, action: 'takenBack' },
    ],
    [
      'of a change of Kubernetes whose API server is silent',
      { observed: inChange('upgrading'), silentMs: 100_000 },
      { leftMs: 20_000, action: 'takenBack' },
    ],
    [
      'of a way back, after which an operator is needed',
      { isGoingBack: true, elsewhereMs: 600_000, inChangeMs: 20_000 },
      { leftMs: 100_000, action: 'stuck' },
    ],
    [
      'of a restoration of Kubernetes',
      { observed: inChange('restoring'), inChangeMs: 700_000 },
      { leftMs: 20_000, action: 'stuck' },
    ],
  ] satisfies [string, Partial<VerdictInput>, object][])('is that %s', (_, more, expected) => {
    expect(left(more)).toEqual(expected)
  })

  it.each([
    [
      'the first, which is tried until it runs',
      { record: { generation: 1, ranGeneration: 0, goodGeneration: 0 } },
    ],
    ['one that runs', { record: { generation: 2, ranGeneration: 2, goodGeneration: 2 } }],
    ['one that is taken back now', { elsewhereMs: 600_001 }],
    ['one for which an operator is needed', { isGoingBack: true, elsewhereMs: 720_001 }],
  ] satisfies [string, Partial<VerdictInput>][])('is none for %s', (_, more) => {
    expect(left(more)).toBeUndefined()
  })
})
