import { describe, expect, it } from 'vitest'
import { isFormerPod, replaceFormerPods } from '../../../../src/cluster/packs/former-pods.ts'
import type { KubernetesObject } from '../../../../src/kubernetes/client.ts'

describe('a pod of a former revision of a StatefulSet', () => {
  const set = (spec: object = {}, status: object = {}): KubernetesObject => ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'store', namespace: 'shop', generation: 2 },
    spec,
    status: { observedGeneration: 2, updateRevision: 'store-b', ...status },
  })
  const pod = (metadata: object = {}, ready = 'False'): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'store-0',
      namespace: 'shop',
      labels: { 'controller-revision-hash': 'store-a' },
      ...metadata,
    },
    status: { conditions: [{ type: 'Ready', status: ready }] },
  })

  it.each([
    ['that is not ready holds up the present one', set(), pod(), true],
    ['that is ready is replaced by its StatefulSet', set(), pod({}, 'True'), false],
    ['that is being deleted is left alone', set(), pod({ deletionTimestamp: '2026-01-31T08:00:00Z' }), false],
    [
      'is none where it is of the present one',
      set(),
      pod({ labels: { 'controller-revision-hash': 'store-b' } }),
      false,
    ],
    ['is not known before the change is observed', set({}, { observedGeneration: 1 }), pod(), false],
    ['holds up nothing where pods are parallel', set({ podManagementPolicy: 'Parallel' }), pod(), false],
    [
      'belongs to the operator where updates are on deletion',
      set({ updateStrategy: { type: 'OnDelete' } }),
      pod(),
      false,
    ],
    ['stays below a partition', set({ updateStrategy: { rollingUpdate: { partition: 1 } } }), pod(), false],
  ])('%s', (_what, owner, one, isFormer) => {
    expect(isFormerPod(owner, one)).toBe(isFormer)
  })

  it('is deleted, once for all of its troubles, and its event says why', async () => {
    const removed: string[] = []
    const client = {
      get: async ({ kind }: { kind: string }) => (kind === 'StatefulSet' ? set() : pod()),
      remove: async ({ kind }: { kind: string }, { name }: { name: string }) =>
        void removed.push(`${kind} ${name}`),
    }
    const trouble = { reason: 'ProbeFailing', message: '404', namespace: 'shop', pod: 'store-0' } as const
    const of = (workload: string, container: string) => ({ ...trouble, workload, container })
    const told = await replaceFormerPods(
      client,
      [
        of('StatefulSet/store', 'a'),
        of('StatefulSet/store', 'b'),
        { ...of('Deployment/web', 'a'), pod: 'web-1' },
      ],
      AbortSignal.timeout(1_000),
    )
    expect(removed).toEqual(['Pod store-0'])
    expect(told).toEqual([expect.stringMatching(/^Pod shop\/store-0: it is of a former revision/)])
  })
})
