import { describe, expect, it } from 'vitest'
import {
  putRight,
  type PutRightClient,
  isFormerPod,
  replaceFormerPods,
} from '../../../../../src/cluster/packs/put-right.ts'
import type { KubernetesObject } from '../../../../../src/kubernetes/client.ts'
import { isPassing } from '../../../../../src/kubernetes/work-off.ts'

const never = new AbortController().signal

const web = (replicas: number, image = 'web:1'): KubernetesObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' } },
  spec: { replicas, image },
})
const scaler = (name: string, kind = 'Deployment'): KubernetesObject => ({
  ...{ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
  ...{ metadata: { name: 'scaler', namespace: 'shop' }, spec: { scaleTargetRef: { kind, name } } },
})

const crd = 'CustomResourceDefinition'

/** An API server that has one object, these autoscalers, and only these kinds, whose definitions are deleted since a time. */
function server(
  found: KubernetesObject | undefined,
  scalers: readonly KubernetesObject[] = [],
  deletionTimestamp?: string,
) {
  const applied: KubernetesObject[] = []
  const kinds = new Set(['Deployment', 'HorizontalPodAutoscaler', 'Job', crd])
  const definition = (name: string): KubernetesObject => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: crd,
    metadata: { name, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  })
  const client: PutRightClient = {
    resourceOf: async (_version, kind) =>
      kinds.has(kind) ? { group: 'g', version: 'v1', plural: kind, kind, isNamespaced: true } : undefined,
    get: async ({ kind }, { name }) => (kind === crd ? definition(name) : found),
    list: async () => scalers,
    wouldApply: async (_resource, object) => ({ ...found, ...object }),
    async apply(_resource, object) {
      applied.push(object)
      return object
    },
  }
  return { client, applied }
}

describe('putting an object right', () => {
  it('leaves the replicas that an autoscaler decides, and puts the rest right', async () => {
    const calm = server(web(5), [scaler('other'), scaler('web', 'StatefulSet'), scaler('web')])
    expect(await putRight(calm.client, web(1), never)).toBeUndefined()
    expect(calm.applied).toEqual([])

    const changed = server(web(5, 'by hand'), [scaler('web')])
    expect(await putRight(changed.client, web(1), never)).toMatch(/put right: spec\.image$/)
    expect(changed.applied).toEqual([web(5)])
  })

  it('puts replicas right that no autoscaler decides', async () => {
    const scaled = server(web(5), [scaler('other'), scaler('web', 'StatefulSet')])
    expect(await putRight(scaled.client, web(1), never)).toMatch(/put right: spec\.replicas$/)
    expect(scaled.applied).toEqual([web(1)])
  })

  it('tries an object again whose kind is gone, as after its definition was deleted by hand', async () => {
    const wheel = { ...web(1), apiVersion: 'example.com/v1', kind: 'Wheel' }
    const failure = await putRight(server(undefined).client, wheel, never).catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: 'the API server has no kind Wheel in example.com/v1' })
    expect(isPassing(failure)).toBe(true)
  })

  it('makes no object whose kind is being deleted, and tries it again', async () => {
    const ending = server(undefined, [], '2031-05-01T02:00:00Z')
    const failure = await putRight(ending.client, web(1), never).catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: 'the definition of the kind Deployment is being deleted' })
    expect(isPassing(failure)).toBe(true)
    expect(ending.applied).toEqual([])
  })

  it('makes what is missing, but no Job, and leaves what is on its way out', async () => {
    const gone = server(undefined)
    expect(await putRight(gone.client, web(1), never)).toBe('it was deleted, and is made again')
    expect(await putRight(gone.client, { ...web(1), kind: 'Job' }, never)).toBeUndefined()
    expect(gone.applied).toEqual([web(1)])
    const leaving = { ...web(3), metadata: { ...web(3).metadata, deletionTimestamp: '2031-05-01T02:00:00Z' } }
    const { client, applied } = server(leaving)
    expect(await putRight(client, web(1), never)).toBeUndefined()
    expect(applied).toEqual([])
  })
})

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
