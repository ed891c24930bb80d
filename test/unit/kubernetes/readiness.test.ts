import { describe, expect, it } from 'vitest'
import type { KubernetesObject } from '../../../src/kubernetes/client.ts'
import { readiness } from '../../../src/kubernetes/readiness.ts'

const now = Date.parse('2026-11-23T12:00:00Z')

type Fields = Record<string, unknown>

const object = (type: string, fields: { metadata?: Fields; spec?: Fields; status?: Fields } = {}) => {
  const at = type.lastIndexOf('/')
  return {
    ...{ apiVersion: type.slice(0, at), kind: type.slice(at + 1) },
    ...fields,
    metadata: { name: 'web', namespace: 'shop', generation: 1, ...fields.metadata },
  } as KubernetesObject
}
const of = (...parameters: Parameters<typeof object>) => {
  const { status, message } = readiness(object(...parameters), now)
  return message === '' ? status : `${status}: ${message}`
}
const condition = (type: string, status: string, more: Fields = {}) => ({ type, status, ...more })

describe('any object', () => {
  it('is Current when it exists', () => {
    for (const type of ['v1/ConfigMap', 'v1/Namespace', 'batch/v1/CronJob', 'policy/v1/PodDisruptionBudget'])
      expect(of(type)).toBe('Current')
    expect(of('v1/Secret', { status: { conditions: 'none' } })).toBe('Current')
  })

  it('is Terminating when it is being deleted, whatever its status says', () => {
    const metadata = { deletionTimestamp: '2026-11-23T11:00:00Z' }
    const status = { phase: 'Running', conditions: [condition('Ready', 'True')] }
    expect(of('v1/Pod', { metadata, status })).toBe('Terminating: it is being deleted')
  })

  it('is InProgress until its controller has seen its last change', () => {
    const seen = (observedGeneration: number) =>
      of('example.com/v1/Shop', { metadata: { generation: 2 }, status: { observedGeneration } })
    expect(seen(1)).toBe('InProgress: its controller has not seen the last change yet')
    expect(seen(2)).toBe('Current')
  })

  it.each([
    [condition('Reconciling', 'True', { message: 'works' }), 'InProgress: works'],
    [condition('Stalled', 'True', { message: 'no licence' }), 'Failed: no licence'],
    [condition('Stalled', 'False', { message: 'no' }), 'Current'],
    [condition('Ready', 'True', { message: 'fine' }), 'Current'],
    [condition('Ready', 'False', { reason: 'Pulling', message: 'pulls' }), 'InProgress: pulls'],
    [condition('Ready', 'Unknown', { reason: 'Pulling' }), 'InProgress: Pulling'],
    [condition('Ready', 'False'), 'InProgress: it is not ready'],
  ])('of a kind without a rule follows its condition %j', (one, expected) => {
    expect(of('example.com/v1/Shop', { status: { conditions: [condition('Synced', 'True'), one] } })).toBe(
      expected,
    )
  })

  it('of another group is not judged by the rule for its kind', () => {
    expect(of('example.com/v1/Deployment')).toBe('Current')
    expect(of('v1/Deployment')).toBe('Current')
  })
})

