import { describe, expect, it } from 'vitest'
import { createTroubleReader, readTroubles } from '../../../../src/cluster/packs/read-troubles.ts'
import {
  KubernetesError,
  type KubernetesObject,
  type ListOptions,
} from '../../../../src/kubernetes/client.ts'
import { captureLog } from '../../../support/https-server.ts'

const never = new AbortController().signal
const { log } = captureLog()

/** An API server with these objects; it honours namespaces and label selectors. */
function serverOf(...objects: readonly KubernetesObject[]) {
  const asked: string[] = []
  const client = {
    resourceOf: async (_version: string, kind: string) => ({
      ...{ group: '', version: 'v1', plural: kind, kind, isNamespaced: true },
    }),
    async get({ kind }: { kind: string }, { name, namespace }: { name: string; namespace?: string }) {
      asked.push(`${kind} ${namespace}/${name}`)
      return objects.find(
        (each) => each.kind === kind && each.metadata.name === name && each.metadata.namespace === namespace,
      )
    },
    async list({ kind }: { kind: string }, { namespace, labelSelector, pick }: ListOptions = {}) {
      asked.push(`${kind} of ${namespace ?? 'all'}`)
      const [key = '', value] = labelSelector?.split('=') ?? []
      return objects
        .filter((each) => each.kind === kind)
        .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
        .filter(({ metadata }) => value === undefined || metadata.labels?.[key] === value)
        .map((each) => (pick ? pick(each) : each))
    },
  }
  return { client, asked }
}

const crash = {
  state: { waiting: { reason: 'CrashLoopBackOff' } },
  lastState: { terminated: { exitCode: 3 } },
}
const pod = (name: string, owner: object | undefined, more: Partial<KubernetesObject['metadata']> = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: {
    ...{ name, namespace: 'shop', creationTimestamp: '2026-01-31T08:00:00Z' },
    ...(owner ? { ownerReferences: [{ apiVersion: 'apps/v1', controller: true, ...owner }] } : {}),
    ...more,
  },
  status: { phase: 'Running', containerStatuses: [{ name: 'a', ...crash }] },
})
const ofDeployment = (name: string, more: Partial<KubernetesObject['metadata']> = {}) =>
  pod(
    `${name}-1a-x`,
    { kind: 'ReplicaSet', name: `${name}-1a` },
    { labels: { 'pod-template-hash': '1a' }, ...more },
  )
const object = (apiVersion: string, kind: string, name: string, more: object = {}): KubernetesObject => ({
  ...{ apiVersion, kind, metadata: { name, namespace: 'shop', ...more } },
})
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' }
const pack = (id: string, more: object = {}) => ({ id, objects: [], charts: [], ...more })

const namesOf = (found: Awaited<ReturnType<typeof readTroubles>>) =>
  [...found].map(([id, troubles]) => [id, troubles.map((each) => each.pod)]).toSorted()

