import { describe, expect, it } from 'vitest'
import { busyWithCluster } from '../../../src/cluster/api/busy.ts'
import { isDrained, isRemains } from '../../../src/cluster/engine/node-stop.ts'
import type { StopRecord } from '../../../src/power/stop-store.ts'
import { attentionOf, backOf, kubeletDelays, plannedTime } from '../../../src/power/stops.ts'

const now = Date.parse('2026-01-31T09:30:00Z')
const hourMs = 3_600_000
const reboot: StopRecord = {
  uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
  action: 'reboot',
  state: 'going',
  message: 'new memory',
  by: 'anna',
  isForced: false,
  requestedAt: now - 60_000,
  plannedAt: null,
  wentAt: now - 48_000,
  reason: '',
}

describe('how a host came back', () => {
  it('after a stop that was asked for: when, who and why', () => {
    expect(backOf(reboot, { endedAt: now - 40_000 }, now)).toEqual({
      message: 'this host is back after 48 s: reboot by anna: new memory',
      isOrderly: true,
      afterSeconds: 48,
    })
  })

  it('a power cut before the host was told to go counts from the request', () => {
    expect(backOf({ ...reboot, wentAt: null }, { endedAt: null }, now)).toMatchObject({ afterSeconds: 60 })
  })

  it('after an orderly stop by others: since the end of the daemon', () => {
    expect(backOf(undefined, { endedAt: now - 30_000 }, now)).toMatchObject({
      message: expect.stringMatching(/^this host is back after 30 s: it was stopped in order/),
      isOrderly: true,
      afterSeconds: 30,
    })
  })

  it('without an orderly stop nothing is said of its duration', () => {
    const back = backOf(undefined, { endedAt: null }, now)
    expect(back.message).toMatch(/without an orderly stop, as after a power cut/)
    expect(back).toEqual({ message: back.message, isOrderly: false })
  })

  it('a clock that was set back in between gives no duration', () => {
    const back = backOf(reboot, { endedAt: null }, now - hourMs)
    expect(back).toEqual({ message: 'this host is back: reboot by anna: new memory', isOrderly: true })
  })
})

describe('the time of a planned stop', () => {
  it('within seven days is taken', () => {
    expect(plannedTime('2026-02-07T09:30:00Z', now)).toBe(now + 168 * hourMs)
    expect(plannedTime('2026-01-31T10:30:01+01:00', now)).toBe(now + 1_000)
  })

  it.each([
    ['2026-01-31T09:30:00Z', /^at is over; the clock of this host says 2026-01-31T09:30:00/],
    ['2026-02-07T09:30:01Z', /^at is more than 7 days away/],
    ['tomorrow', /^at is no time/],
    ['2026-02-01', /^at is no time/],
    ['2026-01-31 10:00', /^at is no time/],
    ['2026-02-30T09:30:00Z', /^at is no time/],
  ])('%s is refused', (at, message) => {
    expect(() => plannedTime(at, now)).toThrow(message)
  })
})

it.each([
  [
    'the lock of the kubelet',
    'NetworkManager 0 root 400 NetworkManager sleep NetworkManager needs to turn off networks delay\nkubelet        0 root 512 kubelet        shutdown Kubelet needs time to handle node shutdown delay\n',
    true,
  ],
  [
    'another lock',
    'unattended-upgr 0 root 300 unattended-upgr shutdown Stop ongoing upgrades delay\n',
    false,
  ],
  ['no lock', '', false],
])('%s among the locks of logind says whether the kubelet ends the pods', (_what, shown, expected) => {
  expect(kubeletDelays(shown)).toBe(expected)
})

