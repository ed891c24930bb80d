import { describe, expect, it } from 'vitest'
import { putRight, type PutRightClient } from '../../../../../src/cluster/packs/put-right.ts'
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