describe('the pods of packs', () => {
  it('are found by the workloads of manifests and charts; pods of others are left out', async () => {
    const { client, asked } = serverOf(
      ofDeployment('web'),
      ofDeployment('other'),
      pod('db-0', { kind: 'StatefulSet', name: 'db' }),
      pod('of-somebody', undefined),
    )
    const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace: 'shop', name: 'db' }
    const packs = [pack('p/web', { objects: [deployment] }), pack('p/db', { objects: [set] })]
    expect(namesOf(await readTroubles(client, packs, never))).toEqual([
      ['p/db', ['db-0']],
      ['p/web', ['web-1a-x']],
    ])
    // Two lists a namespace, and the owners of pods that are of no pack.
    expect(asked.filter((each) => each.includes(' of '))).toEqual(['Pod of shop', 'Event of shop'])
  })

  it('are found while helm waits for a release, whose objects are not written down, and so are its hooks', async () => {
    const ofRelease = { 'meta.helm.sh/release-name': 'web', 'meta.helm.sh/release-namespace': 'shop' }
    const { client } = serverOf(
      object('apps/v1', 'Deployment', 'web', {
        ...{ annotations: ofRelease, labels: { 'app.kubernetes.io/managed-by': 'Helm' } },
      }),
      object('batch/v1', 'Job', 'migrate', { annotations: { 'helm.sh/hook': 'pre-install' } }),
      object('batch/v1', 'Job', 'by-hand'),
      ofDeployment('web'),
      pod('migrate-x', { kind: 'Job', name: 'migrate' }),
      pod('by-hand-x', { kind: 'Job', name: 'by-hand' }),
    )
    const found = await readTroubles(client, [pack('p/web', { charts: ['shop/web'] })], never)
    expect(new Set(found.get('p/web')?.map((each) => each.pod))).toEqual(new Set(['web-1a-x', 'migrate-x']))
  })

  it('are found where a custom resource of the pack has made the workload', async () => {
    const { client } = serverOf(
      object('apps/v1', 'StatefulSet', 'db', {
        ownerReferences: [{ apiVersion: 'db.example/v1', kind: 'Database', name: 'main', controller: true }],
      }),
      pod('db-0', { kind: 'StatefulSet', name: 'db' }),
    )
    const database = { apiVersion: 'db.example/v1', kind: 'Database', namespace: 'shop', name: 'main' }
    const found = await readTroubles(client, [pack('p/db', { objects: [database] })], never)
    expect(namesOf(found)).toEqual([['p/db', ['db-0']]])
  })

  it('of one workload with the same trouble are told once, by the newest', async () => {
    const at = (name: string, creationTimestamp: string) => ofDeployment('web', { name, creationTimestamp })
    const { client } = serverOf(at('old', '2026-01-31T08:00:00Z'), at('new', '2026-01-31T08:00:09Z'))
    const found = await readTroubles(client, [pack('p/web', { objects: [deployment] })], never)
    expect(namesOf(found)).toEqual([['p/web', ['new']]])
  })

  it('that have failed for good say nothing beside one that was made in their place', async () => {
    const evicted = {
      ...ofDeployment('web', { name: 'old', creationTimestamp: '2026-01-31T07:00:00Z' }),
      status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' },
    }
    const running = {
      ...ofDeployment('web', { name: 'new' }),
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    }
    const packs = [pack('p/web', { objects: [deployment] })]
    expect(namesOf(await readTroubles(serverOf(evicted).client, packs, never))).toEqual([['p/web', ['old']]])
    expect(namesOf(await readTroubles(serverOf(evicted, running).client, packs, never))).toEqual([])
  })

  it('that a taint keeps away are told with its name, which the scheduler does not say', async () => {
    const message = '0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate'
    const away = {
      ...ofDeployment('web'),
      spec: { tolerations: [{ key: 'node.kubernetes.io/disk-pressure', operator: 'Exists' }] },
      status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message }] },
    }
    const node = (...keys: readonly string[]): KubernetesObject => ({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } },
      spec: { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) },
    })
    const told = async (...keys: readonly string[]) => {
      const { client } = serverOf(away, node(...keys))
      const found = await readTroubles(client, [pack('p/web', { objects: [deployment] })], never)
      return found.get('p/web')?.map((each) => `${each.reason}: ${each.message}`)
    }
    expect(await told('dedicated', 'node.kubernetes.io/disk-pressure')).toEqual([
      `Taint: it does not tolerate the taint dedicated:NoSchedule of the node; no node takes it: ${message}`,
    ])
    // Of a node that is not ready, and of one whose taint is gone, nothing is said of each pod.
    expect(await told('node.kubernetes.io/not-ready', 'node.kubernetes.io/disk-pressure')).toBeUndefined()
    expect(await told()).toBeUndefined()
  })

  it('that the API server refuses are told by their workload', async () => {
    const refused = 'pods "web-1a-" is forbidden: exceeded quota: small'
    const { client } = serverOf(
      {
        ...object('apps/v1', 'Deployment', 'web'),
        status: { conditions: [{ type: 'ReplicaFailure', status: 'True', message: refused }] },
      },
      {
        ...object('v1', 'Event', 'e'),
        ...{ reason: 'FailedCreate', message: `Error creating: ${refused}` },
        involvedObject: { kind: 'ReplicaSet', name: 'web-1a' },
      },
    )
    const found = await readTroubles(client, [pack('p/web', { objects: [deployment] })], never)
    expect(found.get('p/web')).toEqual([
      {
        ...{ reason: 'PodsNotMade', message: `its pods cannot be made: ${refused}`, namespace: 'shop' },
        ...{ pod: 'web', workload: 'Deployment/web' },
      },
    ])
  })
})

describe('the reader of troubles', () => {
  it('asks for nothing while every pack is available', async () => {
    const { client, asked } = serverOf(ofDeployment('web'))
    expect([...(await createTroubleReader(client, log).read([], never))]).toEqual([])
    expect(asked).toEqual([])
  })

  it('keeps what it knows while the API server does not answer', async () => {
    const { client } = serverOf(ofDeployment('web'))
    let isSilent = false
    const list: typeof client.list = (...args) => {
      if (isSilent) throw new KubernetesError(0, 'Unreachable', 'no')
      return client.list(...args)
    }
    const reader = createTroubleReader({ ...client, list }, log)
    const packs = [pack('p/web', { objects: [deployment] })]
    const known = await reader.read(packs, never)
    expect(namesOf(known)).toEqual([['p/web', ['web-1a-x']]])
    isSilent = true
    expect(await reader.read(packs, never)).toBe(known)
  })
})