describe('what an operator has to know of stops', () => {
  const none = { open: undefined, last: undefined, boot: undefined, waitsFor: '', now }
  const codes = (input: Partial<Parameters<typeof attentionOf>[0]>) =>
    attentionOf({ ...none, ...input }).map(({ code, severity }) => `${code} ${severity}`)
  const boot = {
    bootId: 'b',
    beganAt: now - 2 * hourMs,
    endedAt: null,
    back: { message: 'this host is back', isOrderly: true },
  }

  it('nothing without one', () => {
    expect(codes({})).toEqual([])
  })

  it('a planned one with its time, its reason, and what it waits for', () => {
    const open: StopRecord = { ...reboot, state: 'planned', plannedAt: now - 1_000 }
    const [item] = attentionOf({ ...none, open, waitsFor: 'an upload of content' })
    expect(item).toMatchObject({ code: 'HostStopPlanned', severity: 'info' })
    expect(item?.message).toBe(
      'a reboot of this host is planned for 2026-01-31T09:29:59.000Z by anna: new memory; it waits: an upload of content',
    )
  })

  it('one that was not done, for eight days', () => {
    const last: StopRecord = { ...reboot, state: 'failed', reason: 'why' }
    expect(codes({ last })).toEqual(['HostStopFailed error'])
    expect(codes({ last, now: now + 193 * hourMs })).toEqual([])
    expect(codes({ last: { ...last, state: 'done' } })).toEqual([])
  })

  it('a boot, for an hour, and for a day where the stop was not in order', () => {
    expect(codes({ boot: { ...boot, beganAt: now - hourMs + 1 } })).toEqual(['HostBack info'])
    expect(codes({ boot })).toEqual([])
    expect(codes({ boot: { ...boot, back: { message: '', isOrderly: false } } })).toEqual([
      'HostBack warning',
    ])
    expect(codes({ boot: { ...boot, back: null } })).toEqual([])
  })
})

describe('work of the cluster that a stop would break off', () => {
  const record = { name: 'shop', deleteRequestedAt: null, renewal: null, sensitive: ['canary'] }
  const none = { record, steps: [], revisions: [] }
  const reasonsOf = (input: Partial<Parameters<typeof busyWithCluster>[0]>) =>
    busyWithCluster({ ...none, ...input }).map(({ reason }) => reason)
  const revision = { revision: 3, isActive: true, outcome: 'applying', origin: 'update' } as never

  it('none at rest', () => {
    expect(reasonsOf({})).toEqual([])
  })

  it('a running step without its secrets, a change, a renewal', () => {
    const renewal = { uid: 'u', by: 'anna', askedAt: now, endedAt: null }
    const found = busyWithCluster({
      record: { ...record, renewal },
      revisions: [revision],
      steps: [
        { title: 'Install canary', state: 'running' },
        { title: 'Done', state: 'done' },
        { title: 'Failed', state: 'failed' },
      ],
    })
    expect(found.map(({ reason }) => reason)).toEqual(['ClusterChange', 'CertificateRenewal', 'ClusterStep'])
    expect(found[2]?.message).not.toContain('canary')
  })

  it('a deletion alone', () => {
    expect(reasonsOf({ record: { ...record, deleteRequestedAt: now }, revisions: [revision] })).toEqual([
      'ClusterDeletion',
    ])
  })

  it('a first creation that only waits is none', () => {
    expect(reasonsOf({ revisions: [{ ...(revision as object), origin: 'create' } as never] })).toEqual([])
  })
})

describe('pods at a stop', () => {
  const pod = (status: object, owner?: object, annotations: Record<string, string> = {}) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', annotations, ...(owner ? { ownerReferences: [owner] } : {}) },
    status,
  })
  const running = { phase: 'Running' }
  const mirror = { 'kubernetes.io/config.mirror': 'x' }

  it.each([
    ['of a Deployment', pod(running, { kind: 'ReplicaSet', controller: true }), true],
    ['without a controller', pod(running), true],
    ['of a DaemonSet', pod(running, { kind: 'DaemonSet', controller: true }), false],
    ['of the kubelet itself', pod(running, { kind: 'Node', controller: true }, mirror), false],
    ['that has ended', pod({ phase: 'Succeeded' }, { kind: 'Job', controller: true }), false],
  ])('a drain ends one %s: %#', (_what, given, expected) => {
    expect(isDrained(given)).toBe(expected)
  })

  it.each([
    [
      'that was made anew',
      pod({ phase: 'Failed', reason: 'Terminated' }, { kind: 'ReplicaSet', controller: true }),
      true,
    ],
    ['that has ended well', pod({ phase: 'Succeeded' }, { kind: 'ReplicaSet', controller: true }), true],
    ['of a Job', pod({ phase: 'Succeeded' }, { kind: 'Job', controller: true }), false],
    ['without a controller', pod({ phase: 'Failed', reason: 'Terminated' }), false],
    [
      'that has failed by itself',
      pod({ phase: 'Failed', reason: 'Evicted' }, { kind: 'ReplicaSet', controller: true }),
      false,
    ],
    [
      'of the kubelet itself',
      pod({ phase: 'Failed', reason: 'Terminated' }, { kind: 'ReplicaSet', controller: true }, mirror),
      false,
    ],
  ])('the remains of one %s are removed or stay: %#', (_what, given, expected) => {
    expect(isRemains(given)).toBe(expected)
  })
})
