import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  chartArchive,
  clusterDefinition,
  infrastructure,
  type PackWish,
} from '../../support/cluster-definitions.ts'
import { isKitMissing, kit } from '../../support/kubernetes-kit.ts'
import { prepareBench, toldProblems } from '../../support/prepare-bench.ts'

const { prepare, prepareAddOns } = prepareBench()

const object = (apiVersion: string, kind: string, metadata: string, rest = '') =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {${metadata}}\n${rest}`
const map = (metadata: string, rest = '') => object('v1', 'ConfigMap', metadata, rest)
const till = (metadata = 'name: front') => object('shop.example/v1', 'Till', metadata)
const tills = (scope = 'Cluster', served = true) =>
  object(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    'name: tills.shop.example',
    `spec:\n  group: shop.example\n  names: {kind: Till, plural: tills}\n  scope: ${scope}\n  versions: [{name: v1, served: ${served}}]\n`,
  )
const mayMake = (group: string, resource: string) =>
  object(
    'rbac.authorization.k8s.io/v1',
    'ClusterRole',
    `name: "shop:operator-${resource}"`,
    `rules:\n- {apiGroups: ["${group}"], resources: [pods, ${resource}], verbs: [get, create]}\n`,
  )
const hook = (when: string) => `annotations: {helm.sh/hook: "${when}"}`

const manifests = (...contents: readonly string[]) =>
  contents.map((content, index) => ({ name: `m${index}`, content }))
const pack = (name: string, ...contents: readonly string[]): PackWish => ({
  ...{ name, type: 'manifest', manifests: manifests(...contents) },
})
/** A pack that comes before the others, or after them. */
const at = (priority: number, wish: PackWish): PackWish => ({
  ...wish,
  values: `pack: {spectrocloud.com/install-priority: "${priority}"}\n`,
})
const chart = (name: string, files: Readonly<Record<string, string>>, values = ''): PackWish => ({
  ...{ name, values, files: { [`charts/${name}.tgz`]: chartArchive(name, files) } },
})

/** Problems as `severity code message`, without the pack where it is the only one. */
const told = async (...packs: readonly PackWish[]) => {
  const prepared = await prepareAddOns(packs)
  await prepared.discard()
  return toldProblems(prepared)
}

describe('manifests that Kubernetes refuses', { timeout: 120_000 }, () => {
  it.each([
    [
      'a removed version of a kind',
      object('extensions/v1beta1', 'Ingress', 'name: a'),
      'Kubernetes 1.34 does not have',
    ],
    ['a kind in another group', object('apps/v1', 'Job', 'name: a'), 'Kubernetes 1.34 does not have'],
    [
      'a kind that no pack defines',
      till(),
      'Till front is of the kind Till in shop.example/v1, which no pack defines',
    ],
    [
      'a kind in a version that is not served',
      `${tills('Cluster', false)}---\n${till()}`,
      'which no pack defines',
    ],
  ])('%s is an error', async (_, content, message) => {
    expect(await told(pack('a', content))).toEqual([
      expect.stringMatching(new RegExp(`^error KindUnknown pack u1/a: .*${message}`)),
    ])
  })

  it('objects of one unknown kind are one problem', async () => {
    expect(await told(pack('a', `${till()}---\n${till('name: back')}`, till('name: side')))).toEqual([
      'error KindUnknown pack u1/a: Till front is of the kind Till in shop.example/v1, which no pack defines (and 2 more objects)',
    ])
  })

  it('a kind may be defined by the same pack, by one of the same order or before, and by an APIService; later is too late', async () => {
    expect(await told(pack('a', till(), tills()))).toEqual([])
    expect(await told(pack('a', till()), pack('b', tills()))).toEqual([])
    expect(await told(pack('a', till()), at(-1, pack('b', tills())))).toEqual([])
    const served = object(
      ...(['apiregistration.k8s.io/v1', 'APIService', 'name: v1.shop.example'] as const),
      'spec: {group: shop.example, version: v1}\n',
    )
    expect(await told(pack('a', `${till('name: Any_Name')}---\n${served}`))).toEqual([])
    expect(await told(pack('a', till()), at(1, pack('b', tills())))).toEqual([
      'error KindUnknown pack u1/a: Till front is of the kind Till in shop.example/v1, which only the pack u1/b, which comes later, defines',
    ])
  })

  it('a kind or a namespace that a program of the packs may make is a warning', async () => {
    const operator = pack('operator', mayMake('apiextensions.k8s.io', 'customresourcedefinitions'))
    expect(await told(pack('a', till()), operator)).toEqual([
      expect.stringMatching(/^warning KindUnknown pack u1\/a: .* it is waited for/),
    ])
    expect(await told(pack('a', till()), at(1, operator))).toEqual([
      expect.stringMatching(/^error KindUnknown pack u1\/a: /),
    ])
    const admin = object(
      ...(['rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'name: "a:admin"'] as const),
      'roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n',
    )
    const lost = map('name: a, namespace: shop')
    for (const allowed of [mayMake('', 'namespaces'), admin])
      expect(await told(pack('a', lost, allowed))).toEqual([
        expect.stringMatching(
          /^warning NamespaceMissing pack u1\/a: ConfigMap shop\/a is in the namespace "shop", which no pack makes; it is waited for/,
        ),
      ])
  })

  it('what Kubernetes has only if the pack enables it, or perhaps in an older or newer version, is a warning', async () => {
    const claim = pack('a', object('resource.k8s.io/v1beta1', 'ResourceClaim', 'name: a'))
    const withKubernetes = async (change: Partial<PackWish>) => {
      const packs = infrastructure.map((each) => (each.layer === 'k8s' ? { ...each, ...change } : each))
      const prepared = await prepare(clusterDefinition([...packs, claim]))
      await prepared.discard()
      return toldProblems(prepared)
    }
    const config =
      'cluster:\n  config: |\n    clusterConfiguration: {apiServer: {extraArgs: {runtime-config: resource.k8s.io/v1beta1=true}}}\n'
    expect(await withKubernetes({})).toEqual([expect.stringMatching(/^error KindUnknown/)])
    for (const change of [{ values: config }, { tag: '1.31.2' }, { tag: '1.36.0' }])
      expect(await withKubernetes(change)).toEqual([
        expect.stringMatching(/^warning KindUnknown .* which Kubernetes has only if it is enabled$/),
      ])
  })

  it('an object in a namespace that nothing makes in time is an error; names of objects without a namespace do not matter', async () => {
    const lost = map('name: a, namespace: shop')
    const shop = object('v1', 'Namespace', 'name: shop')
    expect(await told(pack('a', lost, shop))).toEqual([])
    expect(await told(pack('a', lost), pack('b', shop))).toEqual([])
    const settings = { ...pack('b'), values: 'pack: {additionalNamespaces: [shop]}\n' }
    expect(await told(pack('a', lost), settings)).toEqual([])
    expect(await told(pack('a', map('name: a, namespace: kube-system')))).toEqual([])
    const role = object('rbac.authorization.k8s.io/v1', 'ClusterRole', 'name: a, namespace: shop')
    expect(await told(pack('a', role, `${tills()}---\n${till('name: a, namespace: shop')}`))).toEqual([])
    expect(await told(pack('a', lost), at(1, pack('b', shop)))).toEqual([
      'error NamespaceMissing pack u1/a: ConfigMap shop/a is in the namespace "shop", which only the pack u1/b makes, which comes later',
    ])
    expect(await told(pack('a', `${tills('Namespaced')}---\n${till('name: a, namespace: shop')}`))).toEqual([
      'error NamespaceMissing pack u1/a: Till shop/a is in the namespace "shop", which no pack makes',
    ])
    expect(await told(pack('a', map('name: a, namespace: Shop_1')))).toEqual([
      expect.stringMatching(/^error NamespaceMissing .*"Shop_1"; a name has at most 63/),
    ])
  })

  it.each([
    ['ConfigMap', map('name: Shop_1')],
    ['Service', object('v1', 'Service', 'name: a.b')],
    ['ClusterRole', object('rbac.authorization.k8s.io/v1', 'ClusterRole', 'name: a/b')],
    ['Till', `${tills()}---\n${till('name: A')}`],
  ])('a %s with a name that is not allowed is an error', async (kind, content) => {
    expect(await told(pack('a', content))).toEqual([
      expect.stringMatching(new RegExp(`^error ObjectNameInvalid pack u1/a: it has a ${kind} with the name`)),
    ])
  })

  it('names of roles and long names of objects are taken', async () => {
    const role = object('rbac.authorization.k8s.io/v1', 'ClusterRole', 'name: "system:Shop Floor"')
    const long = map(`name: ${'a.'.repeat(100)}b`)
    const list = `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l}}\n`
    expect(await told(pack('a', role, long, list))).toEqual([])
  })

  it('an object is not judged by the schema of its definition, nor by nested rules: Kubernetes judges it when it is applied', async () => {
    const rule = (text: string) => `x-kubernetes-validations: [{rule: "${text}", message: refused}]`
    const schema = `{openAPIV3Schema: {type: object, ${rule('self.spec.lanes.size() < 9')}, properties: {spec: {type: object, properties: {lanes: {type: array, items: {type: object, ${rule('self.width > 1')}, properties: {width: {type: integer}}}}}}}}}`
    const definition = tills().replace('served: true', `served: true, storage: true, schema: ${schema}`)
    for (const spec of ['{lanes: [{width: 2}]}', '{lanes: [{width: 0}]}', '{lanes: none}'])
      expect(await told(pack('till', definition, `${till()}spec: ${spec}\n`)), spec).toEqual([])
  })

  it('different objects of one name in two packs are a warning, equal ones are not', async () => {
    const one = map('name: a', 'data: {a: "1"}\n')
    expect(await told(pack('a', one), pack('b', one))).toEqual([])
    expect(await told(pack('a', one, map('name: a')))).toEqual([])
    const other = { ...pack('b', map('name: a')), values: 'pack: {namespace: shop}\n' }
    expect(await told(pack('a', one), other)).toEqual([])
    expect(await told(pack('a', one), pack('b', map('name: a, namespace: default')))).toEqual([
      'warning ObjectTwice pack u1/b: ConfigMap default/a is in the pack u1/a too, and replaces that one',
    ])
  })

  it('without everything that the packs install, no kind or namespace is called missing', async () => {
    const problems = await told(
      pack('a', till(), map('name: a, namespace: shop'), map('name: A_1')),
      pack('b', 'kind: Secret\n'),
    )
    expect(problems.map((each) => each.split(' ')[1])).toEqual(['ManifestInvalid', 'ObjectNameInvalid'])
  })

  it('labels and annotations of namespaces that Kubernetes refuses are errors', async () => {
    const labels = (text: string) => ({ ...pack('a', map('name: a')), values: `pack:\n${text}` })
    const wrong = labels(
      '  namespaceLabels:\n    shop: {a/b/c: x, tier: "two words", pod-security.kubernetes.io/enforce: strict, pod-security.kubernetes.io/warn-version: "1.34"}\n  namespaceAnnotations: {shop: {"a b": x}}\n',
    )
    expect(await told(wrong)).toEqual([
      expect.stringMatching(
        /^error NamespaceLabelInvalid pack u1\/a: it gives the namespace shop the label "a\/b\/c"; a key has/,
      ),
      expect.stringContaining('the label "tier" with the value "two words"; a value has'),
      expect.stringContaining('with the value "strict"; it must be one of privileged, baseline, restricted'),
      expect.stringContaining('with the value "1.34"; it must be latest or a version such as v1.34'),
      expect.stringContaining('the annotation "a b"; a key has'),
    ])
    const right = labels(
      '  namespaceLabels: {shop: "pod-security.kubernetes.io/enforce=baseline,pod-security.kubernetes.io/enforce-version=v1.34,a.example/b=,c"}\n  namespaceAnnotations: {shop: {A.Example/b: "any text"}}\n',
    )
    expect(await told(right)).toEqual([])
  })
})

describe.skipIf(isKitMissing())('charts that helm refuses', { timeout: 120_000 }, () => {
  it.each<[string, Readonly<Record<string, string>>, string]>([
    [
      'a kind that is defined by its own templates',
      { 'templates/a.yaml': till(), 'templates/b.yaml': tills() },
      'KindUnknown',
    ],
    [
      'a kind that a hook defines',
      {
        'templates/a.yaml': till(),
        'templates/b.yaml': tills().replace(
          'name: tills.shop.example',
          `name: tills.shop.example, ${hook('pre-install')}`,
        ),
      },
      'KindUnknown',
    ],
    [
      'a removed version',
      { 'templates/a.yaml': object('policy/v1beta1', 'PodDisruptionBudget', 'name: a') },
      'KindUnknown',
    ],
    ['an object without a name', { 'templates/a.yaml': map('generateName: a-') }, 'ObjectNameInvalid'],
    ['a name that is not allowed', { 'templates/a.yaml': map('name: A_1') }, 'ObjectNameInvalid'],
    [
      'an object that is twice in it',
      { 'templates/a.yaml': map('name: a'), 'templates/b.yaml': map('name: a, namespace: default') },
      'ObjectTwice',
    ],
    [
      'a namespace of every cluster',
      { 'templates/a.yaml': object('v1', 'Namespace', 'name: default') },
      'ObjectTwice',
    ],
    [
      'a namespace that is missing',
      { 'templates/a.yaml': map('name: a, namespace: shop') },
      'NamespaceMissing',
    ],
  ])('%s is an error', async (_, files, code) => {
    const problems = await told(chart('a', files))
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^error ${code} pack u1/a: `))])
  })

  it('a namespace that the pack makes is not made by the chart again', async () => {
    const own = { 'templates/a.yaml': object('v1', 'Namespace', 'name: shop') }
    expect(await told(chart('a', own, 'pack: {namespace: shop}\n'))).toEqual([
      'error ObjectTwice pack u1/a: Namespace shop of the release a-a is made before by the pack itself, and helm takes over nothing that it did not make; turn it off in the values of the chart',
    ])
  })

  it('an object of an earlier pack is refused, unless it is of a hook, of the folder crds, or made for the release', async () => {
    const one = { 'templates/a.yaml': map('name: a') }
    expect(await told(chart('a', one), chart('b', one))).toEqual([
      expect.stringMatching(
        /^error ObjectTwice pack u1\/b: ConfigMap default\/a of the release b-b is made before by the pack u1\/a/,
      ),
    ])
    expect(await told(at(-1, pack('a', map('name: a'))), chart('b', one))).toEqual([
      expect.stringMatching(/^error ObjectTwice pack u1\/b: /),
    ])
    expect(await told(chart('b', one), at(1, pack('a', map('name: a'))))).toEqual([
      'warning ObjectTwice pack u1/a: ConfigMap default/a is in the pack u1/b too, and replaces that one',
    ])
    expect(
      await told(chart('a', one), chart('b', { 'templates/a.yaml': map(`name: a, ${hook('pre-install')}`) })),
    ).toEqual([])
    expect(
      await told(chart('a', { 'crds/a.yaml': tills() }), chart('b', { 'crds/a.yaml': tills() })),
    ).toEqual([])
    const release = 'annotations: {meta.helm.sh/release-name: b-b, meta.helm.sh/release-namespace: default}'
    expect(await told(at(-1, pack('a', map(`name: a, ${release}`))), chart('b', one))).toEqual([])
  })

  it('a manifest of the pack makes namespaces only after its charts', async () => {
    const files = chart('a', { 'templates/a.yaml': map('name: a, namespace: shop') }).files ?? {}
    const both = {
      name: 'a',
      files: { ...files, 'manifests/a.yaml': object('v1', 'Namespace', 'name: shop') },
    }
    expect(await told(both)).toEqual([
      'error NamespaceMissing pack u1/a: ConfigMap shop/a is in the namespace "shop", which only its manifests make, which come after its charts',
    ])
  })

  it.each<[string, Readonly<Record<string, string>>]>([
    ['definitions in the folder crds', { 'crds/a.yaml': tills(), 'templates/a.yaml': till() }],
    [
      'a hook of a kind that its templates define',
      { 'templates/b.yaml': tills(), 'templates/a.yaml': till(`name: a, ${hook('post-install')}`) },
    ],
    [
      'hooks that an installation does not run',
      {
        'templates/a.yaml': till(`name: a, ${hook('pre-delete, pre-upgrade')}`),
        'templates/b.yaml': till(`name: b, ${hook('crd-install')}`),
      },
    ],
    [
      'a hook with generateName',
      { 'templates/a.yaml': map(`generateName: a-, ${hook('post-install,post-upgrade')}`) },
    ],
    [
      'a namespace and an object in it',
      {
        'templates/a.yaml': object('v1', 'Namespace', 'name: shop'),
        'templates/b.yaml': map('name: a, namespace: shop'),
      },
    ],
    [
      'lists',
      {
        'templates/a.yaml':
          'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n',
      },
    ],
    [
      'text that only looks like an object',
      {
        'templates/a.yaml': map(
          'name: a',
          'data:\n  kind: Nothing\n  text: |\n    apiVersion: none/v1\n    kind: Nothing\n    ---\n',
        ),
      },
    ],
    [
      'an object as JSON',
      { 'templates/a.yaml': '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}\n' },
    ],
  ])('it takes %s', async (_, files) => {
    expect(await told(chart('a', files))).toEqual([])
  })

  it('a chart that helm create makes is taken', async () => {
    const programs = (await kit())?.programs ?? ''
    const folder = mkdtempSync(join(tmpdir(), 'helm-create-'))
    const helm = (...args: readonly string[]) =>
      promisify(execFile)(join(programs, 'helm'), args, { cwd: folder, env: { HOME: folder } })
    try {
      await helm('create', 'made')
      await helm('package', 'made')
      const values =
        'pack: {namespace: shop}\ncharts:\n  made:\n    ingress: {enabled: true}\n    autoscaling: {enabled: true}\n'
      const files = { 'charts/made.tgz': readFileSync(join(folder, 'made-0.1.0.tgz')) }
      expect(await told({ name: 'made', values, files })).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
