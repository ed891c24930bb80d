import { describe, expect, it } from 'vitest'
import { shortDuration } from '../../../src/base/time.ts'
import type { Observed, VersionChange } from '../../../src/cluster/loop/observed.ts'
import { tell } from '../../../src/cluster/loop/seen.ts'
import { statusOf, type StatusInput } from '../../../src/cluster/loop/status.ts'
import type { StepRecord } from '../../../src/cluster/loop/step-store.ts'
import {
  appliedPack,
  emptyHost,
  noSetting,
  runningHost,
  wantedCluster,
  wantedPack,
} from '../../support/cluster-parts.ts'

const web = wantedPack('web')
const wanted = wantedCluster({ packs: [web] })
const running = runningHost(wanted)
const withEngine = (engine: Partial<Observed['engine']>): Observed => ({
  ...running,
  engine: { ...running.engine, ...engine },
})
const noDns = 'Deployment kube-system/coredns: 0 of 2 replicas are available'
const renamed = `this host was renamed: it is called line-9, and its node is ${wanted.node.name}; the kubelet gets the name of the node`
const step = (more: Partial<StepRecord>): StepRecord => ({
  ...{
    key: 'init',
    title: 'Set up',
    pack: '',
    kind: 'action',
    isDeletion: 0,
    timeoutMs: 1_000,
    state: 'running',
  },
  ...{ failures: 0, reason: '', startedAt: 0, endedAt: null, retryMs: null, cursor: 0 },
  ...more,
})
const stands = (more: Partial<StatusInput>) => {
  const { state, phase, reason, health } = statusOf({
    ...{
      desired: wanted,
      observed: emptyHost,
      isDeleting: false,
      hasRun: false,
      isUpdate: false,
      stuck: '',
      steps: [],
      silentMs: 0,
    },
    ...{ planned: new Set(['init']), ...more },
  })
  return [state, phase, reason, health.reason ?? health.status]
}
const change = (phase: VersionChange['phase']): VersionChange => ({
  ...{ from: '1.33.13', to: '1.34.4', generation: 2, phase },
})
const failed = step({ state: 'failed', failures: 1, reason: 'the port 6443 is taken' })
const down: Observed = { ...running, packs: new Map([[web.id, appliedPack(web, false)]]) }
const notReady = withEngine({ node: { name: 'node-1', isReady: false, message: 'no network' } })

it.each<[string, Partial<StatusInput>, string[]]>([
  ['steps run', { steps: [step({})] }, ['Provisioning', 'Provisioning', 'Set up']],
  ['the node is Ready and a pack moves', { observed: down }, ['Provisioning', 'Provisioned']],
  [
    'CoreDNS does not run',
    { observed: withEngine({ addonTrouble: noDns }) },
    ['Provisioning', 'Provisioned', noDns, noDns],
  ],
  [
    'CoreDNS goes down afterwards',
    { observed: withEngine({ addonTrouble: noDns }), hasRun: true },
    ['Running', 'Running', '', noDns],
  ],
  [
    'CoreDNS does not run in an update, which is not to blame for it',
    { observed: withEngine({ addonTrouble: noDns }), isUpdate: true },
    ['Running', 'Running', '', noDns],
  ],
  [
    'the address of the host is another one',
    {
      observed: { ...withEngine({ api: 'silent' }), missingAddress: 'the address 192.0.2.10 is gone' },
      ...{ hasRun: true, silentMs: 60_000 },
    },
    ['Error', 'Unknown', 'the address 192.0.2.10 is gone', 'the address 192.0.2.10 is gone'],
  ],
  [
    'the address of the host is another one, and a step fails for it',
    {
      observed: { ...withEngine({ api: 'silent' }), missingAddress: 'the address 192.0.2.10 is gone' },
      steps: [failed],
    },
    ['Error', 'Failed', 'the address 192.0.2.10 is gone; Set up: the port 6443 is taken'],
  ],
  [
    'the host was renamed',
    { observed: withEngine({ followsHostName: 'line-9', api: 'silent' }), hasRun: true, silentMs: 60_000 },
    ['Error', 'Unknown', renamed, renamed],
  ],
  [
    'the kubelet follows the name of the host, which is that of the node',
    { observed: withEngine({ followsHostName: wanted.node.name }), hasRun: true },
    ['Running', 'Running', '', 'Healthy'],
  ],
  ['everything is there', { observed: running }, ['Running', 'Running', '', 'Healthy']],
  ['a workload goes down afterwards', { observed: down, hasRun: true }, ['Running', 'Running', '']],
  ['the node goes down afterwards', { observed: notReady, hasRun: true }, ['Running', 'Running', '']],
  ['a step failed', { steps: [failed] }, ['Error', 'Failed', 'Set up: the port 6443 is taken']],
  [
    'a failed step is tried again',
    { steps: [{ ...failed, state: 'running' }] },
    ['Error', 'Failed', 'Set up: the port 6443 is taken'],
  ],
  [
    'a step failed that is not planned any more',
    { steps: [failed], planned: new Set(), observed: running },
    ['Running', 'Running', '', 'Healthy'],
  ],
  [
    'the API server is silent for a moment',
    { observed: withEngine({ api: 'silent' }), hasRun: true, silentMs: 59_999 },
    ['Running'],
  ],
  [
    'the API server is silent',
    { observed: withEngine({ api: 'silent' }), hasRun: true, silentMs: 60_000 },
    ['Error', 'Unknown'],
  ],
  [
    'the API server is silent for so long that the step that waits for it gives up',
    { observed: withEngine({ api: 'silent' }), hasRun: true, silentMs: 400_000, steps: [failed] },
    ['Error', 'Unknown'],
  ],
  [
    'the API server is silent in a change of the version, which has limits of its own',
    {
      ...{ observed: withEngine({ api: 'silent', change: change('upgrading') }), isUpdate: true },
      ...{ silentMs: 100_000, steps: [step({ title: 'Upgrade Kubernetes' })] },
    },
    ['Provisioning', 'Provisioned', 'Upgrade Kubernetes'],
  ],
  [
    'Kubernetes is restored',
    { observed: withEngine({ change: change('restoring') }), isUpdate: true },
    ['Provisioning', 'Provisioned', 'Kubernetes 1.33.13 is being restored'],
  ],
  [
    'a set-up that is silent is not one that was complete',
    { silentMs: 60_000 },
    ['Provisioning', 'Provisioning'],
  ],
  ['it is deleted', { isDeleting: true, steps: [step({})] }, ['Deleting', 'Deleting', 'Set up']],
  [
    'a deletion fails',
    { isDeleting: true, steps: [failed] },
    ['Deleting', 'Deleting', 'Set up: the port 6443 is taken'],
  ],
])('the state while %s', (_when, given, expected) => {
  expect(stands(given).slice(0, expected.length)).toEqual(expected)
})

