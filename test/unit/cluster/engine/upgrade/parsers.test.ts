import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nodeTrouble, workloadTrouble } from '../../../../../src/cluster/engine/upgrade/upgrade.ts'
import { parseImages } from '../../../../../src/cluster/engine/upgrade/make-copy.ts'
import {
  parseUpgradePlan,
  readInitFile,
  upgradeConfiguration,
} from '../../../../../src/cluster/engine/upgrade/check.ts'
import { isRefusal, restoreRefused, upgradeRefused } from '../../../../../src/cluster/engine/notes.ts'
import type { KubernetesObject } from '../../../../../src/kubernetes/client.ts'

describe('a node', () => {
  const node = (status: string, kubeletVersion: string): KubernetesObject => ({
    ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } },
    status: {
      conditions: [{ type: 'Ready', status, message: 'no network' }],
      nodeInfo: { kubeletVersion },
    },
  })
  it('is good when it is Ready at the version', () => {
    expect(nodeTrouble(node('True', 'v1.34.4'), '1.34.4')).toBeUndefined()
    expect(nodeTrouble(node('True', 'v1.33.13'), '1.34.4')).toBe(
      'the kubelet of node-1 is v1.33.13, not v1.34.4',
    )
    expect(nodeTrouble(node('False', 'v1.34.4'), '1.34.4')).toBe('the node node-1 is not Ready: no network')
    expect(nodeTrouble({ ...node('True', ''), status: {} }, '1.34.4')).toBe(
      'the node node-1 is not Ready: it has not reported',
    )
  })
})

describe('CoreDNS and kube-proxy', () => {
  const daemonSet = (available: number, observedGeneration = 2): KubernetesObject => ({
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'kube-proxy', generation: 2 } },
    status: {
      ...{ observedGeneration, desiredNumberScheduled: 1, currentNumberScheduled: 1 },
      ...{ updatedNumberScheduled: 1, numberAvailable: available, numberReady: available },
    },
  })
  it.each([
    [daemonSet(1), undefined],
    [daemonSet(0), 'kube-proxy: 0 of 1 pods are available'],
    [daemonSet(1, 1), 'kube-proxy: its controller has not seen the last change yet'],
  ])('%# are available as they were applied last, or the reason says what is missing', (object, words) => {
    expect(workloadTrouble(object, Date.now())).toBe(words)
  })
})

describe('the plan of kubeadm', () => {
  const recorded = readFileSync(
    join(import.meta.dirname, '../../../../fixtures/kubeadm/upgrade-plan-1.34.4.txt'),
    'utf8',
  )
  it('names the components with their versions, and what has to be converted by hand', () => {
    const plan = parseUpgradePlan(`[preflight] Running pre-flight checks.\n${recorded}`)
    expect(
      plan?.components.map(({ name, currentVersion, newVersion }) => [name, currentVersion, newVersion]),
    ).toEqual([
      ['kubelet', 'v1.33.13', 'v1.34.4'],
      ['kube-apiserver', 'v1.33.13', 'v1.34.4'],
      ['kube-controller-manager', 'v1.33.13', 'v1.34.4'],
      ['kube-scheduler', 'v1.33.13', 'v1.34.4'],
      ['kube-proxy', '1.33.13', 'v1.34.4'],
      ['CoreDNS', 'v1.12.0', 'v1.12.1'],
      ['kubeadm', 'v1.34.4', 'v1.34.4'],
      ['etcd', '3.5.24-0', '3.6.5-0'],
    ])
    expect(plan?.manual).toEqual([])
    const other = recorded.replaceAll('"manualUpgradeRequired": false', '"manualUpgradeRequired": true')
    expect(parseUpgradePlan(other)?.manual).toEqual(['kubeproxy.config.k8s.io', 'kubelet.config.k8s.io'])
  })

  it('that is none is no plan', () => {
    for (const text of ['', '[preflight] Running', '{', '{"kind":"Other"}'])
      expect(parseUpgradePlan(text)).toBeUndefined()
  })
})

it('images of containerd are read from its table', () => {
  const table = [
    'REF                            TYPE                                 DIGEST             SIZE    PLATFORMS   LABELS',
    'registry.k8s.io/pause:3.10.1   application/vnd.oci.image.index.v1   sha256:0123456789  1.2 KiB linux/amd64 io.cri-containerd.image=managed',
    '',
  ].join('\n')
  expect(parseImages(table)).toEqual({ 'registry.k8s.io/pause:3.10.1': 'sha256:0123456789' })
})

describe('the file for kubeadm upgrade', () => {
  const init = (cluster: string, more = '') =>
    `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n${more}---\nkind: ClusterConfiguration\n${cluster}`
  it('names the version, and the patches of the pack', () => {
    const text = upgradeConfiguration(
      '1.34.4',
      readInitFile(init('', 'patches: {directory: /etc/patches}\n')),
    )
    // JSON, which kubeadm reads as YAML.
    expect(JSON.parse(text)).toEqual({
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'UpgradeConfiguration',
      apply: {
        kubernetesVersion: 'v1.34.4',
        certificateRenewal: true,
        etcdUpgrade: true,
        imagePullPolicy: 'IfNotPresent',
        patches: { directory: '/etc/patches' },
      },
      plan: { kubernetesVersion: 'v1.34.4', etcdUpgrade: true },
    })
  })

  it('an etcd outside of the cluster has no folder; others have that of the pack or of kubeadm', () => {
    expect(readInitFile(init('etcd: {external: {endpoints: [https://e:2379]}}\n')).etcd).toBeUndefined()
    expect(readInitFile(init('etcd: {local: {dataDir: /data/etcd}}\n'))).toEqual({ etcd: '/data/etcd' })
    expect(readInitFile(init('')).etcd).toBe('/var/lib/etcd')
  })
})

it('a refusal is known by its reason', () => {
  expect(isRefusal(upgradeRefused('no room').message)).toBe(true)
  expect(isRefusal(restoreRefused('no copy').message)).toBe(true)
  expect(isRefusal('kubeadm upgrade failed: UpgradeRefused: x')).toBe(false)
})
