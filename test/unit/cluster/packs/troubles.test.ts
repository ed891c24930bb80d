import { describe, expect, it } from 'vitest'
import {
  claimsOf,
  textOfTrouble,
  troubleOfWorkload,
  troublesOfPod,
  warningOf,
  workloadOf,
} from '../../../../src/cluster/packs/troubles.ts'
import type { KubernetesObject } from '../../../../src/kubernetes/client.ts'

const made = '2026-01-31T08:00:00Z'
const now = Date.parse('2026-01-31T08:00:05Z')

// As a Deployment makes it.
const podOf = (status: object, spec: object = {}): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: {
    ...{ name: 'web-6f9c7d4b8c-x2x9z', namespace: 'shop', creationTimestamp: made },
    labels: { app: 'web', 'pod-template-hash': '6f9c7d4b8c' },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-6f9c7d4b8c', controller: true },
    ],
  },
  spec: { restartPolicy: 'Always', nodeName: 'node-1', containers: [{ name: 'web' }], ...spec },
  status,
})
const condition = (type: string, status: string, more: object = {}) => ({
  ...{ type, status, lastTransitionTime: '2026-01-31T08:00:02Z', lastProbeTime: null, ...more },
})
const scheduled = [
  condition('PodScheduled', 'True'),
  condition('Ready', 'False', { reason: 'ContainersNotReady' }),
]
const unscheduled = (message: string) => ({
  phase: 'Pending',
  conditions: [condition('PodScheduled', 'False', { reason: 'Unschedulable', message })],
})
const container = (state: object, more: object = {}) => ({
  ...{ name: 'web', image: 'registry/web:1', imageID: '', ready: false, started: false, restartCount: 0 },
  ...{ lastState: {}, state, ...more },
})
const withContainer = (state: object, more: object = {}) => ({
  ...{ phase: 'Pending', conditions: scheduled, containerStatuses: [container(state, more)] },
})
const waiting = (reason: string, message?: string) => ({
  waiting: { reason, ...(message === undefined ? {} : { message }) },
})
const event = (reason: string, message: string, more: object = {}) =>
  warningOf({
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e', creationTimestamp: made } },
    involvedObject: {
      ...{ kind: 'Pod', namespace: 'shop', name: 'web-6f9c7d4b8c-x2x9z' },
      fieldPath: 'spec.containers{web}',
    },
    ...{ reason, message, type: 'Warning', count: 3 },
    ...{ firstTimestamp: '2026-01-31T08:00:03Z', lastTimestamp: '2026-01-31T08:00:04Z' },
    ...more,
  })
