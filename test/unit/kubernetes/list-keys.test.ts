import { expect, it } from 'vitest'
import { listsWithKeyTwice } from '../../../src/kubernetes/list-keys.ts'
import { readObjects } from '../../../src/cluster/prepare/manifests.ts'

const container = {
  name: 'a',
  env: [
    { name: 'MODE', value: 'a' },
    { name: 'MODE', value: 'b' },
  ],
  ports: [
    { name: 'http', containerPort: 8080 },
    { name: 'metrics', containerPort: 8080, protocol: 'TCP' },
    { name: 'dns', containerPort: 8080, protocol: 'UDP' },
  ],
  volumeMounts: [{ mountPath: '/a' }, { mountPath: '/b' }],
}
const of = (apiVersion: string, kind: string, fields: object) =>
  listsWithKeyTwice({ apiVersion, kind, metadata: { name: 'dup' }, ...fields }).map(
    ({ path, key }) => `${path} ${key}`,
  )

// Both are what the API server of 1.34.4 says of this object.
it('the lists of a Deployment with a key twice are named, with the default of a protocol', () => {
  expect(of('apps/v1', 'Deployment', { spec: { template: { spec: { containers: [container] } } } })).toEqual([
    'spec.template.spec.containers[0].env name=MODE',
    'spec.template.spec.containers[0].ports containerPort=8080, protocol=TCP',
  ])
})

it.each([
  ['v1', 'Pod', { spec: { volumes: [{ name: 'a' }, { name: 'a' }] } }, ['spec.volumes name=a']],
  ['v1', 'Pod', { spec: { hostAliases: [{ ip: '::1' }, { ip: '::1' }] } }, ['spec.hostAliases ip=::1']],
  [
    'batch/v1',
    'CronJob',
    { spec: { jobTemplate: { spec: { template: { spec: { initContainers: [container] } } } } } },
    [
      'spec.jobTemplate.spec.template.spec.initContainers[0].env name=MODE',
      'spec.jobTemplate.spec.template.spec.initContainers[0].ports containerPort=8080, protocol=TCP',
    ],
  ],
  [
    'v1',
    'Service',
    { spec: { ports: [{ port: 53, protocol: 'UDP' }, { port: 53 }, { port: 53, protocol: 'TCP' }] } },
    ['spec.ports port=53, protocol=TCP'],
  ],
  ['v1', 'ServiceAccount', { secrets: [{ name: 'a' }, { name: 'a' }] }, ['secrets name=a']],
  [
    'flowcontrol.apiserver.k8s.io/v1',
    'FlowSchema',
    { spec: { rules: [{ resourceRules: [{ verbs: ['get'] }, { verbs: ['get', 'get'] }] }] } },
    ['spec.rules[0].resourceRules[1].verbs get'],
  ],
  [
    'batch/v1',
    'Job',
    { spec: { podFailurePolicy: { rules: [{ onExitCodes: { values: [1, 1] } }] } } },
    ['spec.podFailurePolicy.rules[0].onExitCodes.values 1'],
  ],
  [
    'apps/v1',
    'StatefulSet',
    { spec: { template: { metadata: { finalizers: ['a/b', 'a/b'] } } } },
    ['spec.template.metadata.finalizers a/b'],
  ],
  [
    'v1',
    'Pod',
    { spec: { resources: { claims: [{ name: 'a' }, { name: 'a' }] } } },
    ['spec.resources.claims name=a'],
  ],
  ['plant.example/v1', 'Deployment', { spec: { template: { spec: { containers: [container] } } } }, []],
  ['v1', 'ServiceAccount', { imagePullSecrets: [{ name: 'a' }, { name: 'a' }] }, []],
  ['v1', 'Service', { spec: { ports: 'none' } }, []],
])('of a %s %s with %j these are named: %j', (apiVersion, kind, fields, expected) => {
  expect(of(apiVersion, kind, fields)).toEqual(expected)
})

it('an item of a set that is there twice is named', () => {
  expect(of('v1', 'ConfigMap', { metadata: { finalizers: ['a/b', 'a/b'] } })).toEqual([
    'metadata.finalizers a/b',
  ])
})

it('a manifest with such a list is refused with the object and the list', () => {
  const text =
    'apiVersion: v1\nkind: Service\nmetadata: {name: dup, namespace: x}\nspec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}\n'
  expect(readObjects(text).problems).toEqual([
    'has object 1, a Service, dup, whose list spec.ports has port=80, protocol=TCP twice; Kubernetes applies no such list, so leave one out',
  ])
})
