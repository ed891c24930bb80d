import { describe, expect, it } from 'vitest'
import { KubernetesError, type KubernetesObject } from '../../../src/kubernetes/client.ts'
import { isBuiltInObject } from '../../../src/kubernetes/apply-set.ts'
import { entryOf, keyOf, nameOf, ownerValue, prepared } from '../../../src/kubernetes/inventory.ts'
import { isPassing, rankOf } from '../../../src/kubernetes/work-off.ts'
import { refusal } from '../../../src/kubernetes/request.ts'

const object = (apiVersion: string, kind: string, metadata: object = {}): KubernetesObject => ({
  ...{ apiVersion, kind },
  metadata: { name: 'web', ...metadata },
})
const status = (code: number, reason: string, message: string, cause?: string) => ({
  ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
  ...(cause === undefined ? {} : { details: { causes: [{ reason: cause, message }] } }),
})

describe('a refusal', () => {
  // Messages of kube-apiserver 1.34.4.
  it.each<[boolean, number, object]>([
    [
      true,
      500,
      status(
        500,
        'InternalError',
        'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.default.svc:443/?timeout=10s": service "w" not found',
      ),
    ],
    [
      true,
      500,
      status(
        500,
        'InternalError',
        'Internal error occurred: failed calling webhook "w.example.com": no endpoints available for service "w"',
      ),
    ],
    [
      true,
      500,
      status(
        500,
        '',
        'conversion webhook for example.com/v1, Kind=Shop failed: Post "https://w.shop.svc:443/convert": dial tcp 10.96.0.9:443: connect: connection refused',
      ),
    ],
    [true, 500, status(500, '', 'etcdserver: request timed out')],
    [
      false,
      500,
      status(
        500,
        '',
        'failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema',
      ),
    ],
    [
      false,
      500,
      status(
        500,
        '',
        'failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]',
      ),
    ],
    [
      true,
      403,
      status(
        403,
        'Forbidden',
        'configmaps "a" is forbidden: unable to create new content in namespace zz because it is being terminated',
        'NamespaceTerminating',
      ),
    ],
    [
      true,
      403,
      status(
        403,
        'Forbidden',
        'pods "a" is forbidden: error looking up service account zz/default: serviceaccount "default" not found',
      ),
    ],
    [false, 403, status(403, 'Forbidden', 'admission webhook "w.example.com" denied the request: no')],
    [false, 403, status(403, 'Forbidden', 'pods "a" is forbidden: exceeded quota: q')],
    [true, 404, status(404, 'NotFound', 'namespaces "nono" not found')],
    [
      true,
      409,
      status(
        409,
        'Conflict',
        'Operation cannot be fulfilled on configmaps "a": the object has been modified',
      ),
    ],
    [
      true,
      403,
      status(
        403,
        'Forbidden',
        'wheels.example.com "left" is forbidden: create not allowed while custom resource definition is terminating',
      ),
    ],
    [true, 429, status(429, 'TooManyRequests', 'too many requests')],
    [true, 503, status(503, 'ServiceUnavailable', 'apiserver not ready')],
    [true, 504, status(504, 'Timeout', 'request did not complete within the allotted timeout')],
    [
      false,
      422,
      status(
        422,
        'Invalid',
        'Deployment.apps "a" is invalid: spec.selector: Required value',
        'FieldValueRequired',
      ),
    ],
    [false, 400, status(400, 'BadRequest', 'bad')],
    [false, 401, status(401, 'Unauthorized', 'Unauthorized')],
  ])('passes: %j, with the status %i and %j', (expected, code, body) => {
    const error = refusal(code, JSON.stringify(body))
    expect(error).toBeInstanceOf(KubernetesError)
    expect(isPassing(error)).toBe(expected)
  })

  it('passes where there was no reply, unless the request was ended or wrong', () => {
    const passes = (reason: string) => isPassing(new KubernetesError(0, reason, 'x'))
    expect(['Unreachable', 'Timeout', 'Aborted', 'BadRequest'].map(passes)).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(isPassing(new Error('a defect'))).toBe(false)
  })

  it('gives the reason, the message and the causes of its Status', () => {
    const body = status(403, 'Forbidden', 'no', 'NamespaceTerminating')
    expect(refusal(403, JSON.stringify(body))).toMatchObject({
      ...{ status: 403, reason: 'Forbidden', message: 'no', causes: ['NamespaceTerminating'] },
    })
    expect(refusal(502, '<html>bad gateway</html>')).toMatchObject({
      ...{ status: 502, reason: 'Unknown', message: 'the API server replied 502: <html>bad gateway</html>' },
    })
    expect(refusal(500, undefined).message).toBe('the API server replied 500')
  })
})

