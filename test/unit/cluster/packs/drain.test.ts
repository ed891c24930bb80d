import { describe, expect, it } from 'vitest'
import { drainPods, selectorOf, type DrainClient } from '../../../../src/cluster/packs/drain.ts'
import { KubernetesError, type KubernetesObject } from '../../../../src/kubernetes/client.ts'

const workload = (selector: object): KubernetesObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' } },
  spec: { selector },
})

describe('the selector of the pods of a workload', () => {
  it('has its labels and its expressions', () => {
    const matchExpressions = [
      { key: 'tier', operator: 'In', values: ['a', 'b'] },
      { key: 'zone', operator: 'NotIn', values: ['c'] },
      { key: 'app', operator: 'Exists' },
      { key: 'old', operator: 'DoesNotExist' },
    ]
    expect(selectorOf(workload({ matchLabels: { app: 'web' }, matchExpressions }))).toBe(
      'app=web,tier in (a,b),zone notin (c),app,!old',
    )
  })
  it('is undefined where it would be that of all pods', () => {
    expect(selectorOf(workload({}))).toBeUndefined()
  })
})

describe('a drain', () => {
  const entry = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace: 'shop' }
  const pod = (name: string): KubernetesObject => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', uid: `uid of ${name}` } },
  })
  function play(more: Partial<DrainClient> = {}) {
    const asked: string[] = []
    const there = new Set(['one', 'two'])
    const client: DrainClient = {
      resourceOf: async (_apiVersion, kind) => ({
        ...{ group: '', version: 'v1', plural: `${kind.toLowerCase()}s`, kind, isNamespaced: true },
      }),
      get: async ({ kind }, { name }) => {
        if (kind !== 'Pod') return workload({ matchLabels: { app: 'web' } })
        return there.has(name) ? pod(name) : undefined
      },
      list: async (_resource, options) => {
        asked.push(`list ${options?.labelSelector}`)
        return [...there].map(pod)
      },
      evict: async ({ name }) => {
        asked.push(`evict ${name}`)
        there.delete(name)
      },
      remove: async (_resource, { name }) => {
        asked.push(`remove ${name}`)
        there.delete(name)
      },
      ...more,
    }
    const lines: string[] = []
    const context = { signal: new AbortController().signal, onLine: (line: string) => void lines.push(line) }
    return { client, asked, lines, context, there }
  }

  it('evicts the pods of the workloads that the selector has too, and waits until they are gone', async () => {
    const { client, asked, lines, context } = play()
    const daemons = { ...entry, kind: 'DaemonSet' }
    await drainPods(
      { client },
      [entry, daemons],
      { podSelector: 'tier=a', isEvictionDisabled: false },
      context,
    )
    expect(asked).toEqual(['list app=web,tier=a', 'evict one', 'evict two'])
    expect(lines).toEqual(['2 pods evicted'])
  })
  it('deletes the pods where evictions are disabled', async () => {
    const { client, asked, context } = play()
    await drainPods({ client }, [entry], { podSelector: '', isEvictionDisabled: true }, context)
    expect(asked).toEqual(['list app=web', 'remove one', 'remove two'])
  })
  it('fails with the pod and the words of the API server when a budget does not allow it for too long', async () => {
    const { client, context } = play({
      evict: async () => {
        throw new KubernetesError(429, 'TooManyRequests', 'the disruption budget web needs 2 healthy pods')
      },
    })
    await expect(
      drainPods(
        { client, patienceMs: 600 },
        [entry],
        { podSelector: '', isEvictionDisabled: false },
        context,
      ),
    ).rejects.toThrow(
      /^Pod shop\/one: the disruption budget web needs 2 healthy pods; it was tried again for/,
    )
  })
  it('takes a pod of the same name that came meanwhile for another one', async () => {
    const { client, context } = play({
      get: async ({ kind }, { name }) =>
        kind === 'Pod'
          ? { ...pod(name), metadata: { ...pod(name).metadata, uid: 'another' } }
          : workload({ matchLabels: { app: 'web' } }),
    })
    await drainPods({ client }, [entry], { podSelector: '', isEvictionDisabled: false }, context)
  })
})
