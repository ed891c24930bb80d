import { describe, expect, it } from 'vitest'
import type { TroubleReason } from '../../../src/cluster/schemas.ts'
import type { AttentionList } from '../../../src/service/schemas.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { bootForTests } from './boot-for-tests.ts'

// All kinds of trouble at once, in a chart that helm waits for: its objects are not written down meanwhile.

interface Container {
  readonly state?: Readonly<Record<string, { readonly reason?: string } | undefined>>
}
interface Shown {
  readonly kind: string
  readonly reason?: string
  readonly involvedObject?: { readonly kind: string; readonly name: string }
  readonly metadata: { readonly name: string }
  readonly status?: {
    readonly containerStatuses?: readonly Container[]
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly message?: string
    }[]
  }
}

const waits =
  (...reasons: readonly string[]) =>
  ({ kind, status }: Shown) =>
    kind === 'Pod' &&
    (status?.containerStatuses ?? []).some(({ state = {} }) =>
      [state.waiting, state.terminated].some((each) => reasons.includes(each?.reason ?? '')),
    )
const isUnscheduled =
  (message: RegExp) =>
  ({ kind, status }: Shown) =>
    kind === 'Pod' &&
    (status?.conditions ?? []).some(
      (each) => each.type === 'PodScheduled' && each.status === 'False' && message.test(each.message ?? ''),
    )
const isWarned =
  (...reasons: readonly string[]) =>
  ({ kind, reason }: Shown) =>
    kind === 'Event' && reasons.includes(reason ?? '')

interface Kind {
  readonly reason: TroubleReason
  /** The words of Kubernetes that are told. */
  readonly message: RegExp
  /** Whether an object of the API server shows it; pods and events of the workload only. */
  readonly isShown: (object: Shown) => boolean
  /** Below `spec.template.spec`. */
  readonly pod?: string
  /** Of the container. */
  readonly container?: string
}

const canary = 'the lines of a container are read only when they are asked for'

const kinds: Readonly<Record<string, Kind>> = {
  crash: {
    ...{
      reason: 'Crashing',
      message: /it ended with exit code 3/,
      isShown: waits('CrashLoopBackOff', 'Error'),
    },
    container: `command: [/bin/busybox, sh, -c, 'echo "${canary}"; echo password=hunter22; exit 3']`,
  },
  image: {
    ...{
      reason: 'ImagePull',
      message: /busybox:nothing/,
      isShown: waits('ErrImagePull', 'ImagePullBackOff'),
    },
  },
  secret: {
    ...{ reason: 'CreateContainer', message: /secret "nothing" not found/ },
    isShown: waits('CreateContainerConfigError'),
    container: 'envFrom: [{secretRef: {name: nothing}}]',
  },
  program: {
    ...{
      reason: 'CreateContainer',
      message: /\/nothing/,
      isShown: waits('RunContainerError', 'CrashLoopBackOff'),
    },
    container: 'command: [/nothing]',
  },
  readiness: {
    ...{ reason: 'ProbeFailing', message: /^Readiness probe failed/, isShown: isWarned('Unhealthy') },
    container: 'readinessProbe: {exec: {command: [/bin/busybox, "false"]}, periodSeconds: 2}',
  },
  startup: {
    ...{ reason: 'ProbeFailing', message: /^Startup probe failed/, isShown: isWarned('Unhealthy') },
    container:
      'startupProbe: {exec: {command: [/bin/busybox, "false"]}, periodSeconds: 2, failureThreshold: 200}',
  },
  claim: {
    ...{ reason: 'ClaimPending', message: /PersistentVolumeClaim nothing is not bound to a volume/ },
    isShown: isUnscheduled(/unbound immediate PersistentVolumeClaims/),
    pod: 'volumes: [{name: data, persistentVolumeClaim: {claimName: nothing}}]',
  },
  mount: {
    ...{ reason: 'VolumeMount', message: /configmap "nothing" not found/, isShown: isWarned('FailedMount') },
    pod: 'volumes: [{name: conf, configMap: {name: nothing}}]',
    container: 'volumeMounts: [{name: conf, mountPath: /conf}]',
  },
  room: {
    ...{ reason: 'NoRoom', message: /Insufficient cpu/, isShown: isUnscheduled(/Insufficient cpu/) },
    container: 'resources: {requests: {cpu: "1000"}}',
  },
  selector: {
    ...{ reason: 'Unschedulable', message: /didn't match Pod's node affinity\/selector/ },
    isShown: isUnscheduled(/affinity\/selector/),
    pod: 'nodeSelector: {colour: nothing}',
  },
  quota: {
    ...{ reason: 'PodsNotMade', message: /exceeded quota: none/, isShown: isWarned('FailedCreate') },
  },
  taint: {
    ...{ reason: 'Taint', message: /the taint dedicated=nothing:NoSchedule of the node/ },
    isShown: isUnscheduled(/untolerated taint/),
  },
}

