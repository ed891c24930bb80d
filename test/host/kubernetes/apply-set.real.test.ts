import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApplySet } from '../../../src/kubernetes/apply-set.ts'
import type { KubernetesClient, KubernetesObject } from '../../../src/kubernetes/client.ts'
import { createKubernetesClient } from '../../../src/kubernetes/create-client.ts'
import type { InventoryEntry } from '../../../src/kubernetes/inventory.ts'
import { startKubernetesApi, type KubernetesApi } from '../../support/kubernetes-api.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const object = (apiVersion: string, kind: string, name: string, more: object = {}): KubernetesObject => ({
  ...{ apiVersion, kind, metadata: { name } },
  ...more,
})
const map = (name: string, data: Record<string, string> = {}) => object('v1', 'ConfigMap', name, { data })
const namespaced = (given: KubernetesObject, namespace: string): KubernetesObject => ({
  ...given,
  metadata: { ...given.metadata, namespace },
})
const definition = (kind: string, group: string) => {
  const plural = `${kind.toLowerCase()}s`
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  return object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', `${plural}.${group}`, {
    spec: {
      ...{ group, names: { kind, plural }, scope: 'Namespaced' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  })
}
/** Of a service that does not exist; asked about Secrets in one namespace. */
const webhook = (name: string, namespace: string) =>
  object('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', name, {
    webhooks: [
      {
        ...{ name: `${name}.example.com`, admissionReviewVersions: ['v1'], sideEffects: 'None' },
        clientConfig: { service: { name: 'none', namespace } },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['secrets'] }],
      },
    ],
  })

