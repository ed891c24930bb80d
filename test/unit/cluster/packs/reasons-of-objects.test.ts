import { describe, expect, it } from 'vitest'
import { observeObject } from '../../../../src/cluster/packs/objects.ts'
import { webhookIn, createWorkloadWatch } from '../../../../src/cluster/packs/availability.ts'
import {
  KubernetesError,
  type KubernetesClient,
  type KubernetesObject,
} from '../../../../src/kubernetes/client.ts'

const never = new AbortController().signal

/** A client of an API server with these objects, whatever its selectors are. */
function clientOf(...objects: readonly KubernetesObject[]): KubernetesClient {
  const ofKind = (kind: string) => objects.filter((each) => each.kind === kind)
  return {
    resourceOf: (_version: string, kind: string) =>
      Promise.resolve({ group: '', version: 'v1', plural: kind, kind, isNamespaced: true }),
    get: ({ kind }: { kind: string }, { name }: { name: string }) =>
      Promise.resolve(ofKind(kind).find(({ metadata }) => metadata.name === name)),
    list: ({ kind }: { kind: string }) => Promise.resolve(ofKind(kind)),
    watch: ({ kind }: { kind: string }) => ({ current: () => ofKind(kind), problem: () => undefined }),
  } as unknown as KubernetesClient
}

const object = (kind: string, name: string, more: object = {}): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind, metadata: { name, namespace: 'shop' } },
  ...more,
})
const web = object('Deployment', 'web', {
  apiVersion: 'apps/v1',
  spec: { selector: { matchLabels: { app: 'web' } } },
})
const event = (name: string, at: string, message: string, fieldPath = '') =>
  object('Event', `${name}-${at}`, {
    ...{ reason: 'Unhealthy', message, lastTimestamp: at },
    involvedObject: { kind: 'Pod', name, fieldPath },
  })
const entry = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace: 'shop' }

describe('why a workload is not available', () => {
  it('names the container and the probe that fails, from the newest event of the pod', async () => {
    const pod = object('Pod', 'web-1', {
      status: { containerStatuses: [{ name: 'a', state: { running: {} } }] },
    })
    const client = clientOf(
      ...[web, pod, event('web-1', '2026-01-31T08:00:00Z', 'Pulling took long')],
      event('web-1', '2026-01-31T08:00:09Z', 'Readiness probe failed: 503', 'spec.containers{a}'),
      event('other', '2026-01-31T09:00:00Z', 'of another pod'),
    )
    expect((await observeObject(client, entry, never)).message).toBe(
      'Deployment shop/web: 0 of 1 pods exist; pod web-1: container a: Readiness probe failed: 503',
    )
  })

  it('names the newest pod: an older one may be of a former version', async () => {
    const crashed = (name: string, creationTimestamp: string) =>
      object('Pod', name, {
        metadata: { name, namespace: 'shop', creationTimestamp },
        status: { containerStatuses: [{ name: 'a', state: { terminated: { exitCode: 3 } } }] },
      })
    const client = clientOf(
      ...[web, crashed('old', '2026-01-31T08:00:00Z'), crashed('new', '2026-01-31T08:00:09Z')],
    )
    expect((await observeObject(client, entry, never)).message).toMatch(
      /; pod new: container a: it ended with exit code 3$/,
    )
  })

  it('says why pods cannot be made', async () => {
    const conditions = [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota: small' }]
    const refused = clientOf({ ...web, status: { conditions } })
    expect((await observeObject(refused, entry, never)).message).toMatch(
      /; its pods cannot be made: exceeded quota: small$/,
    )
  })

  it('is the error of the API server where that does not answer', async () => {
    const silent = { resourceOf: () => Promise.reject(new KubernetesError(0, 'Timeout', 'no reply')) }
    expect(await observeObject(silent as unknown as KubernetesClient, entry, never)).toEqual({
      ...{ status: 'InProgress', message: 'Deployment shop/web: no reply' },
    })
  })
})

describe('a webhook that refuses a change', () => {
  const clientConfig = { service: { namespace: 'guard', name: 'judge' } }
  const client = clientOf(
    object('ValidatingWebhookConfiguration', 'other', { webhooks: [{ name: 'other.example' }] }),
    object('MutatingWebhookConfiguration', 'guard', { webhooks: [{ name: 'a.example', clientConfig }] }),
  )

  it.each([
    'Internal error occurred: failed calling webhook "a.example": failed to call webhook: Post "https://judge.guard.svc:443/": no endpoints available for service "judge"',
    'admission webhook "a.example" denied the request: no',
  ])('is named with its configuration and its service: %s', async (message) => {
    expect(await webhookIn(client, message, never)).toMatch(
      /^; this webhook is of the MutatingWebhookConfiguration guard, which asks the Service guard\/judge: kubectl/,
    )
  })

  it('is not looked for in other messages, and not found where there is none', async () => {
    expect(await webhookIn(client, 'the server is busy', never)).toBe('')
    expect(await webhookIn(client, 'failed calling webhook "b.example": no', never)).toBe('')
  })
})

it('a Job that fails while the cluster runs is trouble; one that has gone is not', async () => {
  const conditions = [
    { type: 'Failed', status: 'True', message: 'Job has reached the specified backoff limit' },
  ]
  const job = object('Job', 'load', { apiVersion: 'batch/v1', status: { conditions } })
  const watch = createWorkloadWatch({ client: clientOf(job), onChange: () => undefined })
  const of = (name: string) => ({ apiVersion: 'batch/v1', kind: 'Job', name, namespace: 'shop' })
  await watch.watch([of('load'), of('gone')], never)
  expect([watch.troubleOf(of('load')), watch.troubleOf(of('gone'))]).toEqual([
    'Job shop/load: Job has reached the specified backoff limit',
    undefined,
  ])
})
