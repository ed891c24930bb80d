import { describe, expect, it } from 'vitest'
import {
  attentionOfCluster,
  attentionOfHost,
  type AttentionInput,
} from '../../../src/cluster/api/attention.ts'
import { attention } from '../../../src/edgehostd/declarations.ts'
import { detailsOf } from '../../support/played-cluster.ts'

type Given = Partial<Omit<AttentionInput, 'state'>> & { readonly details?: Parameters<typeof detailsOf>[0] }
const of = ({ details, ...rest }: Given) =>
  attentionOfCluster({
    ...{ name: 'shop', revisions: [], packs: [], isManagedHere: true },
    ...rest,
    state: detailsOf(details).status,
  })
const at = '2026-01-31T08:00:00.000Z'
const condition = (type: string, status: 'True' | 'False', message = '') => ({
  ...{ type, status, reason: 'R', message, lastTransitionTime: at, lastProbeTime: at },
})
const revision = (number: number, rest: Partial<AttentionInput['revisions'][number]>) => ({
  ...{ revision: number, creationTimestamp: at, by: 'alice', origin: 'update' as const },
  ...{ definition: { name: 'shop', version: '1.0.0' }, kubernetesVersion: '1.34.4' },
  ...{ outcome: 'good' as const, isActive: false },
  ...rest,
})
const pack = (status: 'Available' | 'Failed' | 'Unavailable', message: string) => ({
  ...{ name: 'web', version: '1.0.0', layer: 'addon', type: 'helm', values: '', logo: '', contents: [] },
  ...{
    status,
    conditions: [{ type: 'Available' as const, status: 'False' as const, reason: status, message }],
  },
})
const crash = {
  ...{ pack: 'web', reason: 'Crashing' as const, message: 'pod web-1: container web: exit code 1' },
  ...{ namespace: 'shop', pod: 'web-1', container: 'web', sinceTimestamp: at },
}