describe.skipIf(isKitMissing())('a set of objects', () => {
  let api: KubernetesApi
  let client: KubernetesClient
  const ended = new AbortController()

  beforeAll(async () => {
    // No controller makes service accounts here.
    api = await startKubernetesApi('1.34.4', ['--disable-admission-plugins', 'ServiceAccount'])
    client = createKubernetesClient({ kubeconfig: () => readFile(api.kubeconfig, 'utf8') })
  })
  afterAll(async () => {
    ended.abort()
    client.close()
    await api.stop()
  })

  /** A set with an inventory that is kept between its runs. */
  function createSet(owner: string, patienceMs = 30_000) {
    const set = createApplySet({ client, patienceMs, firstPauseMs: 50 })
    const lines: string[] = []
    const kept = { inventory: [] as readonly InventoryEntry[], stored: 0 }
    const order = (signal = ended.signal) => ({
      ...{ owner, inventory: kept.inventory, signal },
      onInventory: (inventory: readonly InventoryEntry[]) => {
        kept.inventory = inventory
        kept.stored += 1
      },
      onLine: (line: string) => void lines.push(line),
    })
    return {
      ...{ kept, lines },
      names: () => kept.inventory.map(({ kind, name }) => `${kind}/${name}`),
      apply: (objects: readonly KubernetesObject[], namespace = 'default', signal?: AbortSignal) =>
        set.apply({ ...order(signal), objects: objects.map((each) => ({ object: each, namespace })) }),
      add: (objects: readonly KubernetesObject[], namespace = 'default') =>
        set.add({ ...order(), objects: objects.map((each) => ({ object: each, namespace })) }),
      remove: () => set.remove(order()),
    }
  }

  const get = async (apiVersion: string, kind: string, name: string, namespace?: string) => {
    const resource = await client.resourceOf(apiVersion, kind)
    return resource && (await client.get(resource, { name, ...(namespace && { namespace }) }))
  }
  const until = (condition: () => boolean | Promise<boolean>) =>
    expect.poll(condition, { timeout: 30_000, interval: 20 }).toBe(true)

  it('is applied definitions first, then namespaces, and what checks others last, whatever its order', async () => {
    const set = createSet('p1/ordered')
    await set.apply(
      [
        webhook('ordered', 'shop'),
        object('example.com/v1', 'Shop', 'corner', { spec: { size: 3 } }),
        object('v1', 'Secret', 'password', { stringData: { a: 'b' } }),
        namespaced(object('v1', 'Namespace', 'shop'), 'ignored'),
        namespaced(map('elsewhere'), 'default'),
        definition('Shop', 'example.com'),
      ],
      'shop',
    )
    expect(set.names()).toEqual([
      'CustomResourceDefinition/shops.example.com',
      'Namespace/shop',
      'Secret/password',
      'ConfigMap/elsewhere',
      'Shop/corner',
      'ValidatingWebhookConfiguration/ordered',
    ])
    expect(set.kept.inventory.map(({ namespace }) => namespace)).toEqual([
      ...[undefined, undefined, 'shop', 'default', 'shop', undefined],
    ])
    expect(await get('example.com/v1', 'Shop', 'corner', 'shop')).toMatchObject({
      spec: { size: 3 },
      metadata: { labels: { 'edgehostd/pack': expect.stringMatching(/^p1-ordered-[0-9a-f]{16}$/) } },
    })
    expect(set.lines).toContain('Shop shop/corner applied')
  })

  it('has its definitions established, or says why that is not possible', async () => {
    const conditions = async (name: string) => {
      const found = await get('apiextensions.k8s.io/v1', 'CustomResourceDefinition', name)
      return (found as { status?: { conditions?: { type: string; status: string }[] } } | undefined)?.status
        ?.conditions
    }
    await createSet('p1/first').apply([definition('Door', 'example.net')])
    expect(await conditions('doors.example.net')).toContainEqual(
      expect.objectContaining({ type: 'Established', status: 'True' }),
    )
    const second = definition('Door', 'example.net')
    const other = {
      ...second,
      metadata: { name: 'portals.example.net' },
      spec: { ...(second.spec as object), names: { kind: 'Door', plural: 'portals' } },
    }
    await expect(createSet('p1/second').apply([other])).rejects.toThrow(
      /^CustomResourceDefinition portals.example.net: .*"Door(List)?" is already in use/,
    )
  })

  it('keeps what is in it when objects are added', async () => {
    const set = createSet('p1/added')
    await set.apply([map('added-before')])
    await set.add([definition('Added', 'example.com')])
    expect(set.names()).toEqual(['ConfigMap/added-before', 'CustomResourceDefinition/addeds.example.com'])
    expect(await get('v1', 'ConfigMap', 'added-before', 'default')).toBeDefined()
    await set.apply([object('example.com/v1', 'Added', 'one')])
    expect(set.names()).toEqual(['Added/one'])
  })

  it('keeps what Kubernetes itself needs, also when it has it no more', async () => {
    const set = createSet('p1/built-in')
    const built = namespaced(map('coredns'), 'kube-system')
    await set.apply([built, map('beside')])
    await set.apply([map('beside')])
    expect(set.lines).toContain('ConfigMap kube-system/coredns stays: Kubernetes needs it')
    await set.remove()
    expect(await get('v1', 'ConfigMap', 'coredns', 'kube-system')).toBeDefined()
    expect(await get('v1', 'ConfigMap', 'beside', 'default')).toBeUndefined()
    expect(set.names()).toEqual([])
  })

  it('loses what is not in it any more, and nothing that another owner has taken', async () => {
    const [one, other] = [createSet('p1/one'), createSet('p1/other')]
    await one.apply([map('kept'), map('taken'), map('dropped')])
    await other.apply([map('taken')])
    await one.apply([map('kept', { a: '1' })])
    expect(await get('v1', 'ConfigMap', 'dropped', 'default')).toBeUndefined()
    expect(await get('v1', 'ConfigMap', 'kept', 'default')).toMatchObject({ data: { a: '1' } })
    expect(await get('v1', 'ConfigMap', 'taken', 'default')).toBeDefined()
    expect(one.names()).toEqual(['ConfigMap/kept'])
    expect(one.lines).toContain('ConfigMap default/taken stays: it belongs to another owner now')
    await one.remove()
    await other.remove()
    expect(await get('v1', 'ConfigMap', 'kept', 'default')).toBeUndefined()
    expect(await get('v1', 'ConfigMap', 'taken', 'default')).toBeUndefined()
    expect(one.names()).toEqual([])
    await one.remove()
  })

  it('is deleted also where its kind has gone before', async () => {
    const set = createSet('p1/kinds')
    await set.apply([definition('Lamp', 'light.example.com'), object('light.example.com/v1', 'Lamp', 'desk')])
    await api.kubectl('delete', 'crd', 'lamps.light.example.com')
    await set.remove()
    expect(set.names()).toEqual([])
  })

  it('is applied without what only stored objects have', async () => {
    const set = createSet('p1/exported')
    await set.apply([
      {
        ...map('exported', { a: '1' }),
        status: {},
        metadata: {
          ...{ name: 'exported', uid: '6e86969f-254f-4997-941e-4a55d1e1e707', resourceVersion: '5' },
          ...{ creationTimestamp: null, generation: 3, labels: null, annotations: null },
          managedFields: [{ manager: 'x', operation: 'Update' }],
        } as never,
      },
    ])
    expect(await get('v1', 'ConfigMap', 'exported', 'default')).toMatchObject({ data: { a: '1' } })
  })

  it.each<[string, KubernetesObject, RegExp]>([
    [
      'a field that its kind does not have',
      object('apps/v1', 'Deployment', 'web', { spec: { sice: 1 } }),
      /^Deployment default\/web: .*\.spec\.sice: field not declared/,
    ],
    [
      'a field of a wrong type',
      { ...map('typed'), data: { a: 1 } },
      /^ConfigMap default\/typed: .*\.data\.a: expected string/,
    ],
    [
      'a missing field',
      object('apps/v1', 'Deployment', 'web', { spec: {} }),
      /^Deployment default\/web: .*spec\.selector: Required value/,
    ],
    ['a bad name', map('A_B'), /^ConfigMap default\/A_B: .*metadata\.name: Invalid value/],
    ['no name', { ...map(''), metadata: { generateName: 'x-' } as never }, /"" is not a name in Kubernetes/],
  ])('fails at once where an object has %s', async (_, wrong, message) => {
    const set = createSet('p1/wrong', 60_000)
    await expect(set.apply([wrong])).rejects.toThrow(message)
  })

  it('fails after its patience where a kind or a namespace is missing', async () => {
    const set = createSet('p1/missing', 300)
    await expect(set.apply([object('example.org/v1', 'Boat', 'blue')])).rejects.toThrow(
      /^Boat blue: the API server has no kind Boat in example.org\/v1; it was tried again for \d+ s$/,
    )
    await expect(set.apply([map('lost')], 'nowhere')).rejects.toThrow('namespaces "nowhere" not found')
  })

  it('waits for a definition that another applies meanwhile, and applies the others first', async () => {
    const set = createSet('p1/late')
    // Of the same rank.
    const lease = object('coordination.k8s.io/v1', 'Lease', 'before')
    const applied = set.apply([object('late.example.com/v1', 'Train', 'ice'), lease])
    await until(async () => (await get(lease.apiVersion, 'Lease', 'before', 'default')) !== undefined)
    await createSet('p1/operator').apply([definition('Train', 'late.example.com')])
    await applied
    expect(await get('late.example.com/v1', 'Train', 'ice', 'default')).toBeDefined()
    expect(set.names()).toEqual(['Lease/before', 'Train/ice'])
  })

  it('waits for a webhook that does not answer yet, and says so', async () => {
    await createSet('p1/hook').apply([object('v1', 'Namespace', 'hooked'), webhook('hooked', 'hooked')])
    // The API server uses a new webhook a moment later.
    await until(() =>
      api.kubectl('create', 'secret', 'generic', 'try', '-n', 'hooked', '--dry-run=server').then(
        () => false,
        () => true,
      ),
    )
    const set = createSet('p1/secret')
    const applied = set.apply([object('v1', 'Secret', 'password')], 'hooked')
    await until(() =>
      set.lines.some((line) => /^waits: Secret hooked\/password: .*failed calling webhook/.test(line)),
    )
    await api.kubectl('delete', 'validatingwebhookconfiguration', 'hooked')
    await applied
    expect(await get('v1', 'Secret', 'password', 'hooked')).toBeDefined()
  })

  it('waits until a namespace and an object that are being deleted have gone', async () => {
    const set = createSet('p1/again')
    const all = [object('v1', 'Namespace', 'again'), map('one')]
    await set.apply(all, 'again')
    await api.kubectl(
      'patch',
      'configmap',
      'one',
      '-n',
      'again',
      '-p',
      '{"metadata":{"finalizers":["example.com/x"]}}',
    )
    await api.kubectl('delete', 'configmap', 'one', '-n', 'again', '--wait=false')
    await api.kubectl('delete', 'namespace', 'again', '--wait=false')
    const uid = (await get('v1', 'Namespace', 'again'))!.metadata.uid
    const applied = set.apply(all, 'again')
    await until(() =>
      set.lines.some((line) => line.startsWith('waits: Namespace again: an object of this name')),
    )
    // What the controllers of a cluster do.
    await api.kubectl(
      'patch',
      'configmap',
      'one',
      '-n',
      'again',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    )
    const finalized = { ...(await get('v1', 'Namespace', 'again')), spec: { finalizers: [] } }
    const file = join(await mkdtemp(join(tmpdir(), 'finalized-')), 'namespace.json')
    await writeFile(file, JSON.stringify(finalized))
    await api.kubectl('replace', '--raw', '/api/v1/namespaces/again/finalize', '-f', file)
    await applied
    expect((await get('v1', 'Namespace', 'again'))!.metadata.uid).not.toBe(uid)
    expect(await get('v1', 'ConfigMap', 'one', 'again')).toBeDefined()
  })

  it('is applied whole while the API server is killed and comes back', async () => {
    const set = createSet('p1/many')
    const many = Array.from({ length: 300 }, (_, index) => map(`many-${index}`))
    const applied = set.apply(many)
    for (const at of [50, 150]) {
      await until(() => set.lines.length >= at)
      await api.kill()
      await api.start()
    }
    await applied
    expect(set.names()).toHaveLength(300)
    // Before the first and after the last object.
    expect(set.kept.stored).toBe(2)
    const maps = (await client.resourceOf('v1', 'ConfigMap'))!
    const stored = await client.list(maps, { labelSelector: 'edgehostd/pack' })
    expect(stored.filter(({ metadata }) => metadata.name.startsWith('many-'))).toHaveLength(300)
  })

  it('that is stopped has in its inventory all that it applied', async () => {
    const set = createSet('p1/stopped')
    const stop = new AbortController()
    const applied = set.apply(
      [map('stop-1'), map('stop-2'), object('no.example.com/v1', 'No', 'stop-3')],
      'default',
      stop.signal,
    )
    await until(async () => (await get('v1', 'ConfigMap', 'stop-2', 'default')) !== undefined)
    stop.abort()
    await expect(applied).rejects.toThrow('abort')
    expect(set.names()).toEqual(['ConfigMap/stop-1', 'ConfigMap/stop-2'])
    await set.apply([])
    expect(await get('v1', 'ConfigMap', 'stop-1', 'default')).toBeUndefined()
  })
})