describe('a Deployment', () => {
  const done = { replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2 }
  const complete = [
    condition('Progressing', 'True', { reason: 'NewReplicaSetAvailable' }),
    condition('Available', 'True'),
  ]
  const deployment = (status: Fields, spec: Fields = {}) =>
    of('apps/v1/Deployment', {
      spec: { replicas: 2, progressDeadlineSeconds: 600, ...spec },
      status: { observedGeneration: 1, ...done, conditions: complete, ...status },
    })

  it.each<[string, Fields, Fields?]>([
    ['Current', {}],
    ['InProgress: 1 of 2 pods exist', { replicas: 1 }],
    ['InProgress: 1 of 2 pods are of the new version', { updatedReplicas: 1 }],
    ['InProgress: 1 pod more than wanted has to end', { replicas: 3 }],
    ['InProgress: 0 of 2 pods are available', { availableReplicas: undefined }],
    ['InProgress: 1 of 2 pods are ready', { readyReplicas: 1 }],
    [
      'InProgress: its new pods are not available yet',
      { conditions: [condition('Available', 'True'), condition('Progressing', 'True', { reason: 'Slow' })] },
    ],
    ['InProgress: its controller does not report it available yet', { conditions: complete.slice(0, 1) }],
    [
      'Failed: no progress for 600 s',
      {
        replicas: 1,
        conditions: [
          condition('Progressing', 'False', {
            reason: 'ProgressDeadlineExceeded',
            message: 'no progress for 600 s',
          }),
        ],
      },
    ],
    ['Current', { conditions: complete.slice(1) }, { progressDeadlineSeconds: undefined }],
    ['Current', { conditions: complete.slice(1) }, { progressDeadlineSeconds: 2_147_483_647 }],
    ['InProgress: 2 of 3 pods exist', {}, { replicas: 3 }],
  ])('is %s with the status %j', (expected, status, spec) => {
    expect(deployment(status, spec)).toBe(expected)
  })

  it('is InProgress before its controller has seen it', () => {
    expect(of('apps/v1/Deployment')).toBe('InProgress: 0 of 1 pods exist')
  })
})

describe('a StatefulSet', () => {
  const done = { replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3 }
  const set = (status: Fields, updateStrategy?: Fields) =>
    of('apps/v1/StatefulSet', {
      spec: { replicas: 3, ...(updateStrategy && { updateStrategy }) },
      status: { ...done, currentRevision: 'a', updateRevision: 'a', ...status },
    })

  it.each<[string, Fields, Fields?]>([
    ['Current', {}],
    ['InProgress: 2 of 3 pods exist', { replicas: 2 }],
    ['InProgress: 1 of 3 pods are ready', { readyReplicas: 1 }],
    ['InProgress: 2 pods more than wanted have to end', { replicas: 5 }],
    ['InProgress: 1 of 3 pods are of the current version', { currentReplicas: 1 }],
    ['InProgress: its pods are being replaced by those of the new version', { updateRevision: 'b' }],
    ['Current', { replicas: 0 }, { type: 'OnDelete' }],
    [
      'InProgress: 1 of 2 pods are of the new version',
      { updatedReplicas: 1 },
      { rollingUpdate: { partition: 1 } },
    ],
    ['Current', { updatedReplicas: 2, updateRevision: 'b' }, { rollingUpdate: { partition: 1 } }],
  ])('is %s with the status %j and the strategy %j', (expected, status, strategy) => {
    expect(set(status, strategy)).toBe(expected)
  })
})

describe('a DaemonSet', () => {
  const done = {
    observedGeneration: 1,
    ...{ desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2 },
    ...{ numberAvailable: 2, numberReady: 2 },
  }
  it.each<[string, Fields]>([
    ['Current', {}],
    ['InProgress: its controller has not seen it yet', { observedGeneration: undefined }],
    ['InProgress: its controller has not seen it yet', { desiredNumberScheduled: undefined }],
    ['InProgress: its controller has not seen the last change yet', { observedGeneration: 0 }],
    ['InProgress: 1 of 2 pods exist', { currentNumberScheduled: 1 }],
    ['InProgress: 1 of 2 pods are of the new version', { updatedNumberScheduled: 1 }],
    ['InProgress: 0 of 2 pods are available', { numberAvailable: undefined }],
    ['InProgress: 1 of 2 pods are ready', { numberReady: 1 }],
    ['Current', { desiredNumberScheduled: 0, numberReady: 0 }],
  ])('is %s with the status %j', (expected, status) => {
    expect(of('apps/v1/DaemonSet', { status: { ...done, ...status } })).toBe(expected)
  })
})

describe('a ReplicaSet', () => {
  const done = { replicas: 1, fullyLabeledReplicas: 1, availableReplicas: 1, readyReplicas: 1 }
  it.each<[string, Fields]>([
    ['Current', {}],
    ['InProgress: 0 of 1 pods are labelled', { fullyLabeledReplicas: 0 }],
    ['InProgress: 0 of 1 pods are available', { availableReplicas: 0 }],
    ['InProgress: 0 of 1 pods are ready', { readyReplicas: 0 }],
    ['InProgress: 1 pod more than wanted has to end', { replicas: 2 }],
    ['InProgress: quota', { conditions: [condition('ReplicaFailure', 'True', { message: 'quota' })] }],
  ])('is %s with the status %j', (expected, status) => {
    expect(of('apps/v1/ReplicaSet', { status: { ...done, ...status } })).toBe(expected)
  })
})

