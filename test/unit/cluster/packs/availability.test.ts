import { describe, expect, it } from 'vitest'
import { waitUntilAvailable } from '../../../../src/cluster/packs/availability.ts'
import type { ObjectClient } from '../../../../src/cluster/packs/read-troubles.ts'
import type { KubernetesObject } from '../../../../src/kubernetes/client.ts'

const deployment = (name: string, available: number): KubernetesObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop', generation: 1 } },
  spec: { replicas: 1, selector: { matchLabels: { app: name } } },
  status: {
    ...{ observedGeneration: 1, replicas: 1, updatedReplicas: 1 },
    ...{ readyReplicas: available, availableReplicas: available },
    conditions: [{ type: 'Available', status: available > 0 ? 'True' : 'False' }],
  },
})

describe('the wait for workloads', () => {
  it('asks in each round for the pods of the first late workload only, and tells why it is late', async () => {
    const names = ['one', 'two', 'three']
    const asked: string[] = []
    const lines: string[] = []
    let available = 0
    const client: ObjectClient = {
      resourceOf: (_apiVersion, kind) =>
        Promise.resolve({ group: '', version: 'v1', kind, plural: kind, isNamespaced: true }),
      get: (_resource, { name }) => Promise.resolve(deployment(name, available)),
      list({ kind }, wanted) {
        if (kind === 'Event') return Promise.resolve([])
        asked.push(wanted?.labelSelector ?? '')
        // The second round is the last but one.
        if (asked.length === 2) available = 1
        const pod: KubernetesObject = {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pod-1' } },
          status: { phase: 'Failed', message: 'the node was low on memory' },
        }
        return Promise.resolve([pod])
      },
    }
    const entries = names.map((name) => ({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name },
    }))
    await waitUntilAvailable({ client, pauseMs: 1 }, entries, {
      signal: new AbortController().signal,
      onLine: (line) => lines.push(line),
    })
    expect(asked).toEqual(['app=one', 'app=one'])
    expect(lines[0]).toMatch(
      /^waits for 3 objects, first Deployment shop\/one: .*; pod pod-1: the node was low on memory$/,
    )
  })
})