const ofPod = { involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-6f9c7d4b8c-x2x9z' } }
const ended = { exitCode: 1, reason: 'Error', startedAt: made, finishedAt: '2026-01-31T08:00:01Z' }

type Case = [string, KubernetesObject, ReturnType<typeof event>[], string, string]

const cases: Case[] = [
  [
    'a container crashes again and again',
    podOf(
      withContainer(
        waiting('CrashLoopBackOff', 'back-off 40s restarting failed container=web pod=web-6f9c7d4b8c-x2x9z'),
        { restartCount: 3, lastState: { terminated: { ...ended, message: 'no database\n' } } },
      ),
    ),
    [event('BackOff', 'Back-off restarting failed container web in pod web-6f9c7d4b8c-x2x9z_shop(uid)')],
    'Crashing',
    'container web: CrashLoopBackOff: it ended with exit code 1',
  ],
  [
    'a container has taken too much memory',
    podOf(withContainer({ terminated: { ...ended, exitCode: 137, reason: 'OOMKilled' } })),
    [],
    'Crashing',
    'container web: it ended with exit code 137 (OOMKilled)',
  ],
  [
    'a container that shall run on has ended well, again',
    podOf(withContainer({ terminated: { ...ended, exitCode: 0, reason: 'Completed' } }, { restartCount: 1 })),
    [],
    'Crashing',
    'container web: it ended with exit code 0',
  ],
  [
    'an image is not in the registry',
    podOf(
      withContainer(
        waiting(
          'ErrImagePull',
          'failed to pull and unpack image "registry/web:1": failed to resolve reference "registry/web:1": registry/web:1: not found',
        ),
      ),
    ),
    [],
    'ImagePull',
    'container web: ErrImagePull: failed to pull and unpack image "registry/web:1": failed to resolve reference "registry/web:1": registry/web:1: not found',
  ],
  [
    'the pull of an image backs off, in Kubernetes 1.34',
    podOf(
      withContainer(
        waiting(
          'ImagePullBackOff',
          'Back-off pulling image "registry/web:1": ErrImagePull: failed to pull and unpack image "registry/web:1": not found',
        ),
      ),
    ),
    [],
    'ImagePull',
    'container web: ErrImagePull: failed to pull and unpack image "registry/web:1": not found',
  ],
  [
    'the pull of an image backs off, where only a warning says why',
    podOf(withContainer(waiting('ImagePullBackOff', 'Back-off pulling image "registry/web:1"'))),
    [event('Failed', 'Failed to pull image "registry/web:1": failed to pull and unpack image: not found')],
    'ImagePull',
    'container web: ErrImagePull: failed to pull and unpack image: not found',
  ],
  [
    'the name of an image is none',
    podOf(
      withContainer(
        waiting('InvalidImageName', 'Failed to apply default image tag "A B": invalid reference'),
      ),
    ),
    [],
    'ImagePull',
    'container web: InvalidImageName: Failed to apply default image tag "A B": invalid reference',
  ],
  [
    'an image may not be pulled',
    podOf(
      withContainer(
        waiting(
          'ErrImageNeverPull',
          'Container image "registry/web:1" is not present with pull policy of Never',
        ),
      ),
    ),
    [],
    'ImagePull',
    'container web: ErrImageNeverPull: Container image "registry/web:1" is not present with pull policy of Never',
  ],
  [
    'a Secret of a container is missing',
    podOf(withContainer(waiting('CreateContainerConfigError', 'secret "access" not found'))),
    [event('Failed', 'Error: secret "access" not found')],
    'CreateContainer',
    'container web: CreateContainerConfigError: secret "access" not found',
  ],
  [
    'the program of a container is missing, also while it backs off',
    podOf(
      withContainer(waiting('CrashLoopBackOff', 'back-off 10s restarting failed container=web'), {
        lastState: {
          terminated: {
            ...{ ...ended, exitCode: 128, reason: 'StartError' },
            message:
              'failed to create containerd task: exec: "/nothing": stat /nothing: no such file or directory',
          },
        },
      }),
    ),
    [],
    'CreateContainer',
    'container web: StartError: failed to create containerd task: exec: "/nothing": stat /nothing: no such file or directory',
  ],
  [
    'a readiness probe fails',
    podOf({
      ...{ phase: 'Running', conditions: scheduled },
      containerStatuses: [container({ running: { startedAt: '2026-01-31T08:00:01Z' } }, { started: true })],
    }),
    [event('Unhealthy', 'Readiness probe failed: HTTP probe failed with statuscode: 503')],
    'ProbeFailing',
    'container web: Readiness probe failed: HTTP probe failed with statuscode: 503',
  ],
  [
    'a startup probe fails',
    podOf({
      ...{ phase: 'Running', conditions: scheduled },
      containerStatuses: [container({ running: { startedAt: '2026-01-31T08:00:01Z' } })],
    }),
    [event('Unhealthy', 'Startup probe failed: command timed out')],
    'ProbeFailing',
    'container web: Startup probe failed: command timed out',
  ],
  [
    'a liveness probe has ended the container, which looks like a crash',
    podOf(
      withContainer(waiting('CrashLoopBackOff', 'back-off 20s restarting failed container=web'), {
        lastState: { terminated: { ...ended, exitCode: 137 } },
      }),
    ),
    [
      event('Unhealthy', 'Liveness probe failed: dial tcp 10.244.0.9:80: connect: connection refused'),
      event('BackOff', 'Back-off restarting failed container'),
    ],
    'ProbeFailing',
    'container web: Liveness probe failed: dial tcp 10.244.0.9:80: connect: connection refused; it is ended and started again',
  ],
  [
    'the node has too little CPU',
    podOf(
      unscheduled(
        '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
      ),
      { nodeName: undefined },
    ),
    [],
    'NoRoom',
    'no node takes it: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
  ],
  [
    'a port of the node is taken',
    podOf(
      unscheduled("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."),
      { nodeName: undefined },
    ),
    [],
    'NoRoom',
    "no node takes it: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
  ],
  [
    'the node has a taint',
    podOf(
      unscheduled(
        '0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: video}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
      ),
      { nodeName: undefined },
    ),
    [],
    'Taint',
    'no node takes it: 0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: video}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
  ],
  [
    'a node selector fits no node',
    podOf(unscheduled("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."), {
      nodeName: undefined,
    }),
    [],
    'Unschedulable',
    "no node takes it: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
  ],
  [
    'a ConfigMap of a volume is missing',
    podOf(withContainer(waiting('ContainerCreating'))),
    [event('FailedMount', 'MountVolume.SetUp failed for volume "conf" : configmap "web" not found', ofPod)],
    'VolumeMount',
    'MountVolume.SetUp failed for volume "conf" : configmap "web" not found',
  ],
  [
    'the network plugin gives no address',
    podOf(withContainer(waiting('ContainerCreating'))),
    [
      event(
        'FailedCreatePodSandBox',
        'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5f": no addresses',
        ofPod,
      ),
    ],
    'Sandbox',
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5f": no addresses',
  ],
  [
    'the node has too little memory for the pod',
    podOf({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory. ' }),
    [],
    'Evicted',
    'The node was low on resource: memory.',
  ],
  [
    'a hook of the container fails',
    podOf({
      ...{ phase: 'Running', conditions: scheduled },
      containerStatuses: [container({ running: { startedAt: made } })],
    }),
    [event('FailedPostStartHook', 'PostStartHook failed')],
    'NotReady',
    'container web: PostStartHook failed',
  ],
]

describe('why a pod does not run', () => {
  it.each(cases)('%s', (_, pod, warnings, reason, text) => {
    const found = troublesOfPod(pod, { warnings, now })
    expect(found.map((each) => [each.reason, textOfTrouble(each)])).toEqual([
      [reason, `pod web-6f9c7d4b8c-x2x9z: ${text}`],
    ])
    expect(found[0]).toMatchObject({
      ...{ namespace: 'shop', pod: 'web-6f9c7d4b8c-x2x9z', workload: 'Deployment/web' },
      ...(text.startsWith('container web: ') ? { container: 'web' } : {}),
    })
  })

  it('is said since when, where Kubernetes says it: of a probe since its first failure, otherwise of the pod', () => {
    const since = (index: number) => {
      const [, pod, warnings] = cases[index]!
      return troublesOfPod(pod, { warnings, now })[0]?.sinceTimestamp
    }
    const [crash, probe] = ['a container crashes again and again', 'a readiness probe fails'].map((name) =>
      cases.findIndex(([each]) => each === name),
    )
    expect(since(crash ?? -1)).toBe('2026-01-31T08:00:02Z')
    expect(since(probe ?? -1)).toBe('2026-01-31T08:00:03Z')
  })

  it('is said for each container, the first of the pod first', () => {
    const pod = podOf({
      ...{ phase: 'Pending', conditions: scheduled },
      initContainerStatuses: [
        {
          ...container(waiting('CrashLoopBackOff'), { lastState: { terminated: { ...ended, exitCode: 3 } } }),
          name: 'set-up',
        },
      ],
      containerStatuses: [
        container(waiting('PodInitializing')),
        { ...container(waiting('ErrImagePull', 'no such image')), name: 'log' },
      ],
    })
    expect(troublesOfPod(pod).map(textOfTrouble)).toEqual([
      'pod web-6f9c7d4b8c-x2x9z: container set-up: CrashLoopBackOff: it ended with exit code 3',
      'pod web-6f9c7d4b8c-x2x9z: container log: ErrImagePull: no such image',
    ])
  })

  it.each([
    [
      'it runs',
      podOf({
        ...{ phase: 'Running', conditions: [condition('PodScheduled', 'True'), condition('Ready', 'True')] },
        containerStatuses: [container({ running: { startedAt: made } }, { ready: true })],
      }),
      [event('Unhealthy', 'Readiness probe failed: early')],
    ],
    ['it is on its way', podOf(withContainer(waiting('ContainerCreating'))), []],
    ['it has no status yet', podOf({ phase: 'Pending' }, { nodeName: undefined }), []],
    [
      'its container has done its work',
      podOf(
        { phase: 'Succeeded', containerStatuses: [container({ terminated: { ...ended, exitCode: 0 } })] },
        { restartPolicy: 'Never' },
      ),
      [],
    ],
    [
      'its init container has done its work',
      podOf({
        ...{ phase: 'Pending', conditions: scheduled },
        initContainerStatuses: [container({ terminated: { ...ended, exitCode: 0 } }, { restartCount: 1 })],
        containerStatuses: [container(waiting('PodInitializing'))],
      }),
      [],
    ],
    [
      'the node is not ready yet, which is said of the node',
      podOf(
        unscheduled(
          '0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.',
        ),
        { nodeName: undefined },
      ),
      [],
    ],
    [
      'it is started again after a boot, and a probe failed before that',
      podOf({
        ...{ phase: 'Running', conditions: scheduled },
        containerStatuses: [
          container(
            { running: { startedAt: '2026-01-31T09:00:00Z' } },
            { lastState: { terminated: { ...ended, exitCode: 255, reason: 'Unknown' } } },
          ),
        ],
      }),
      [event('Unhealthy', 'Readiness probe failed: of a former start')],
    ],
    [
      'the kubelet has not read a ConfigMap yet',
      podOf(withContainer(waiting('ContainerCreating'))),
      [
        event(
          'FailedMount',
          'MountVolume.SetUp failed for volume "kube-api-access" : object "shop"/"kube-root-ca.crt" not registered',
          ofPod,
        ),
      ],
    ],
    [
      'a warning is of another pod',
      podOf(withContainer(waiting('ContainerCreating'))),
      [event('FailedMount', 'no volume', { involvedObject: { kind: 'Pod', name: 'other' } })],
    ],
  ] satisfies [string, KubernetesObject, ReturnType<typeof event>[]][])(
    'is not said while %s',
    (_, pod, warnings) => {
      expect(troublesOfPod(pod, { warnings, now })).toEqual([])
    },
  )

  it('nothing is said of one that is being deleted', () => {
    const [, pod] = cases[0]!
    const going = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: made } }
    expect(troublesOfPod(going)).toEqual([])
  })
})

describe('a pod that waits for a claim', () => {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  const spec = { nodeName: undefined, volumes }
  const claim = (phase: string): KubernetesObject => ({
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' }, status: { phase } },
  })
  const about = { involvedObject: { kind: 'PersistentVolumeClaim', name: 'data' } }
  const pending = new Map([['data', claim('Pending')]])
  const unbound =
    '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: not helpful'

  it('is in trouble where the scheduler says so, with the claim and why it is not bound', () => {
    const claimEvents = [
      event(
        'FailedBinding',
        'no persistent volumes available for this claim and no storage class is set',
        about,
      ),
    ]
    const [found] = troublesOfPod(podOf(unscheduled(unbound), spec), {
      ...{ warnings: [], claims: pending, claimEvents, now },
    })
    expect(found).toMatchObject({
      reason: 'ClaimPending',
      message: `the PersistentVolumeClaim data is not bound to a volume: no persistent volumes available for this claim and no storage class is set; no node takes it: ${unbound}`,
    })
  })

  it('is in trouble where the claim is missing', () => {
    const message = 'persistentvolumeclaim "data" not found'
    const [found] = troublesOfPod(podOf(unscheduled(message), spec), {
      ...{ warnings: [], claims: new Map(), now },
    })
    expect(found).toMatchObject({
      reason: 'ClaimPending',
      message: `the PersistentVolumeClaim data is missing; no node takes it: ${message}`,
    })
  })

  it('while its volume is being made is in trouble at once where that has failed, and otherwise after some time', () => {
    const pod = podOf({ phase: 'Pending' }, spec)
    const reasonsOf = (claimEvents: ReturnType<typeof event>[], at: number) =>
      troublesOfPod(pod, { warnings: [], claims: pending, claimEvents, now: at }).map(
        ({ message }) => message,
      )
    expect(reasonsOf([], now)).toEqual([])
    expect(reasonsOf([], now + 20_000)).toEqual(['the PersistentVolumeClaim data is not bound to a volume'])
    expect(reasonsOf([event('ProvisioningFailed', 'no room', about)], now)).toEqual([
      'the PersistentVolumeClaim data is not bound to a volume: no room',
    ])
  })

  it('has claims of its volumes, and of its ephemeral ones by its own name', () => {
    const ephemeral = { name: 'cache', ephemeral: { volumeClaimTemplate: {} } }
    expect(claimsOf(podOf({}, { volumes: [...volumes, ephemeral, { name: 'e', emptyDir: {} }] }))).toEqual([
      'data',
      'web-6f9c7d4b8c-x2x9z-cache',
    ])
  })
})

describe('a workload whose pods are refused', () => {
  const workload = (kind: string, more: object): KubernetesObject => ({
    ...{ apiVersion: 'apps/v1', kind, metadata: { name: 'web', namespace: 'shop' } },
    ...more,
  })
  const refused =
    'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0'
  const failure = condition('ReplicaFailure', 'True', { reason: 'FailedCreate', message: refused })
  const created = (kind: string, name: string) =>
    event('FailedCreate', `create Pod web-0 in ${kind} web failed error: ${refused}`, {
      involvedObject: { kind, name },
    })

  it('is told by its own condition', () => {
    expect(troubleOfWorkload(workload('Deployment', { status: { conditions: [failure] } }), [])).toEqual({
      ...{ reason: 'PodsNotMade', message: `its pods cannot be made: ${refused}` },
      ...{ namespace: 'shop', pod: 'web', workload: 'Deployment/web' },
      sinceTimestamp: '2026-01-31T08:00:02Z',
    })
  })

  it('is told by the warning of its controller, while it has too few', () => {
    const warnings = [created('StatefulSet', 'web')]
    const set = (replicas: number) => workload('StatefulSet', { spec: { replicas: 1 }, status: { replicas } })
    expect(troubleOfWorkload(set(0), warnings)).toMatchObject({
      message: expect.stringContaining('exceeded quota: small'),
    })
    expect(troubleOfWorkload(set(1), warnings)).toBeUndefined()
    const daemons = (currentNumberScheduled: number) =>
      workload('DaemonSet', { status: { currentNumberScheduled, desiredNumberScheduled: 1 } })
    expect(troubleOfWorkload(daemons(0), [created('DaemonSet', 'web')])).toBeDefined()
    expect(troubleOfWorkload(daemons(1), [created('DaemonSet', 'web')])).toBeUndefined()
  })

  it('is not told by the warning of another one', () => {
    const set = workload('StatefulSet', { spec: { replicas: 1 }, status: { replicas: 0 } })
    expect(troubleOfWorkload(set, [created('StatefulSet', 'db')])).toBeUndefined()
  })
})

it('the workload of a pod is its controller, and of a ReplicaSet of a Deployment that Deployment', () => {
  const owned = (kind: string, name: string, labels: Record<string, string> = {}) =>
    workloadOf({
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: {
        name: 'p',
        labels,
        ownerReferences: [{ kind, name, controller: true, apiVersion: 'apps/v1' }],
      },
    })
  expect(owned('ReplicaSet', 'web-1a', { 'pod-template-hash': '1a' })).toMatchObject({
    ...{ kind: 'Deployment', name: 'web' },
  })
  expect(owned('ReplicaSet', 'web-1a')).toMatchObject({ kind: 'ReplicaSet', name: 'web-1a' })
  expect(owned('StatefulSet', 'db')).toMatchObject({ kind: 'StatefulSet', name: 'db' })
  expect(workloadOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } })).toBeUndefined()
})