describe('what the cluster needs of an operator', () => {
  it('a healthy cluster with a good revision needs nothing', () => {
    expect(of({ revisions: [revision(2, { isActive: true }), revision(1, {})] })).toEqual([])
  })

  it('a silent API server is said with the time since when, and what looks into it', () => {
    const found = of({
      details: {
        ...{ clusterState: 'Error', phase: 'Unknown', clusterStateReason: 'the API server does not answer' },
        clusterConditions: [condition('ApiAnswers', 'False')],
        health: { status: 'Unhealthy' },
      },
    })
    expect(found).toEqual([
      {
        ...{ code: 'ApiSilent', severity: 'error', message: 'the cluster: the API server does not answer' },
        ...{ command: 'journalctl -u kubelet --since -10min', object: { kind: 'cluster', name: 'shop' } },
        since: Date.parse(at),
      },
    ])
  })

  it.each<[string, Given, Record<string, unknown>]>([
    [
      'a cluster that is being set up',
      {
        details: {
          clusterState: 'Provisioning',
          phase: 'Provisioning',
          clusterStateReason: 'pull the images',
        },
      },
      {
        ...{ code: 'ClusterProvisioning', severity: 'info' },
        ...{ message: 'the cluster is being set up: pull the images', command: 'edgehostctl cluster watch' },
      },
    ],
    [
      'a cluster whose step has failed',
      { details: { clusterState: 'Error', phase: 'Failed', clusterStateReason: 'kubeadm: no' } },
      { code: 'ClusterFailed', message: 'the cluster: kubeadm: no', command: 'edgehostctl cluster get' },
    ],
    [
      'a cluster that runs and is not healthy for a reason beside the packs',
      { details: { health: { status: 'Unhealthy', reason: 'this host was renamed' } } },
      { code: 'ClusterUnhealthy', message: 'the cluster: this host was renamed' },
    ],
    [
      'a pack that could not be applied',
      { packs: [pack('Failed', 'helm: refused')] },
      { code: 'PackFailing', severity: 'error', message: 'the pack web is Failed: helm: refused' },
    ],
    [
      'a held revision of a host that is managed here',
      { revisions: [revision(3, { outcome: 'held', reason: 'password has no value' })] },
      {
        ...{ code: 'RevisionHeld', severity: 'warning', command: 'edgehostctl cluster diff' },
        message: 'revision 3 is held: password has no value; give the missing values',
      },
    ],
    [
      'a held revision of a host that a platform manages',
      { revisions: [revision(3, { outcome: 'held' })], isManagedHere: false },
      { code: 'RevisionHeld', command: 'edgehostctl platform status' },
    ],
    [
      'a revision that waits for its time',
      { revisions: [revision(3, { outcome: 'waiting', scheduleAt: at })] },
      { code: 'RevisionWaiting', severity: 'info', message: `revision 3 waits for ${at}` },
    ],
    [
      'a revision that is being applied',
      {
        revisions: [revision(3, { outcome: 'applying', isActive: true })],
        details: { deadline: { timestamp: at, leftSeconds: 252, action: 'takenBack' } },
      },
      {
        ...{ code: 'RevisionApplying', severity: 'info' },
        message:
          'revision 3 is being applied; it is taken back in 252 s, unless the cluster runs with it by then',
      },
    ],
    [
      'a change that was taken back',
      { revisions: [revision(3, { outcome: 'rolledBack', reason: 'it crashed', endTimestamp: at })] },
      {
        ...{ code: 'RevisionTakenBack', severity: 'warning', since: Date.parse(at) },
        message: 'revision 3 was taken back: it crashed',
      },
    ],
    [
      'a change that was taken back by a revision of its own',
      {
        revisions: [
          revision(4, { origin: 'goingBack', isActive: true }),
          revision(3, { outcome: 'rolledBack', reason: 'it crashed' }),
        ],
      },
      { code: 'RevisionTakenBack', object: { kind: 'revision', name: '3' } },
    ],
    [
      'certificates that end',
      { details: { clusterConditions: [condition('CertificatesValid', 'False', 'admin.conf ends')] } },
      { code: 'ConditionFalse', message: 'admin.conf ends', command: 'edgehostctl cluster certificates' },
    ],
  ])('%s is said with its next command', (_, given, words) => {
    const found = of(given)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject(words)
    expect(Object.keys(attention)).toContain(found[0]?.code)
  })

  it('a pod in trouble is said with the command that shows its last lines, and its pack not twice', () => {
    const found = of({
      details: {
        health: { status: 'Unhealthy', reason: 'web: 0 of 1 pods are ready' },
        troubles: [crash, { ...crash, reason: 'ImagePull', pod: 'web-2' }],
      },
      packs: [pack('Unavailable', '0 of 1 pods are ready')],
    })
    expect(found.map(({ code, command, since }) => [code, command, since])).toEqual([
      ['PodsFailing', 'edgehostctl cluster logs web-1 --namespace shop', Date.parse(at)],
      ['PodsFailing', 'edgehostctl cluster kubectl -- describe --namespace shop pod/web-2', Date.parse(at)],
    ])
    expect(found[0]?.object).toEqual({ kind: 'Pod', name: 'web-1', namespace: 'shop' })
  })

  it('a failed change is history once a later one was accepted', () => {
    const failed = revision(3, { outcome: 'rolledBack', reason: 'it crashed' })
    expect(of({ revisions: [revision(4, { isActive: true }), failed] })).toEqual([])
  })
})

describe('what the host lacks', () => {
  it('each check is named, and its message says what to do', () => {
    expect(
      attentionOfHost([
        {
          code: 'HostProgramMissing',
          severity: 'error',
          message: 'conntrack is missing: apt-get install conntrack',
        },
      ]),
    ).toEqual([
      {
        ...{ code: 'HostLacking', severity: 'error' },
        message: 'conntrack is missing: apt-get install conntrack',
        object: { kind: 'preflightCheck', name: 'HostProgramMissing' },
      },
    ])
  })
})