it('what is unhealthy is named', () => {
  expect(stands({ observed: down, hasRun: true })[3]).toBe(
    'web: Deployment web: 0 of 1 replicas are available',
  )
  expect(stands({ observed: notReady, hasRun: true })[3]).toBe('the node node-1 is not ready: no network')
  expect(stands({ observed: withEngine({ containerd: 'stopped' }), hasRun: true })[3]).toBe(
    'containerd does not run',
  )
})

it.each([
  [1, 'web is not applied'],
  [2, 'web is not applied, and 1 more pack'],
  [3, 'web is not applied, and 2 more packs'],
])('of %i packs that are not applied the first is named, and the others are counted', (number, reason) => {
  const packs = [web, wantedPack('shop'), wantedPack('till')].slice(0, number)
  const host = { ...running, packs: new Map() }
  expect(stands({ desired: wantedCluster({ packs }), observed: host })[2]).toBe(reason)
})

describe('events', () => {
  const look = (
    before: Parameters<typeof tell>[0],
    observed: Observed,
    hasRun = false,
    isDeleting = false,
  ) => {
    const standing = statusOf({
      ...{
        desired: wanted,
        observed,
        isDeleting,
        hasRun,
        isUpdate: false,
        stuck: '',
        steps: [],
        planned: new Set<string>(),
        silentMs: 0,
      },
    })
    const { events, seen } = tell(before, {
      desired: wanted,
      observed,
      status: standing,
      isDeleting,
      stuck: '',
      now: 0,
    })
    return { reasons: events.map(({ reason }) => reason), seen }
  }

  it('a damaged note of the engine is told once', () => {
    const engine = { ...running.engine, damaged: ['/state/initialisation.json cannot be read'] }
    const first = look(look({}, running).seen, { ...running, engine })
    expect(first.reasons).toEqual(['NoteDamaged'])
    expect(look(first.seen, { ...running, engine }).reasons).toEqual([])
    expect(look(first.seen, running).reasons).toEqual([])
  })

  it('certificates and authorities that end are told once each, and that none ends any more', () => {
    const of = (endingCertificates: string[], endingAuthorities: string[] = []) => ({
      ...running,
      engine: { ...running.engine, endingCertificates, endingAuthorities },
    })
    const first = look(look({}, running).seen, of(['apiserver ends'], ['ca ends']))
    expect(first.reasons).toEqual(['CertificateEnding', 'AuthorityEnding'])
    const second = look(first.seen, of(['apiserver ends', 'etcd-peer ends'], ['ca ends']))
    expect(second.reasons).toEqual(['CertificateEnding'])
    const third = look(second.seen, of([], ['ca ends']))
    expect(third.reasons).toEqual(['CertificatesValid'])
    const fourth = look(third.seen, running)
    expect(fourth.reasons).toEqual(['AuthoritiesValid'])
    expect(look(fourth.seen, running).reasons).toEqual([])
  })

  it('what comes up is told once, and nothing is told again', () => {
    const first = look({}, emptyHost)
    expect(first.reasons).toEqual(['Provisioning'])
    const second = look(first.seen, running)
    expect(second.reasons).toEqual([
      ...['HostRecorded', 'ContainerRuntimeStarted', 'KubeletStarted', 'ControlPlaneStarted', 'ApiAnswers'],
      ...['NodeReady', 'PackApplied', 'PackAvailable', 'PacksAvailable', 'Running', 'Healthy'],
    ])
    expect(look(second.seen, running, true).reasons).toEqual([])
  })

  it('a silent API server says nothing of the node, and its packs do not become available again', () => {
    const { seen } = look({}, running)
    const engine = { ...running.engine, api: 'silent' as const }
    delete (engine as { node?: unknown }).node
    const silent = look(seen, { ...running, engine }, true)
    expect(silent.reasons).toEqual(['ApiSilent', 'Unhealthy'])
    expect(look(silent.seen, running, true).reasons).toEqual(['ApiAnswers', 'Healthy'])
    // Also where the cluster is being deleted by then, once, and its end is no silence.
    const back = look(silent.seen, running, true, true)
    expect(back.reasons).toEqual(['ApiAnswers'])
    expect(look(back.seen, running, true, true).reasons).toEqual([])
    expect(look(back.seen, { ...running, engine }, true, true).reasons).toEqual([])
  })

  it('a deletion tells what was taken away, in order', () => {
    const { seen } = look({}, running)
    const reset = look(seen, { ...emptyHost, isHostRecorded: true }, true, true)
    expect(reset.reasons).toEqual(['KubernetesRemoved'])
    expect(look(reset.seen, emptyHost, true, true).reasons).toEqual(['HostRestored'])
  })
})

