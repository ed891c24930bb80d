import { emptyHost, noSetting, type Observed, type PackObserved } from '../../src/cluster/loop/observed.ts'
import type { PlanParts } from '../../src/cluster/loop/plan.ts'
import type { Step } from '../../src/cluster/loop/step.ts'
import type { DesiredState, DesiredPack } from '../../src/cluster/desired/desired-state.ts'

/** A step that the daemon itself does. */
export const callStep = (key: string, more: Partial<Step> = {}): Step => ({
  ...{ key, title: `Do ${key}`, timeoutMs: 60_000, work: { kind: 'call', call: key, order: {} } },
  ...more,
})

/** A pack with two steps: `apply` and `wait`. */
export const wantedPack = (name: string, order = 0): DesiredPack => ({
  ...{ id: `p1/${name}`, profileUid: 'p1', name, displayName: '', version: '1.0.0', layer: 'addon', order },
  ...{ digest: `digest of ${name}`, namespaces: [], manifests: [], charts: [], images: [] },
})

export const wantedCluster = (more: Partial<DesiredState> = {}): DesiredState => ({
  ...{ uid: '0199d7a0-0000-7000-8000-000000000001', name: 'edge-1', generation: 1, folder: '/nowhere' },
  kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: '', stages: [] },
  node: {
    ...{ name: 'node-1', address: '192.0.2.7', endpoint: '192.0.2.7', poolName: 'control-plane-pool' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
  },
  packs: [],
  settings: { ntpServers: [], sshKeys: [] },
  ...more,
})

export { emptyHost, noSetting }

export const appliedPack = (pack: DesiredPack, isAvailable: boolean): PackObserved => ({
  ...{
    appliedDigest: pack.digest,
    partDigest: pack.digest,
    doneSteps: [],
    charts: [],
    hasObjects: true,
    isAvailable,
    wasAvailable: isAvailable,
  },
  message: isAvailable ? '' : 'Deployment web: 0 of 1 replicas are available',
})

/** A host with a Running cluster. */
export const runningHost = (wanted: DesiredState): Observed => ({
  isHostRecorded: true,
  isAddressHeld: true,
  engine: {
    ...{ isPresent: true, isPrepared: true, damaged: [], containerd: 'running', kubelet: 'running' },
    ...{ controlPlane: 'complete', version: wanted.kubernetes.version, isConfigured: true },
    ...{ isRenewalDue: false, isRenewalOverdue: false, endingCertificates: [], endingAuthorities: [] },
    ...{ api: 'answers', node: { name: 'node-1', isReady: true, message: '' } },
  },
  settings: { ntpServers: noSetting, sshKeys: noSetting },
  packs: new Map(wanted.packs.map((pack) => [pack.id, appliedPack(pack, true)])),
})

/** Parts that plan by what is observed, as the real ones do. */
export const planParts: PlanParts = {
  host: {
    recordSteps: ({ isHostRecorded }) => (isHostRecorded ? [] : [callStep('record')]),
    addressSteps: (_wanted, { isAddressHeld }) => (isAddressHeld ? [] : [callStep('address')]),
    settingsSteps: (_wanted, { settings: { ntpServers, sshKeys } }) =>
      ntpServers.isDue || sshKeys.isDue ? [callStep('settings')] : [],
    restoreSteps: (_wanted, { isHostRecorded }) => (isHostRecorded ? [callStep('restore')] : []),
  },
  engine: {
    prepare: (_wanted, { isPrepared }) => (isPrepared ? [] : [callStep('prepare')]),
    init: (_wanted, { controlPlane }) => (controlPlane === 'complete' ? [] : [callStep('init')]),
    change: ({ kubernetes }, { version, isConfigured }) =>
      (version === kubernetes.version || version === '') && isConfigured ? [] : [callStep('change')],
    renew: (_wanted, { isRenewalDue }, isAskedFor) => (isRenewalDue || isAskedFor ? [callStep('renew')] : []),
    reset: (_wanted, { isPresent }) => (isPresent ? [callStep('reset')] : []),
  },
  packs: {
    removeSteps: (_wanted, id) => [callStep(`${id} remove`, { pack: id })],
    steps: (_wanted, { id, digest }, seen) => [
      ...(seen?.appliedDigest === digest ? [] : [callStep(`${id} apply`, { pack: id })]),
      ...(seen?.isAvailable === true ? [] : [callStep(`${id} wait`, { pack: id })]),
    ],
  },
}