describe('an object of a set', () => {
  it('has the label of its owner, and nothing that only a stored object has', () => {
    const exported = {
      ...object('v1', 'ConfigMap', {
        ...{ uid: 'u', resourceVersion: '5', generation: 2, creationTimestamp: null, selfLink: '/x' },
        ...{ managedFields: [{}], labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['e'] },
      }),
      ...{ data: { k: 'v' }, status: { phase: 'x' } },
    }
    const wanted = JSON.parse(JSON.stringify(prepared(exported, 'shop', 'p1/web'))) as unknown
    expect(wanted).toEqual({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { k: 'v' } },
      metadata: {
        ...{ name: 'web', namespace: 'shop', annotations: { c: 'd' }, finalizers: ['e'] },
        labels: { a: 'b', 'edgehostd/pack': ownerValue('p1/web') },
      },
    })
  })

  it('keeps a namespace of its own, and has none where its kind has none', () => {
    const namespace = (own: string | undefined, given: string | undefined) =>
      prepared(object('v1', 'X', own === undefined ? {} : { namespace: own }), given, 'o').metadata.namespace
    expect([namespace('own', 'given'), namespace('', 'given'), namespace(undefined, 'given')]).toEqual([
      ...['own', 'given', 'given'],
    ])
    expect(namespace('own', undefined)).toBeUndefined()
  })

  it('is the same in another version of its API, and another in another group or namespace', () => {
    const key = (apiVersion: string, namespace: string) =>
      keyOf(entryOf(object(apiVersion, 'Web', { namespace })))
    expect(key('a.example.com/v1', 'x')).toBe(key('a.example.com/v2', 'x'))
    expect(
      new Set([key('a.example.com/v1', 'x'), key('b.example.com/v1', 'x'), key('v1', 'x'), key('v1', 'y')])
        .size,
    ).toBe(4)
    expect(nameOf(entryOf(object('v1', 'Web', { namespace: 'x' })))).toBe('Web x/web')
    expect(nameOf(entryOf(object('v1', 'Node')))).toBe('Node web')
  })

  it.each(['p1/web', '5f0c/a b/Ünicode', '/', 'x'.repeat(200), '--', '.a_'])(
    'of the owner %s has a valid label, which no other owner has',
    (owner) => {
      const value = ownerValue(owner)
      expect(value).toMatch(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/)
      expect(ownerValue(`${owner} `)).not.toBe(value)
    },
  )
})

it('ranks definitions before namespaces, what workloads need before them, and what checks all last', () => {
  const ranked = [
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
    ['v1', 'Namespace'],
    ['v1', 'Secret'],
    ['apps/v1', 'Deployment'],
    ['admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'],
  ] as const
  const ranks = ranked.map(([apiVersion, kind]) => rankOf({ apiVersion, kind }))
  expect(ranks).toEqual([0, 1, 2, 3, 4])
  // Kinds of the same name in other groups are what they are.
  for (const kind of ['CustomResourceDefinition', 'Namespace', 'Secret', 'MutatingWebhookConfiguration'])
    expect(rankOf({ apiVersion: 'example.com/v1', kind })).toBe(3)
})

it.each([
  [true, 'v1', 'ConfigMap', 'kubeadm-config', 'kube-system'],
  [true, 'v1', 'ServiceAccount', 'coredns', 'kube-system'],
  [true, 'apps/v1', 'DaemonSet', 'kube-proxy', 'kube-system'],
  [true, 'v1', 'Service', 'kube-dns', 'kube-system'],
  [true, 'rbac.authorization.k8s.io/v1', 'ClusterRole', 'system:coredns', undefined],
  [true, 'rbac.authorization.k8s.io/v1', 'RoleBinding', 'kubeadm:kubelet-config', 'kube-system'],
  [false, 'rbac.authorization.k8s.io/v1', 'ClusterRole', 'system:metrics-server', undefined],
  [false, 'v1', 'ConfigMap', 'coredns', 'shop'],
  [false, 'v1', 'ConfigMap', 'coredns-custom', 'kube-system'],
  [false, 'apps/v1', 'Deployment', 'metrics-server', 'kube-system'],
  [false, 'rbac.authorization.k8s.io/v1', 'ClusterRole', 'shop', undefined],
  [false, 'example.com/v1', 'ConfigMap', 'coredns', 'kube-system'],
])('whether Kubernetes itself needs it is %s for %s %s %s', (needed, apiVersion, kind, name, namespace) => {
  expect(isBuiltInObject({ apiVersion, kind, name, ...(namespace ? { namespace } : {}) })).toBe(needed)
})

it('roles that the API server makes are known by their label', () => {
  const entry = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'cluster-admin' }
  expect(isBuiltInObject(entry, { 'kubernetes.io/bootstrapping': 'rbac-defaults' })).toBe(true)
  expect(isBuiltInObject(entry, {})).toBe(false)
})