it.each([
  [-5_000, '0s'],
  [12_000, '12s'],
  [300_000, '5m'],
  [3_661_000, '1h1m'],
  [273_600_000, '3d4h'],
])('a duration of %d ms is %s', (ms, text) => {
  expect(shortDuration(ms)).toBe(text)
})

describe('the settings of the host', () => {
  const settings = { ntpServers: ['a.example'], sshKeys: ['key 1', 'key 2'] }
  const withSettings = wantedCluster({ packs: [web], settings })
  const host = (ntp: Partial<typeof noSetting>, keys: Partial<typeof noSetting> = {}): Observed => ({
    ...running,
    settings: { ntpServers: { ...noSetting, ...ntp }, sshKeys: { ...noSetting, ...keys } },
  })
  const due = { isApplied: false, isDue: true }
  const standing = { state: 'Running', phase: 'Running', reason: '', health: { status: 'Healthy' } } as const
  const toldOf = (observed: Observed, before: Parameters<typeof tell>[0], of = withSettings) => {
    const { events, seen } = tell(before, {
      desired: of,
      observed,
      status: standing,
      isDeleting: false,
      stuck: '',
      now: 0,
    })
    const own = events.filter(({ reason }) => /^(Ntp|Ssh)/.test(reason))
    return { said: own.map(({ reason, message }) => `${reason}: ${message}`), seen }
  }

  it('that are to be given to it keep a revision from being Running; those that it cannot have do not', () => {
    expect(stands({ observed: host(due) }).slice(0, 2)).toEqual(['Provisioning', 'Provisioned'])
    expect(stands({ observed: host({}, due), isUpdate: true }).slice(0, 2)).toEqual([
      ...['Provisioning', 'Provisioned'],
    ])
    const problem = { isApplied: false, problem: 'no time service runs' }
    expect(stands({ observed: host(problem) })).toEqual(['Running', 'Running', '', 'Healthy'])
  })

  it('are told once, when they change, and not while a step is about to', () => {
    const first = toldOf(host({}), {})
    expect(first.said).toEqual([
      'NtpServersApplied: this host takes its time from a.example',
      'SshKeysApplied: the account has 2 SSH keys of the cluster',
    ])
    expect(toldOf(host({}), first.seen).said).toEqual([])
    expect(toldOf(host(due, due), first.seen).said).toEqual([])
    const reason = { isApplied: false, problem: 'no time service runs' }
    const second = toldOf(host(reason), first.seen)
    expect(second.said).toEqual(['NtpServersNotApplied: no time service runs'])
    expect(toldOf(host(reason), second.seen).said).toEqual([])
    expect(toldOf(host({}), second.seen).said).toEqual([
      'NtpServersApplied: this host takes its time from a.example',
    ])
    expect(toldOf(host({}), second.seen, wanted).said).toEqual([
      'NtpServersApplied: this host has its own NTP servers again',
      'SshKeysApplied: the SSH keys of the cluster were taken away',
    ])
    expect(toldOf(host({}), {}, wanted).said).toEqual([])
  })
})
