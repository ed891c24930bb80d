import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KubernetesClient, KubernetesObject, Resource } from '../../../src/kubernetes/client.ts'
import { createKubernetesClient } from '../../../src/kubernetes/create-client.ts'
import { startKubernetesApi, type KubernetesApi } from '../../support/kubernetes-api.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const timing = {
  ...{ firstPauseMs: 50, longestPauseMs: 500, wellAfterMs: 1_000 },
  ...{ watchSeconds: 600, silenceMs: 200_000 },
}

const map = (name: string, data: Record<string, string> = {}, labels = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', labels },
  data,
})

describe.skipIf(isKitMissing())('a real API server', () => {
  let api: KubernetesApi
  let client: KubernetesClient
  let maps: Resource
  const ended = new AbortController()

  beforeAll(async () => {
    // Without the gate the API server often remembers what etcd has forgotten.
    api = await startKubernetesApi('1.34.4', ['--feature-gates', 'ListFromCacheSnapshot=false'])
    client = createKubernetesClient({
      kubeconfig: () => readFile(api.kubeconfig, 'utf8'),
      limits: { pageSize: 5, mostObjects: 100 },
      timing,
    })
    maps = (await client.resourceOf('v1', 'ConfigMap'))!
  })
  afterAll(async () => {
    ended.abort()
    client.close()
    await api.stop()
  })

  const watchMaps = (labelSelector: string) => {
    const seen: string[][] = []
    const watched = client.watch(maps, {
      ...{ namespace: 'default', labelSelector, signal: ended.signal },
      onChange: () => seen.push((watched.current() ?? []).map(({ metadata }) => metadata.name)),
    })
    return { seen, ...watched }
  }
  const until = (condition: () => boolean | Promise<boolean>) =>
    expect.poll(condition, { timeout: 30_000, interval: 20 }).toBe(true)

  it('says its version, that it is ready, and which resources it has', async () => {
    expect(await client.isReady()).toBe(true)
    expect(await client.version()).toBe('v1.34.4')
    expect(maps).toEqual({
      group: '',
      version: 'v1',
      plural: 'configmaps',
      kind: 'ConfigMap',
      isNamespaced: true,
    })
    expect(await client.resourceOf('rbac.authorization.k8s.io/v1', 'ClusterRole')).toMatchObject({
      plural: 'clusterroles',
      isNamespaced: false,
    })
    expect(await client.resourceOf('v1', 'Nothing')).toBeUndefined()
    expect(await client.resourceOf('no.example.com/v1', 'Nothing')).toBeUndefined()
  })

  it('applies, gives and deletes an object, and an object that is not there is no error', async () => {
    const reference = { name: 'one', namespace: 'default' }
    expect(await client.apply(maps, map('one', { a: '1', b: '2' }))).toMatchObject({
      data: { a: '1', b: '2' },
    })
    const stored = await client.apply(maps, map('one', { a: '3' }))
    expect(stored.data).toEqual({ a: '3' })
    expect(stored.metadata).not.toHaveProperty('managedFields')
    expect(await client.get(maps, reference)).toMatchObject({ kind: 'ConfigMap', data: { a: '3' } })
    await client.remove(maps, reference)
    expect(await client.get(maps, reference)).toBeUndefined()
    await client.remove(maps, reference)
  })

  it('takes a field over from another manager', async () => {
    await client.apply(maps, map('shared', { a: '1' }))
    await api.kubectl('patch', 'configmap', 'shared', '--type=merge', '-p', '{"data":{"a":"other"}}')
    expect(await client.apply(maps, map('shared', { a: '1' }))).toMatchObject({ data: { a: '1' } })
  })

  it('says why it refuses an object', async () => {
    await expect(client.apply(maps, map('Not_A_Name'))).rejects.toMatchObject({
      status: 422,
      reason: 'Invalid',
    })
    await expect(client.apply(maps, { ...map('typed'), data: { a: 1 } })).rejects.toMatchObject({
      status: 500,
      message: expect.stringContaining('.data.a: expected string'),
    })
    const elsewhere = { ...map('one'), metadata: { name: 'one', namespace: 'nowhere' } }
    await expect(client.apply(maps, elsewhere)).rejects.toMatchObject({
      status: 404,
      message: 'namespaces "nowhere" not found',
    })
    for (const name of ['', '.', '..', 'a/b', undefined as never])
      await expect(client.remove(maps, { name, namespace: 'default' })).rejects.toMatchObject({
        reason: 'BadRequest',
      })
    await expect(client.remove(maps, { name: 'x' })).rejects.toThrow('ConfigMap x has no namespace')
  })

  it('keeps everything of the schema of a definition', async () => {
    const definitions = (await client.resourceOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition'))!
    const schema = {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: {
        size: { type: 'string', enum: ['small', 'large'], default: 'small' },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        zones: {
          type: 'array',
          items: { type: 'string' },
          'x-kubernetes-list-type': 'set',
        },
      },
      'x-kubernetes-validations': [{ rule: "self.size != 'large'", message: 'too large' }],
    }
    const stored = await client.apply(definitions, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'schemas.example.com' },
      spec: {
        group: 'example.com',
        names: { kind: 'Schema', plural: 'schemas' },
        scope: 'Cluster',
        versions: [
          {
            ...{ name: 'v1', served: true, storage: true },
            schema: { openAPIV3Schema: { type: 'object', properties: { spec: schema } } },
          },
        ],
      },
    })
    const spec = stored.spec as { versions: { schema: { openAPIV3Schema: { properties: unknown } } }[] }
    expect(spec.versions[0]!.schema.openAPIV3Schema.properties).toEqual({ spec: schema })
  })

  it('gives all pages of a list, each object with its kind, picked and within a limit', async () => {
    const names = Array.from({ length: 13 }, (_, index) => `page-${String(index).padStart(2, '0')}`)
    await Promise.all(names.map((name) => client.apply(maps, map(name, {}, { list: 'pages' }))))
    const options = { namespace: 'default', labelSelector: 'list=pages' }
    const listed = await client.list(maps, options)
    expect(listed.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata.name])).toEqual(
      names.map((name) => ['v1', 'ConfigMap', name]),
    )
    expect(listed[0]!.metadata).not.toHaveProperty('managedFields')
    const pick = ({ apiVersion, kind, metadata: { name } }: KubernetesObject) => ({
      ...{ apiVersion, kind, metadata: { name } },
    })
    expect(await client.list(maps, { ...options, pick })).toContainEqual(pick(map('page-07')))
    const one = await client.list(maps, { fieldSelector: 'metadata.name=page-03' })
    expect(one).toHaveLength(1)
  })

  it('is listed anew when it has forgotten the first page', async () => {
    const options = { namespace: 'default', labelSelector: 'list=pages' }
    let picked = 0
    const listed = await client.list(maps, {
      ...options,
      pick(object) {
        picked += 1
        if (picked === 1) api.compact()
        return object
      },
    })
    expect(listed).toHaveLength(13)
    // A page of five, and then all.
    expect(picked).toBe(18)
  })

  it('is followed by a watch, also when it is killed and comes back', async () => {
    const { seen, current, problem } = watchMaps('list=watch')
    expect(current()).toBeUndefined()
    await until(() => seen.length === 1)
    expect(seen).toEqual([[]])
    await client.apply(maps, map('first', {}, { list: 'watch' }))
    await until(() => seen.at(-1)?.join() === 'first')
    await client.apply(maps, map('first', { a: '1' }, { list: 'watch' }))
    await until(() => current()?.[0]?.data !== undefined)

    await api.kill()
    await until(() => problem() !== undefined)
    expect(problem()).toMatch(/cannot be reached|ended/)
    expect(current()).toHaveLength(1)
    await api.start()
    await client.apply(maps, map('second', {}, { list: 'watch' }))
    await client.remove(maps, { name: 'first', namespace: 'default' })
    await until(() => seen.at(-1)?.join() === 'second')
    expect(problem()).toBeUndefined()
  })

  it('is listed anew when it has forgotten where a watch continues', async () => {
    const { seen, current, problem } = watchMaps('list=gone')
    await client.apply(maps, map('stays', {}, { list: 'gone' }))
    await client.apply(maps, map('goes', {}, { list: 'gone' }))
    await until(() => seen.at(-1)?.length === 2)
    await api.kill()
    // What happens meanwhile is forgotten before the watch comes back.
    api.etcdctl('del', '/registry/configmaps/default/goes')
    api.compact()
    await api.start()
    await until(() => current()?.length === 1 && problem() === undefined)
    expect(current()![0]!.metadata.name).toBe('stays')
  })

  it('is refused where its certificate is not of the authority of the kubeconfig; a new kubeconfig is read', async () => {
    const text = await readFile(api.kubeconfig, 'utf8')
    let kubeconfig = text
    let readings = 0
    const other = createKubernetesClient({
      kubeconfig: () => {
        readings += 1
        return Promise.resolve(kubeconfig)
      },
    })
    const seen: number[] = []
    const watched = other.watch(maps, {
      ...{ namespace: 'default', labelSelector: 'list=renewed', signal: ended.signal },
      onChange: () => seen.push(watched.current()?.length ?? -1),
    })
    await until(() => seen.length === 1)
    expect(readings).toBe(1)
    await api.kill()
    await api.renewCertificates()
    await api.start()
    await expect(other.version()).rejects.toMatchObject({
      status: 0,
      reason: 'Unreachable',
      message: expect.stringMatching(/cannot be reached: .*(certificate|signature)/),
    })
    expect(await other.isReady()).toBe(false)

    // As long as the server's own certificate is known, a client certificate of before is 401.
    const field = (from: string, name: string) => new RegExp(`${name}: .*`).exec(from)![0]
    const renewed = await readFile(api.kubeconfig, 'utf8')
    kubeconfig = text.replace(
      field(text, 'certificate-authority-data'),
      field(renewed, 'certificate-authority-data'),
    )
    await expect(other.version()).rejects.toMatchObject({
      ...{ status: 401, reason: 'Unauthorized' },
      message: 'the API server refuses the certificate of the kubeconfig: Unauthorized',
    })
    kubeconfig = renewed
    expect(await other.version()).toBe('v1.34.4')
    expect(await client.version()).toBe('v1.34.4')
    await client.apply(maps, map('renewed', {}, { list: 'renewed' }))
    await until(() => seen.at(-1) === 1)
    other.close()
  })
})