const deployment = (name: string, { pod = '', container = '' }: Kind) => `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: ${name === 'quota' ? 'full' : 'shop'}}
spec:
  replicas: ${name === 'taint' ? 0 : 1}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 1
      ${pod}
      containers:
      - name: app
        image: {{ .Values.image }}
        imagePullPolicy: IfNotPresent
        ${container.startsWith('command') ? '' : 'command: [/bin/busybox, sleep, "100000"]'}
        ${container}
`

const template = `apiVersion: v1
kind: Namespace
metadata: {name: full}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: full}
spec: {hard: {pods: "0"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: nothing}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
${Object.entries(kinds)
  .map(([name, kind]) => deployment(name, kind))
  .join('')}`

const plant = bootForTests(() => ({ definition: { webTemplate: template } }))

const longestMs = 10_000

describe.skipIf(isKitMissing())('pods that do not run', () => {
  it('are told within 10 s of the API server, with the right word, while helm waits for them', async () => {
    const { cluster } = plant
    await cluster.create()
    await eventually(() => cluster.kubectl('-n', 'shop', 'get', 'deployment', 'crash'), 420_000)
    const end = Date.now() + 240_000
    // An image that the content lacks would be refused before the creation, and a taint would keep all pods away.
    await cluster.kubectl(
      ...['-n', 'shop', 'set', 'image', 'deployment/image', 'app=docker.io/library/busybox:nothing'],
    )
    const shown = new Map<string, number>()
    const told = new Map<string, number>()
    const inEvents = new Map<string, number>()
    const note = (map: Map<string, number>, name: string) => {
      if (!map.has(name)) map.set(name, Date.now())
    }
    const isOf = (name: string, object: string) => object === name || object.startsWith(`${name}-`)
    let isTainted = false
    while (Object.keys(kinds).some((name) => !inEvents.has(name) || !told.has(name))) {
      expect(Date.now(), missing(shown, told, inEvents)).toBeLessThan(end)
      const objects = JSON.parse(
        await cluster.kubectl('get', 'pods,events', '--all-namespaces', '--output=json'),
      ) as { items: readonly Shown[] }
      for (const [name, { isShown }] of Object.entries(kinds))
        if (
          objects.items.some(
            (each) => isOf(name, each.involvedObject?.name ?? each.metadata.name) && isShown(each),
          )
        )
          note(shown, name)
      const troubles = (await cluster.details())?.status.troubles ?? []
      const events = (await cluster.ownEvents()).filter(({ reason }) => reason === 'PodsFailing')
      for (const [name, { reason, message }] of Object.entries(kinds)) {
        if (
          troubles.some(
            (each) => isOf(name, each.pod) && each.reason === reason && message.test(each.message),
          )
        )
          note(told, name)
        if (events.some((each) => each.message.includes(`/${name}-`) || each.message.includes(`/${name}:`)))
          note(inEvents, name)
      }
      // When all others are told: the scheduler would say it of them too.
      const most = Object.keys(kinds).length - 1
      if (!isTainted && Math.min(told.size, inEvents.size) >= most) {
        isTainted = true
        const node = (await cluster.kubectl('get', 'nodes', '--output=name')).trim()
        await cluster.kubectl('taint', 'nodes', node.replace('node/', ''), 'dedicated=nothing:NoSchedule')
        await cluster.kubectl('-n', 'shop', 'scale', 'deployment/taint', '--replicas=1')
      }
    }
    const late = Object.keys(kinds).flatMap((name) =>
      [told, inEvents].map((map) => [name, (map.get(name) ?? 0) - (shown.get(name) ?? Infinity)] as const),
    )
    console.log('told after, ms:', JSON.stringify(late))
    expect(late.filter(([, ms]) => ms > longestMs)).toEqual([])
  })

  it('are in cluster get; the last lines of one are read when they are asked for, and are nowhere else', async () => {
    const get = await plant.host.output(['edgehostctl', 'cluster', 'get'])
    expect(get).toMatch(/^POD +CONTAINER +PACK/m)
    expect(get).toMatch(/it ended with exit code 3/)
    const attention = (await plant.cluster.get('/v1/edge-mgmt/edgehosts/current/attention'))
      .json as AttentionList
    const failing = attention.items.filter(({ code }) => code === 'PodsFailing')
    expect(failing.map(({ object }) => object?.name.replace(/-.*/, ''))).toEqual(
      expect.arrayContaining(['crash', 'image', 'secret']),
    )
    const status = await plant.host.output(['edgehostctl', 'status'])
    expect(status).toMatch(
      /ImagePull[^]*-> edgehostctl cluster kubectl -- describe --namespace shop pod\/image-/,
    )
    expect(status).toMatch(/-> edgehostctl cluster logs crash-/)
    const pods = await plant.cluster.kubectl('-n', 'shop', 'get', 'pods', '-l', 'app=crash', '-o', 'name')
    const pod = pods.trim().split('/')[1] ?? ''
    const lines = await plant.host.output(['edgehostctl', 'cluster', 'logs', pod, '--namespace', 'shop'])
    expect(lines).toContain(canary)
    expect(lines).toContain('password=********')
    expect(lines).not.toContain('hunter22')
    const reply = await plant.cluster.get(`/v1/edge-mgmt/cluster/pods/shop/${pod}/logs?container=nothing`)
    expect(reply).toMatchObject({ status: 404, json: { code: 'NoPodLogs' } })
    // The command of the container is in the definition of the cluster, but what it wrote is not.
    expect(await plant.host.output(['journalctl', '--unit=edgehostd', '--output=cat'])).not.toContain(
      'hunter22',
    )
    const events = await plant.cluster.ownEvents()
    expect(events.filter(({ message }) => message.includes(canary))).toEqual([])
  })

  it('are told to be over when their cause is gone', async () => {
    await plant.cluster.kubectl('-n', 'shop', 'create', 'secret', 'generic', 'nothing')
    await plant.cluster.kubectl('-n', 'shop', 'create', 'configmap', 'nothing')
    await expect
      .poll(
        async () =>
          (await plant.cluster.ownEvents())
            .filter(({ reason }) => reason === 'PodsRecovered')
            .map(({ message }) => message),
        { timeout: 240_000, interval: 1_000 },
      )
      .toEqual(
        expect.arrayContaining([
          'shop/Deployment/secret, container app: CreateContainer is over',
          'shop/Deployment/mount: VolumeMount is over',
        ]),
      )
  })
})

const missing = (...maps: readonly ReadonlyMap<string, number>[]) =>
  ['shown', 'told', 'in events']
    .map(
      (what, index) =>
        `${what}: ${Object.keys(kinds)
          .filter((name) => !maps[index]?.has(name))
          .join(', ')} missing`,
    )
    .join('; ')
