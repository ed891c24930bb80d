import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { kubeadmFailure } from '../../../../src/cluster/engine/run-kubeadm.ts'
import { eventOf } from '../../../../src/cluster/engine/step-lines.ts'
import { reasons } from '../../../../src/cluster/events/reasons.ts'

// Output of real runs, in a booted host.
const recorded = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../../fixtures/kubeadm', `${name}.txt`), 'utf8')
const events = (step: string, name: string) =>
  recorded(name)
    .split('\n')
    .flatMap((line) => eventOf({ key: step }, line) ?? [])

it('the lines of an upgrade are events where a component begins and ends', () => {
  expect(
    events('kubernetes-upgrade', 'upgrade-apply-1.34.4').map(({ reason, message }) => [reason, message]),
  ).toEqual([
    [
      'StepProgress',
      'kubeadm warns: cgroups v1 support is in maintenance mode, please migrate to cgroups v2',
    ],
    ...['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].flatMap((name) => [
      ['KubernetesUpgrading', `Preparing for "${name}" upgrade`],
      ['KubernetesUpgrading', `Component "${name}" upgraded successfully!`],
    ]),
  ])
})

it('an API server that refuses before kubeadm begins is the reason of an upgrade that fails', () => {
  expect(kubeadmFailure(recorded('upgrade-silent-1.33.13'))).toContain(
    'failed to get config map: configmaps "kubeadm-config" is forbidden',
  )
})

describe.each(['1.33.13', '1.34.4'])('of kubeadm %s', (version) => {
  it('the lines of init are events in the order of its phases', () => {
    const seen = events('kubeadm-init', `kubeadm-init-${version}`).map(({ reason }) => reason)
    expect(seen.filter((reason, index) => seen.indexOf(reason) === index)).toEqual([
      'CheckingHost',
      'StepProgress',
      'MakingCertificates',
      'WritingKubeconfigs',
      'WritingEtcdPod',
      'WritingStaticPods',
      'StartingKubelet',
      'WaitingForControlPlane',
      'StoringConfiguration',
      'MarkingNode',
      'MakingBootstrapToken',
      'ApplyingAddons',
    ])
  })

  it('of a renewal only what is left out is an event', () => {
    const output = recorded(`certs-renew-${version}`)
    expect(output.match(/ renewed$/gm)).toHaveLength(11)
    expect(events('certificates-renew', `certs-renew-${version}`)).toEqual([])
    const left = [
      "Detected external front-proxy-ca, certificate for the front proxy client can't be renewed",
      'MISSING! certificate for serving the Kubernetes API',
    ]
    expect(left.map((line) => eventOf({ key: 'certificates-renew' }, line))).toEqual(
      left.map((message) => ({ reason: 'StepProgress', message })),
    )
  })

  it('no event speaks of a download, or has the token of a join', () => {
    const messages = events('kubeadm-init', `kubeadm-init-${version}`).map(({ message }) => message)
    expect(messages.filter((message) => /internet|--token/.test(message))).toEqual([])
    expect(recorded(`kubeadm-init-${version}`)).not.toMatch(/--token [a-z0-9]{6}\./)
  })

  it('each pulled image is an event', () => {
    const pulled = events('pull-images', `pull-images-${version}`)
    expect(pulled.map(({ reason }) => reason)).toEqual(Array<string>(7).fill('ImagePulled'))
    expect(pulled[0]?.message).toBe(`Pulled registry.k8s.io/kube-apiserver:v${version}`)
  })

  it('the lines of a reset are no phases of an initialisation', () => {
    expect(events('kubeadm-clear', `kubeadm-reset-${version}`)).toEqual([])
    expect(recorded(`kubeadm-reset-${version}`)).toContain('[preflight] Running')
  })

  it('the reason of a failed init is the failed check', () => {
    expect(kubeadmFailure(recorded(`port-taken-${version}`))).toBe('Port 10259 is in use')
  })
})

it('lines of our own actions are events of the table of reasons', () => {
  const phases = ['programs', 'images', 'clear', 'kernel', 'cni']
  for (const phase of phases)
    expect(reasons).toHaveProperty(eventOf({ key: 'any' }, `[${phase}] done`)?.reason ?? phase)
  // The observation says these, once.
  for (const phase of ['containerd', 'initialised', 'removed'])
    expect(eventOf({ key: 'any' }, `[${phase}] done`)).toBeUndefined()
})

it.each([
  [
    'error: error execution phase wait-control-plane: failed while waiting for the kubelet to start: context deadline exceeded\n\nTo see the stack trace of this error execute with --v=5 or higher\n',
    'failed while waiting for the kubelet to start: context deadline exceeded',
  ],
  [
    'error: unknown flag: --foo\nTo see the stack trace of this error execute with --v=5 or higher',
    'unknown flag: --foo',
  ],
  [
    'failed to pull image "registry.example/k8s/kube-apiserver:v1.33.13": failed to pull image registry.example/k8s/kube-apiserver:v1.33.13: rpc error: code = NotFound desc = failed to pull and unpack image "registry.example/k8s/kube-apiserver:v1.33.13": failed to resolve reference "registry.example/k8s/kube-apiserver:v1.33.13": registry.example/k8s/kube-apiserver:v1.33.13: not found\nTo see the stack trace of this error execute with --v=5 or higher\n',
    'registry.example/k8s/kube-apiserver:v1.33.13: not found',
  ],
  ['panic: something\n', 'panic: something'],
  ['', 'kubeadm gave no reason'],
])('the reason of %j', (output, reason) => expect(kubeadmFailure(output)).toBe(reason))

it.each([
  ['1.33.13', ''],
  ['1.34.4', 'error: '],
])('the reason of a renewal that kubeadm %s refuses', (_version, prefix) => {
  const reason =
    'failed to load existing certificate apiserver: error reading /etc/kubernetes/pki/apiserver.crt: data does not contain any valid RSA or ECDSA certificates'
  const before =
    'certificate embedded in the kubeconfig file for the admin to use and for kubeadm itself renewed'
  const after = 'To see the stack trace of this error execute with --v=5 or higher'
  expect(kubeadmFailure([before, prefix + reason, after, ''].join('\n'))).toBe(reason)
})
