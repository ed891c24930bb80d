import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readPlain } from '../../../src/definition/rules/plain-values.ts'
import type { KubernetesClient, KubernetesObject } from '../../../src/kubernetes/client.ts'
import { createKubernetesClient } from '../../../src/kubernetes/create-client.ts'
import { addCustomLists, listsWithKeyTwice, type CustomLists } from '../../../src/kubernetes/list-keys.ts'
import { startKubernetesApi, type KubernetesApi } from '../../support/kubernetes-api.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const kind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: quotas.plant.example}
spec:
  group: plant.example
  names: {kind: Quota, plural: quotas}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              x-kubernetes-preserve-unknown-fields: true
              properties:
                most: {type: integer, format: int64}
                least: {type: integer, format: int64}
                share: {type: number}
                note: {type: string}
                hosts: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                free: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
                zones:
                  type: object
                  additionalProperties:
                    type: array
                    x-kubernetes-list-type: map
                    x-kubernetes-list-map-keys: [port, protocol]
                    items:
                      type: object
                      required: [port]
                      properties:
                        port: {type: integer}
                        protocol: {type: string, default: TCP}
                        note: {type: string}
`
const quota = (spec: string) =>
  `apiVersion: plant.example/v1\nkind: Quota\nmetadata: {name: one}\nspec: {${spec}}\n`
const map = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n${data}\n`
const pod = (container: string, spec = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: a, image: "a:1"${container}}]${spec}}\n`
const service = (ports: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: one}\nspec: {ports: [${ports}]}\n`

const taken: readonly (readonly [string, string])[] = [
  ['the largest whole numbers', quota('most: 9223372036854775807, least: -9223372036854775808')],
  [
    'whole numbers above 2^53',
    quota('most: 9007199254740993, other: 9007199254740993, hex: 0x7fffffffffffffff'),
  ],
  ['whole numbers with underscores', quota('most: 1_000, least: -0b11, other: 0o17, old: 017')],
  ['numbers with a fraction', quota('share: 0.1, other: 1e3, small: 1.5e-7')],
  ['words that are booleans', quota('note: "no", other: no, third: y, fourth: On')],
  ['a text by !!binary', quota('note: !!binary aGFsbG8=')],
  ['a text by !!str', quota('note: !!str 1e3, other: 2001-01-01, third: 12:30:45')],
  ['data by !!binary', map('data: {a: !!binary aGFsbG8=}')],
  ['an alias and a merge key', map('data: {<<: &a {b: x}, c: "y"}')],
  [
    'keys of a custom kind that differ',
    quota('zones: {a: [{port: 1}, {port: 1, protocol: UDP}], b: [{port: 1}]}'),
  ],
  ['a list of a custom kind without keys', quota('free: [{port: 1}, {port: 1}]')],
  ['one port of two protocols', pod(', ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]')],
]
const refused: readonly (readonly [string, string])[] = [
  ['env', pod(', env: [{name: A, value: "1"}, {name: A, value: "2"}]')],
  [
    'ports, one with the protocol',
    pod(', ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP, name: b}]'),
  ],
  [
    'volumeMounts',
    pod(
      ', volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]',
      ', volumes: [{name: v, emptyDir: {}}]',
    ),
  ],
  ['volumes', pod('', ', volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]')],
  ['initContainers', pod('', ', initContainers: [{name: b, image: "a:1"}, {name: b, image: "a:1"}]')],
  [
    'hostAliases',
    pod('', ', hostAliases: [{ip: 192.0.2.1, hostnames: [a]}, {ip: 192.0.2.1, hostnames: [b]}]'),
  ],
  ['a list of a custom kind', quota('zones: {"a.b": [{port: 1}, {port: 1, protocol: TCP, note: a}]}')],
  ['a set of a custom kind', quota('hosts: ["on", "12:30:45", "on"]')],
  ['ports of a service', service('{port: 80, name: a}, {port: 80, name: b}')],
]

describe.skipIf(isKitMissing())('kubectl apply --server-side and the client, of the same text', () => {
  let api: KubernetesApi
  let client: KubernetesClient
  let folder: string
  const custom: CustomLists = new Map()
  addCustomLists(readPlain(kind).documents, custom)
  beforeAll(async () => {
    // No controller makes service accounts here.
    api = await startKubernetesApi('1.34.4', ['--disable-admission-plugins', 'ServiceAccount'])
    client = createKubernetesClient({ kubeconfig: () => readFile(api.kubeconfig, 'utf8') })
    folder = await mkdtemp(join(tmpdir(), 'apply-'))
    await writeFile(join(folder, 'kind.yaml'), kind)
    await api.kubectl('apply', '--server-side', '-f', join(folder, 'kind.yaml'))
    await api.kubectl('wait', '--for=condition=Established', 'crd/quotas.plant.example', '--timeout=60s')
    for (const namespace of ['theirs', 'ours']) await api.kubectl('create', 'namespace', namespace)
  })
  afterAll(async () => {
    client.close()
    await api.stop()
    await rm(folder, { recursive: true })
  })

  /** Why kubectl does not apply it; undefined where it does. */
  async function theirs(text: string): Promise<string | undefined> {
    const file = join(folder, 'one.yaml')
    await writeFile(file, text)
    return api.kubectl('apply', '--server-side', '--namespace=theirs', '-f', file).then(
      () => undefined,
      (error: unknown) => (error as { stderr: string }).stderr,
    )
  }
  const objectOf = (text: string) => {
    const { documents, problems } = readPlain(text)
    expect(problems).toEqual([])
    return documents[0] as KubernetesObject
  }
  async function ours(given: KubernetesObject): Promise<string | undefined> {
    const object = { ...given, metadata: { ...given.metadata, namespace: 'ours' } }
    const resource = await client.resourceOf(object.apiVersion, object.kind)
    return client.apply(resource!, object).then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    )
  }
  /** What the API server has of it, as text: JSON.parse would round. */
  async function stored({ apiVersion, kind: name }: KubernetesObject, namespace: string): Promise<string> {
    const resource = await client.resourceOf(apiVersion, name)
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
    const text = await api.kubectl('get', '--raw', `${group}/namespaces/${namespace}/${resource!.plural}/one`)
    return text.slice(text.search(/"(?:spec|data)":/)).replaceAll(namespace, 'NAMESPACE')
  }

  it.each(taken)('store the same: %s', async (_, text) => {
    const object = objectOf(text)
    expect(listsWithKeyTwice(object, custom)).toEqual([])
    expect({ theirs: await theirs(text), ours: await ours(object) }).toEqual({})
    expect(await stored(object, 'ours')).toBe(await stored(object, 'theirs'))
    for (const namespace of ['theirs', 'ours'])
      await api.kubectl('delete', object.kind, 'one', `--namespace=${namespace}`, '--now')
  })

  it.each(refused)('are refused both, and before by us: %s', async (_, text) => {
    const object = objectOf(text)
    expect(await theirs(text)).toContain('duplicate entries for key')
    expect(await ours(object)).toContain('duplicate entries for key')
    expect(listsWithKeyTwice(object, custom)).toHaveLength(1)
  })
})
