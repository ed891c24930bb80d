import { describe, expect, it } from 'vitest'
import { listsWithKeyTwice, type CustomLists } from '../../../src/kubernetes/list-keys.ts'
import { readRenderedChart } from '../../../src/cluster/prepare/charts.ts'
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

describe('lists of a kind that a definition adds', () => {
  // As controllers embed a template of pods: https://book.kubebuilder.io/reference/generating-crd
  const schema = `
        type: object
        properties:
          spec:
            type: object
            properties:
              template: {type: object, properties: {spec: {type: object, properties: {containers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [containerPort, protocol], items: {type: object, properties: {containerPort: {type: integer}, protocol: {type: string, default: TCP}}}}, env: {type: array, items: {type: object}}}}}}}}}
              hosts: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              zones: {type: object, additionalProperties: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [rack, slot], items: {type: object}}}
              free: {type: array, x-kubernetes-list-type: atomic, items: {type: object}}
`
  const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lines.plant.example}
spec:
  group: plant.example
  names: {kind: Line, plural: lines}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:${schema}
`
  const line = (spec: string, version = 'v1') =>
    `---\napiVersion: plant.example/${version}\nkind: Line\nmetadata: {name: seven}\nspec: ${spec}\n`
  const problemOf = (list: string) =>
    `has object 2, a Line, seven, whose list ${list} twice; Kubernetes applies no such list, so leave one out`

  it.each([
    [
      '{template: {spec: {containers: [{name: a}, {name: b, ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}]}}}',
      'spec.template.spec.containers[1].ports has containerPort=53, protocol=TCP',
    ],
    ['{hosts: [press-7.example., on, "on"]}', 'spec.hosts has on'],
    ['{hosts: [9223372036854775807, 0x7fffffffffffffff]}', 'spec.hosts has 9223372036854775807'],
    [
      '{zones: {"no.rth": [{rack: 1, slot: 2}], south: [{rack: 1}, {rack: 1}]}}',
      'spec.zones.south has rack=1',
    ],
  ])('%s is refused by its list', (spec, list) => {
    // The text `on` is one, the word is a boolean.
    const text = spec.replace('on, "on"', '"on", "on"')
    expect(readObjects(definition + line(text)).problems).toEqual([problemOf(list)])
  })

  it.each([
    '{template: {spec: {containers: [{name: a, env: [{name: x}, {name: x}]}, {name: b}]}}, free: [{a: 1}, {a: 1}]}',
    '{hosts: {a: 1}, zones: [{rack: 1}, {rack: 1}]}',
    '{zones: {north: [{rack: 1, slot: 1}, {rack: 1, slot: 2}, {}, {}]}}',
  ])('%s is not, since its lists have no key twice', (spec) => {
    expect(readObjects(definition + line(spec)).problems).toEqual([])
  })

  it('of an earlier text count, and of another version or group do not', () => {
    const custom: CustomLists = new Map()
    const twice = '{hosts: [a, a]}'
    expect(readObjects(line(twice), custom).problems).toEqual([])
    expect(readObjects(definition, custom).problems).toEqual([])
    expect(readObjects(line(twice), custom).problems).toHaveLength(1)
    expect(readObjects(line(twice, 'v2'), custom).problems).toEqual([])
  })

  it.each([
    'spec: 1',
    'spec: {group: a, names: {kind: Line}, versions: [1, {name: v1}, {schema: []}]}',
    `spec: {group: plant.example, names: {kind: Line}, versions: [{name: v1, schema: {openAPIV3Schema: {${'properties: {a: {'.repeat(300)}${'}}'.repeat(300)}}}}]}`,
  ])('are none of a definition that is none', (rest) => {
    const text = `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n${rest}\n`
    expect(readObjects(text + line('{hosts: [a, a]}')).problems).toEqual([])
  })

  it('a chart with such a list is refused too, since the API server takes none', () => {
    const chart = `---\n# Source: line/crds/line.yaml\n${definition}${line('{template: {spec: {containers: [{name: a, image: b}, {name: a}]}}}').replace('---', '---\n# Source: line/templates/line.yaml')}`
    expect(readRenderedChart(chart).problems).toEqual([
      'has in line/templates/line.yaml a Line seven, whose list spec.template.spec.containers has name=a twice; Kubernetes refuses it, so leave one out',
    ])
  })
})
