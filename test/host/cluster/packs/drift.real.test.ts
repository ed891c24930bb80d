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
  const { createCluster, kubectl, read, names } = packWorld()

  async function apply(object: string): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'drift-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'object.json'), object)
    await kubectl('apply', '-f', join(folder, 'object.json'))
  }

  const becomes = (look: () => Promise<unknown>, wanted: unknown, timeout = 40_000) =>
    waitFor(async () => expect(await look()).toEqual(wanted), { timeout, interval: 100 })

  /** A pack that is applied, available and held. @param hasChart whether it has a chart too: helm takes longer than all the rest */
  async function held(name: string, objects: readonly object[], { hasChart = false } = {}) {
    const cluster = await createCluster(name)
    cluster.change({
      charts: hasChart ? [await cluster.chart({ replicas: 0, text: 'of the chart' })] : [],
      manifests: [await cluster.manifest('all', ...objects)],
    })
    await cluster.runAll()
    await cluster.observe()
    return cluster
  }

  it('come back when they are deleted by hand, those of charts as their own, and are told', async () => {
    const shop = await held('shop', [map('rules', { a: '1' }), deployment('front', 0)], { hasChart: true })
    const dataOf = (name: string) => async () => (await read('shop', `configmaps/${name}`))?.data
    // The first look at all objects finds nothing.
    await becomes(dataOf('rules'), { a: '1' })
    await kubectl('-n', 'shop', 'delete', 'configmap', 'rules', 'web')
    await becomes(dataOf('rules'), { a: '1' })
    await becomes(dataOf('web'), { text: 'of the chart' })
    expect((await read('shop', 'configmaps/web'))?.metadata.annotations).toMatchObject({
      'meta.helm.sh/release-name': 'web',
    })
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
    const shop = await held('changed', [rules, deployment('front', 0)], { hasChart: true })
    const patch = (name: string, change: object) =>
      kubectl('-n', 'changed', 'patch', name, '--type=merge', '-p', JSON.stringify(change))
    await patch('configmap/rules', { data: { a: '2', other: 'of another' } })
    await patch('deployment/front', { spec: { replicas: 3 }, metadata: { annotations: { note: 'mine' } } })
    await patch('configmap/web', { data: { text: 'by hand' } })
    await patch('configmap/web', { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } })
    const get = (name: string) => read('changed', name)
    const data = { a: '1', other: 'of another', secret: 'x' }
    await becomes(async () => (await get('configmaps/rules'))?.data, data)
    await becomes(async () => (await get('deployments/front'))?.spec?.replicas, 0)
    await becomes(async () => (await get('configmaps/web'))?.data?.text, 'of the chart')
    const manager = 'app.kubernetes.io/managed-by'
    await becomes(async () => (await get('configmaps/web'))?.metadata.labels?.[manager], 'Helm')
    expect((await get('deployments/front'))?.metadata.annotations?.note).toBe('mine')
    const messages = shop.events.map(({ message }) => message).join('\n')
    expect(messages).toContain(
      'ConfigMap changed/rules: changed by hand or by another program, and put right: data.a',
    )
    expect(messages).toContain('Deployment changed/front: changed by hand or by another program')
    expect(messages).toContain('spec.replicas')
    expect(messages).not.toContain('of another')
  })

  it('are left alone while nothing is wrong with them, and while their pack is changed', async () => {
    const calm = await held('calm', [map('rules'), deployment('front', 0)], { hasChart: true })
    const other = () => read('calm', 'configmaps/kube-root-ca.crt')
    const before = await other()
    calm.change({ digest: 'next' })
    await calm.observe()
    await kubectl('-n', 'calm', 'delete', 'configmap', 'rules')
    await calm.runAll()
    await calm.observe()
    expect(calm.events).toEqual([])
    expect(await other()).toEqual(before)
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
      const size = async () => (await read('kinds', 'wheels/left'))?.spec?.size
      await becomes(size, 4)
      await kubectl('delete', 'crd', 'wheels.example.com', '--wait=false')
      const isAgain = async () => {
        // The daemon observes again and again.
        await kinds.observe()
        return kinds.events.some(({ message }) => message.startsWith('Wheel kinds/left: it was'))
      }
      await becomes(isAgain, true, 150_000)
      await becomes(size, 4)
    },
  )

  it('are not made again while the kind that they are of is being deleted, which that would hold up', async () => {
    const wheel = (name: string, metadata: object = {}) => ({
      apiVersion: 'example.com/v1',
      kind: 'Wheel',
      metadata: { name, ...metadata },
    })
    await held('ending', [definition, wheel('front'), map('rules', { a: '1' })])
    const wheels = () => names('ending', 'wheels')
    await apply(JSON.stringify(wheel('rear', { namespace: 'ending', finalizers: ['example.com/brake'] })))
    await kubectl('delete', 'crd', 'wheels.example.com', '--wait=false')
    await becomes(wheels, ['rear'])
    await kubectl('-n', 'ending', 'delete', 'configmap', 'rules')
    await becomes(async () => (await read('ending', 'configmaps/rules'))?.data, { a: '1' })
    expect(await wheels()).toEqual(['rear'])
    const noMore = JSON.stringify({ metadata: { finalizers: null } })
    await kubectl('-n', 'ending', 'patch', 'wheels.example.com/rear', '--type=merge', '-p', noMore)
    await becomes(wheels, ['front'])
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
    await becomes(async () => (await read('staying', 'configmaps/rules'))?.data, { a: '1' })
    expect(going.events).toEqual([])
    expect(await read('going', 'configmaps/rules')).toBeUndefined()
  })
})