describe('a Pod', () => {
  const unschedulable = {
    phase: 'Pending',
    conditions: [condition('PodScheduled', 'False', { reason: 'Unschedulable', message: '0/1 nodes' })],
  }
  const waiting = (reason: string) => ({
    phase: 'Running',
    containerStatuses: [
      { name: 'good', state: { running: {} } },
      { name: 'bad', state: { waiting: { reason } } },
    ],
  })
  it.each<[string, Fields]>([
    ['Current', { phase: 'Running', conditions: [condition('Ready', 'True')] }],
    ['InProgress: it runs, and is not ready yet', { phase: 'Running' }],
    ['InProgress: it runs, and is not ready yet', waiting('ContainerCreating')],
    ['Failed: containers crash again and again: bad', waiting('CrashLoopBackOff')],
    ['Current: it has ended', { phase: 'Succeeded', conditions: [condition('Ready', 'False')] }],
    ['Current: it has ended with a failure', { phase: 'Failed' }],
    ['InProgress: it has not started yet', { phase: 'Pending' }],
    ['InProgress: it has not started yet', {}],
    ['Failed: no node takes it: 0/1 nodes', unschedulable],
  ])('is %s with the status %j', (expected, status) => {
    expect(of('v1/Pod', { status })).toBe(expected)
  })

  it('is InProgress for the first 15 s without a node', () => {
    const made = (creationTimestamp: string) =>
      of('v1/Pod', { metadata: { creationTimestamp }, status: unschedulable })
    expect(made('2026-11-23T11:59:50Z')).toBe('InProgress: no node takes it: 0/1 nodes')
    expect(made('2026-11-23T11:59:45Z')).toBe('Failed: no node takes it: 0/1 nodes')
  })
})

describe('other kinds', () => {
  it.each<[string, string, Fields, Fields?]>([
    ['v1/PersistentVolumeClaim', 'Current', { phase: 'Bound' }],
    ['v1/PersistentVolumeClaim', 'InProgress: it is not bound to a volume', { phase: 'Pending' }],
    ['v1/Service', 'Current', {}],
    ['v1/Service', 'Current', {}, { type: 'LoadBalancer', clusterIP: '10.96.0.9' }],
    ['v1/Service', 'InProgress: it has no address yet', {}, { type: 'LoadBalancer' }],
    ['batch/v1/Job', 'InProgress: it has not started yet', {}],
    ['batch/v1/Job', 'Current', { startTime: '2026-11-23T11:00:00Z', active: 1 }],
    ['batch/v1/Job', 'Current: it is complete', { conditions: [condition('Complete', 'True')] }],
    ['batch/v1/Job', 'Current: it is suspended', { conditions: [condition('Suspended', 'True')] }],
    [
      'batch/v1/Job',
      'Failed: backoff',
      { conditions: [condition('Failed', 'True', { message: 'backoff' })] },
    ],
    ['batch/v1/Job', 'Failed: it has failed', { conditions: [condition('Failed', 'True')] }],
  ])('%s is %s', (type, expected, status, spec = {}) => {
    expect(of(type, { status, spec })).toBe(expected)
  })

  it.each([
    ['InProgress: it is not established yet', []],
    ['InProgress: it is not established yet', [condition('Established', 'False', { reason: 'Installing' })]],
    ['Failed: clash', [condition('Established', 'False', { reason: 'Broken', message: 'clash' })]],
    [
      'Failed: taken',
      [condition('Established', 'True'), condition('NamesAccepted', 'False', { message: 'taken' })],
    ],
    ['Current', [condition('NamesAccepted', 'True'), condition('Established', 'True')]],
  ])('a CustomResourceDefinition is %s with %j', (expected, conditions) => {
    expect(of('apiextensions.k8s.io/v1/CustomResourceDefinition', { status: { conditions } })).toBe(expected)
  })
})
