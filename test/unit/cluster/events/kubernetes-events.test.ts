import { describe, expect, it } from 'vitest'
import {
  kubernetesEventOf,
  mostEvents,
  readKubernetesEvents,
} from '../../../../src/cluster/events/event-list.ts'
import {
  KubernetesError,
  type KubernetesClient,
  type KubernetesObject,
  type ListOptions,
} from '../../../../src/kubernetes/client.ts'

/** As the kubelet of 1.34 writes one. */
const recorded: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: {
    name: 'web-7c5ddbdf54-abcde.187a1b2c3d4e5f60',
    namespace: 'shop',
    uid: 'b5f7e1a0-0000-4000-8000-0123456789ab',
    resourceVersion: '812',
    creationTimestamp: '2026-01-31T08:00:00Z',
  },
  involvedObject: {
    ...{ kind: 'Pod', namespace: 'shop', name: 'web-7c5ddbdf54-abcde', uid: 'u1', apiVersion: 'v1' },
    ...{ resourceVersion: '640', fieldPath: 'spec.containers{web}' },
  },
  reason: 'BackOff',
  message: 'Back-off pulling image "web:1"',
  source: { component: 'kubelet', host: 'edge-1' },
  firstTimestamp: '2026-01-31T08:00:00Z',
  lastTimestamp: '2026-01-31T08:05:00Z',
  count: 7,
  type: 'Warning',
  eventTime: null,
  reportingComponent: 'kubelet',
  reportingInstance: 'edge-1',
}

/** A client with the given list. */
function clientOf(list: (options: ListOptions) => Promise<readonly KubernetesObject[]>) {
  const asked: ListOptions[] = []
  const client = {
    list: (_resource: unknown, options: ListOptions = {}) => {
      asked.push(options)
      return list(options)
    },
  } as unknown as KubernetesClient
  return { client, asked }
}

describe("Kubernetes' own events", () => {
  it('an event of core/v1 has the time of its last occurrence, and how often it happened', () => {
    expect(kubernetesEventOf(recorded)).toEqual({
      metadata: {
        ...{ uid: 'b5f7e1a0-0000-4000-8000-0123456789ab', name: 'web-7c5ddbdf54-abcde.187a1b2c3d4e5f60' },
        ...{ namespace: 'shop', creationTimestamp: '2026-01-31T08:05:00.000Z', number: 0 },
      },
      involvedObject: {
        ...{ kind: 'Pod', namespace: 'shop', name: 'web-7c5ddbdf54-abcde', uid: 'u1', apiVersion: 'v1' },
        fieldPath: 'spec.containers{web}',
      },
      ...{ reason: 'BackOff', message: 'Back-off pulling image "web:1"', severity: 'Warning', count: 7 },
      source: { component: 'kubelet', host: 'edge-1' },
    })
  })

  it('an event of events.k8s.io has its times and counts elsewhere', () => {
    const scheduled = {
      ...{ ...recorded, count: undefined, source: {} },
      ...{
        firstTimestamp: null,
        lastTimestamp: null,
        eventTime: '2026-01-31T08:01:02.123456Z',
        type: 'Normal',
      },
      ...{ reportingComponent: 'default-scheduler', reportingInstance: 'default-scheduler-edge-1' },
    }
    expect(kubernetesEventOf(scheduled)).toMatchObject({
      metadata: { creationTimestamp: '2026-01-31T08:01:02.123Z' },
      severity: 'Normal',
      source: { component: 'default-scheduler', host: 'default-scheduler-edge-1' },
    })
    const series = { count: 3, lastObservedTime: '2026-01-31T09:00:00.000001Z' }
    expect(kubernetesEventOf({ ...scheduled, series })).toMatchObject({
      ...{ metadata: { creationTimestamp: '2026-01-31T09:00:00.000Z' }, count: 3 },
    })
  })

  it('an event without any time or object is still an event', () => {
    const bare = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'x' } }
    expect(kubernetesEventOf(bare)).toMatchObject({
      metadata: { uid: 'x', creationTimestamp: '1970-01-01T00:00:00.000Z' },
      ...{ involvedObject: { kind: '' }, reason: '', message: '', severity: 'Normal' },
    })
  })

  it('what is read is of one namespace where one is wanted', async () => {
    const { client, asked } = clientOf(() => Promise.resolve([recorded]))
    const { items, source } = await readKubernetesEvents(client, 'shop')
    expect(asked[0]?.namespace).toBe('shop')
    expect(items).toHaveLength(1)
    expect(source).toEqual({ state: 'read' })
    expect(asked[0]?.pick?.({ ...recorded, metadata: { ...recorded.metadata, labels: {} } })).toEqual({
      ...recorded,
      metadata: {
        ...{ name: recorded.metadata.name, namespace: 'shop', uid: recorded.metadata.uid },
        creationTimestamp: '2026-01-31T08:00:00Z',
      },
      series: undefined,
    })
  })

  it('a cluster without Kubernetes, or one that does not answer, is named and no error', async () => {
    expect((await readKubernetesEvents(undefined, undefined)).source).toEqual({ state: 'absent' })
    const { client } = clientOf(() =>
      Promise.reject(new KubernetesError(0, 'Unreachable', '192.0.2.1:6443 cannot be reached: ECONNREFUSED')),
    )
    expect(await readKubernetesEvents(client, undefined)).toEqual({
      items: [],
      source: { state: 'failed', message: '192.0.2.1:6443 cannot be reached: ECONNREFUSED' },
    })
  })

  it('a storm of events is not kept in memory', async () => {
    let isAborted = false
    const { client } = clientOf(({ pick, signal }) => {
      for (let index = 0; index <= mostEvents; index += 1) pick?.(recorded)
      isAborted = signal?.aborted === true
      return Promise.reject(new KubernetesError(0, 'Aborted', 'ended'))
    })
    const { source } = await readKubernetesEvents(client, undefined)
    expect(isAborted).toBe(true)
    expect(source.message).toBe('Kubernetes has more than 5000 events; ask for one namespace')
  })
})
