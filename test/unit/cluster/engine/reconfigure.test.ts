import { describe, expect, it, test } from 'vitest'
import { wordsOf } from '../../../../src/cluster/engine/kubectl.ts'
import { parseRunningTasks } from '../../../../src/cluster/engine/node-containers.ts'
import { configurationDigest } from '../../../../src/cluster/engine/configured.ts'
import { nodePatch, type NodeObject } from '../../../../src/cluster/engine/reconfigure.ts'
import { isSteady, proxyConfiguration } from '../../../../src/cluster/engine/proxy.ts'
import type { Taint } from '../../../../src/cluster/desired/desired-state.ts'
import { wantedCluster } from '../../../support/cluster-parts.ts'

const nothing = { labels: [], taints: [] }
const node = (labels: Record<string, string>, taints: NonNullable<NodeObject['spec']>['taints'] = []) => ({
  metadata: { resourceVersion: '7', labels },
  spec: { taints },
})
const taint = (key: string, value = ''): Taint => ({ key, value, effect: 'NoSchedule' })

describe('the patch of a node', () => {
  it('is none where the node has its labels and taints', () => {
    const present = node({ site: 'a', 'kubernetes.io/os': 'linux' }, [{ key: 'k', effect: 'NoSchedule' }])
    expect(nodePatch(present, { labels: { site: 'a' }, taints: [taint('k')] }, nothing)).toBeUndefined()
  })
  it('sets what is wanted, takes back what was wanted before, and leaves what others have set', () => {
    const present = node({ site: 'a', line: '1', 'kubernetes.io/os': 'linux' }, [
      { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
      { key: 'old', effect: 'NoSchedule' },
      { key: 'value', value: 'one', effect: 'NoSchedule' },
    ])
    const before = { labels: ['site', 'line', 'gone'], taints: [taint('old'), taint('value', 'one')] }
    const wanted = { labels: { site: 'b' }, taints: [taint('value', 'two'), taint('new')] }
    expect(nodePatch(present, wanted, before)).toEqual({
      metadata: { resourceVersion: '7', labels: { line: null, site: 'b' } },
      spec: {
        taints: [
          { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
          { key: 'value', value: 'two', effect: 'NoSchedule' },
          { key: 'new', effect: 'NoSchedule' },
        ],
      },
    })
  })
  it('does not touch the taints for a label', () => {
    const patch = nodePatch(node({}), { labels: { site: 'a' }, taints: [] }, nothing)
    expect(patch).toEqual({ metadata: { resourceVersion: '7', labels: { site: 'a' } } })
  })
})

test('the configuration is another one by its text, labels and taints, and not by the version of Kubernetes', () => {
  const wanted = wantedCluster()
  const digest = configurationDigest(wanted)
  const { node: own, kubernetes } = wanted
  expect(configurationDigest({ ...wanted, kubernetes: { ...kubernetes, version: '1.33.13' } })).toBe(digest)
  for (const other of [
    { ...wanted, kubernetes: { ...kubernetes, config: 'kubeletConfiguration: {maxPods: 5}' } },
    { ...wanted, node: { ...own, labels: { site: 'a' } } },
    { ...wanted, node: { ...own, taints: [taint('k')] } },
  ])
    expect(configurationDigest(other)).not.toBe(digest)
})

test('the running tasks of containerd are read from its table', () => {
  const output = `TASK                PID     STATUS    
513d3b202b11b053    1112    RUNNING
761fde5ef6f90995    0       STOPPED
`
  expect([...parseRunningTasks(output)]).toEqual(['513d3b202b11b053'])
})

test('the last words of a container are its newest error, or its newest line', () => {
  const log = `2026-11-23T15:00:01.1Z stderr F I1123 15:00:01.1 1 options.go:249] external host was not specified
2026-11-23T15:00:03.1Z stderr F Error: unknown flag: --no-such-flag
2026-11-23T15:00:04.1Z stderr F Usage:
`
  expect(wordsOf(log)).toBe('Error: unknown flag: --no-such-flag')
  expect(wordsOf('2026-11-23T15:00:01.1Z stderr F one\n2026-11-23T15:00:02.1Z stdout F two\n')).toBe('two')
  expect(wordsOf('')).toBe('')
})

test('the configuration of kube-proxy is found in what kubeadm prints', () => {
  const manifest = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-proxy}
---
kind: ConfigMap
apiVersion: v1
metadata:
  name: kube-proxy
data:
  kubeconfig.conf: |-
    apiVersion: v1
  config.conf: |-
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    mode: ""
`
  expect(proxyConfiguration(manifest)).toBe('apiVersion: kubeproxy.config.k8s.io/v1alpha1\nmode: ""')
  expect(proxyConfiguration('')).toBeUndefined()
})

test('a pod is steady when all of its containers have run for some seconds', () => {
  const at = Date.parse('2026-11-23T15:00:00Z')
  const pod = (ready: boolean, more: object = {}) => ({
    metadata: more,
    status: { containerStatuses: [{ ready, state: { running: { startedAt: '2026-11-23T15:00:00Z' } } }] },
  })
  expect(isSteady(pod(true), at + 10_000)).toBe(true)
  expect(isSteady(pod(true), at + 1_000)).toBe(false)
  expect(isSteady(pod(false), at + 10_000)).toBe(false)
  expect(isSteady(pod(true, { deletionTimestamp: '2026-11-23T15:00:05Z' }), at + 10_000)).toBe(false)
  expect(isSteady({ metadata: {} }, at)).toBe(false)
})
