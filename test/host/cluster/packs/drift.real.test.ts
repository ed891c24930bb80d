import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isKitMissing } from '../../../support/kubernetes-kit.ts'
import { deployment, map, packWorld } from '../../../support/pack-world.ts'
import { waitFor } from '../../../support/wait-for.ts'

const definition = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  metadata: { name: 'wheels.example.com' },
  spec: {
    ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'wheels', kind: 'Wheel' } },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: {
          openAPIV3Schema: {
            ...{ type: 'object' },
            properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        },
      },
    ],
  },
}

describe.skipIf(isKitMissing())('objects of packs on a real API server', { timeout: 120_000 }, () => {
  const { createCluster, kubectl, text } = packWorld()

  async function apply(object: string): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'drift-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'object.json'), object)
    await kubectl('apply', '-f', join(folder, 'object.json'))
  }

  const becomes = (read: () => Promise<string>, wanted: string, timeout = 40_000) =>
    waitFor(async () => expect(await read()).toBe(wanted), { timeout, interval: 100 })

  /** A pack that is applied, available and held. */
  async function held(name: string, objects: readonly object[]) {
    const cluster = await createCluster(name)
    cluster.change({
      charts: [await cluster.chart({ replicas: 0, text: 'of the chart' })],
      manifests: [await cluster.manifest('all', ...objects)],
    })
    await cluster.runAll()
    await cluster.observe()
    return cluster
  }

  it('come back when they are deleted by hand, those of charts as their own, and are told', async () => {
    const shop = await held('shop', [map('rules', { a: '1' }), deployment('front', 0)])
    const textOf = (name: string) => () =>
      text('-n', 'shop', 'get', 'configmap', name, '--ignore-not-found', '-o', 'jsonpath={.data}')
    // The first look at all objects finds nothing.
    await becomes(textOf('rules'), '{"a":"1"}')
    await kubectl('-n', 'shop', 'delete', 'configmap', 'rules', 'web')
    await becomes(textOf('rules'), '{"a":"1"}')
    await becomes(textOf('web'), '{"text":"of the chart"}')
    expect(
      await text('-n', 'shop', 'get', 'configmap', 'web', '-o', 'jsonpath={.metadata.annotations}'),
    ).toContain('"meta.helm.sh/release-name":"web"')
    await waitFor(
      () =>
        expect(shop.events.map(({ reason, message }) => `${reason} ${message}`).sort()).toEqual([
          'ObjectCorrected ConfigMap shop/rules: it was deleted, and is made again',
          'ObjectCorrected ConfigMap shop/web: it was deleted, and is made again',
        ]),
      20_000,
    )
    expect(shop.events[0]?.object).toEqual({ kind: 'pack', name: 'p1/shop' })
  })

  it('are put right when they are changed by hand, and fields of other managers stay', async () => {
    const rules = map('rules', { a: '1', secret: 'x' })
    const shop = await held('changed', [rules, deployment('front', 0)])
    const patch = (name: string, change: object) =>
      kubectl('-n', 'changed', 'patch', name, '--type=merge', '-p', JSON.stringify(change))
    await patch('configmap/rules', { data: { a: '2', other: 'of another' } })
    await patch('deployment/front', { spec: { replicas: 3 }, metadata: { annotations: { note: 'mine' } } })
    await patch('configmap/web', { data: { text: 'by hand' } })
    await patch('configmap/web', { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } })
    const get = (name: string, path: string) => () =>
      text('-n', 'changed', 'get', name, '-o', `jsonpath={${path}}`)
    await becomes(get('configmap/rules', '.data'), '{"a":"1","other":"of another","secret":"x"}')
    await becomes(get('deployment/front', '.spec.replicas'), '0')
    await becomes(get('configmap/web', '.data.text'), 'of the chart')
    await becomes(get('configmap/web', '.metadata.labels.app\\.kubernetes\\.io/managed-by'), 'Helm')
    expect(await get('deployment/front', '.metadata.annotations.note')()).toBe('mine')
    const messages = shop.events.map(({ message }) => message).join('\n')
    expect(messages).toContain(
      'ConfigMap changed/rules: changed by hand or by another program, and put right: data.a',
    )
    expect(messages).toContain('Deployment changed/front: changed by hand or by another program')
    expect(messages).toContain('spec.replicas')
    expect(messages).not.toContain('of another')
  })

  it('are left alone while nothing is wrong with them, and while their pack is changed', async () => {
    const calm = await held('calm', [map('rules'), deployment('front', 0)])
    const versions = () =>
      text(
        '-n',
        'calm',
        'get',
        'configmaps,deployments',
        '-o',
        'jsonpath={.items[*].metadata.resourceVersion}',
      )
    const before = await versions()
    calm.change({ digest: 'next' })
    await calm.observe()
    await kubectl('-n', 'calm', 'delete', 'configmap', 'rules')
    await calm.runAll()
    await calm.observe()
    expect(calm.events).toEqual([])
    expect((await versions()).split(' ').slice(0, 1)).toEqual(before.split(' ').slice(0, 1))
  })

  // The API server waits up to a minute for the objects of a kind that it deletes.
  it(
    'come back when the kind that they are of is deleted by hand, and they with it',
    { timeout: 240_000 },
    async () => {
      const wheel = {
        ...{ apiVersion: 'example.com/v1', kind: 'Wheel', metadata: { name: 'left' }, spec: { size: 4 } },
      }
      const kinds = await held('kinds', [definition, wheel])
      const size = () =>
        text('-n', 'kinds', 'get', 'wheels.example.com', 'left', '-o', 'jsonpath={.spec.size}').catch(
          () => '',
        )
      await becomes(size, '4')
      await kubectl('delete', 'crd', 'wheels.example.com', '--wait=false')
      const isAgain = async () => {
        // The daemon observes again and again.
        await kinds.observe()
        return String(kinds.events.some(({ message }) => message.startsWith('Wheel kinds/left: it was')))
      }
      await becomes(isAgain, 'true', 150_000)
      await becomes(size, '4')
    },
  )

  it('are not made again while the kind that they are of is being deleted, which that would hold up', async () => {
    const wheel = (name: string, metadata: object = {}) => ({
      apiVersion: 'example.com/v1',
      kind: 'Wheel',
      metadata: { name, ...metadata },
    })
    await held('ending', [definition, wheel('front'), map('rules', { a: '1' })])
    const names = () =>
      text('-n', 'ending', 'get', 'wheels.example.com', '-o', 'jsonpath={.items[*].metadata.name}')
    await apply(JSON.stringify(wheel('rear', { namespace: 'ending', finalizers: ['example.com/brake'] })))
    await kubectl('delete', 'crd', 'wheels.example.com', '--wait=false')
    await becomes(names, 'rear')
    await kubectl('-n', 'ending', 'delete', 'configmap', 'rules')
    await becomes(
      () => text('-n', 'ending', 'get', 'configmap', 'rules', '--ignore-not-found', '-o', 'jsonpath={.data}'),
      '{"a":"1"}',
    )
    expect(await names()).toBe('rear')
    const noMore = JSON.stringify({ metadata: { finalizers: null } })
    await kubectl('-n', 'ending', 'patch', 'wheels.example.com/rear', '--type=merge', '-p', noMore)
    await becomes(() => names().catch(() => ''), 'front')
  })

  it('are told once where the API server refuses to have them put right', async () => {
    const shop = await held('refused', [map('rules', { a: '1' })])
    const about = (kind: string, spec: object) =>
      JSON.stringify({
        apiVersion: 'admissionregistration.k8s.io/v1',
        ...{ kind, metadata: { name: 'no-ones' }, spec },
      })
    const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['configmaps'] }
    await kubectl('-n', 'refused', 'patch', 'configmap/rules', '--type=merge', '-p', '{"data":{"a":"2"}}')
    await apply(
      about('ValidatingAdmissionPolicy', {
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression: "object.metadata.namespace != 'refused' || object.data.a != '1'" }],
      }),
    )
    await apply(
      about('ValidatingAdmissionPolicyBinding', { policyName: 'no-ones', validationActions: ['Deny'] }),
    )
    // The policy counts a moment later, so it may be put right before.
    await waitFor(
      async () => {
        const change = ['-n', 'refused', 'patch', 'configmap/rules', '--type=merge', '-p']
        await kubectl(...change, JSON.stringify({ data: { a: '2', at: String(Date.now()) } }))
        expect(shop.events.map(({ reason }) => reason)).toContain('ObjectRefused')
      },
      { timeout: 40_000, interval: 1_500 },
    )
    const refused = shop.events.filter(({ reason }) => reason === 'ObjectRefused')
    expect(refused).toHaveLength(1)
    expect(refused[0]?.message).toMatch(
      /^ConfigMap refused\/rules is not as the pack has it, and cannot be put right: .*no-ones/,
    )
  })

  it('are not brought back while the cluster is deleted', async () => {
    const [going] = [await held('going', [map('rules')]), await held('staying', [map('rules', { a: '1' })])]
    going.hold.isHeld = false
    await going.observe()
    for (const namespace of ['going', 'staying'])
      await kubectl('-n', namespace, 'delete', 'configmap', 'rules')
    const ofOther = () => text('-n', 'staying', 'get', 'configmap', 'rules', '-o', 'jsonpath={.data.a}')
    await becomes(() => ofOther().catch(() => ''), '1')
    expect(going.events).toEqual([])
    expect(await text('-n', 'going', 'get', 'configmap', 'rules', '--ignore-not-found')).toBe('')
  })
})
