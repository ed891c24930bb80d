import { describe, expect, it } from 'vitest'
import { wantedPack } from '../../../support/cluster-parts.ts'
import { isKitMissing } from '../../../support/kubernetes-kit.ts'
import { deployment, map, packWorld } from '../../../support/pack-world.ts'
import { waitFor } from '../../../support/wait-for.ts'

describe.skipIf(isKitMissing())('packs on a real API server', { timeout: 120_000 }, () => {
  const { createCluster, kubectl, read, names, until, podsReady } = packWorld()

  it('that are not wanted any more leave nothing, also when that is cut off and begun again', async () => {
    const away = await createCluster('away')
    const kinds = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'tills.away.example.com' },
      spec: {
        ...{ group: 'away.example.com', scope: 'Namespaced', names: { kind: 'Till', plural: 'tills' } },
        versions: [
          {
            ...{ name: 'v1', served: true, storage: true },
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    }
    const till = { apiVersion: 'away.example.com/v1', kind: 'Till', metadata: { name: 'one' } }
    away.change({
      charts: [await away.chart({ replicas: 0, text: 'a' })],
      manifests: [await away.manifest('all', kinds, till, map('rules'), deployment('front', 1))],
    })
    const running = away.runAll()
    await until(async () => (await podsReady('away')) > 0)
    await running
    away.drop()
    const all = await away.removeSteps()
    expect(all.map(({ key }) => key)).toEqual([
      ...['pack p1/away objects gone', 'pack p1/away release away/web gone', 'pack p1/away gone'],
    ])
    for (const step of all.slice(0, 2)) {
      await away.run(step)
      // What was done may have been cut off behind its end.
      await away.run(step)
      away.restart()
    }
    expect(await names('away', 'configmaps')).toEqual(['kube-root-ca.crt'])
    for (const kind of ['secrets', 'deployments']) expect(await names('away', kind)).toEqual([])
    expect(await read('', 'customresourcedefinitions/tills.away.example.com')).toBeDefined()
    for (const step of await away.removeSteps()) await away.run(step)
    expect(away.work().records()).toEqual([])
    expect(await names('', 'customresourcedefinitions', 'edgehostd/pack')).toEqual([])
    await until(async () => (await read('', 'namespaces/away')) === undefined)
  })

  it('that are not wanted any more leave a namespace of others, one that is not empty, and what another pack has', async () => {
    await kubectl('create', 'namespace', 'theirs')
    const shared = await createCluster('shared', {
      namespaces: ['shared', 'theirs', 'both-have'].map((name) => ({ name, labels: {}, annotations: {} })),
    })
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'plain' } }
    shared.change({
      charts: [await shared.chart({ replicas: 0, text: 'a' })],
      manifests: [await shared.manifest('all', map('mine'), map('ours'), namespace)],
    })
    await shared.runAll()
    await kubectl('-n', 'shared', 'create', 'configmap', 'of-an-operator')
    shared.others.push({
      ...wantedPack('other'),
      charts: [await shared.chart({ replicas: 0, text: 'a' })],
      manifests: [{ ...(await shared.manifest('other', map('ours'))), namespace: 'shared' }],
      namespaces: [{ name: 'both-have', labels: {}, annotations: {} }],
    })
    shared.drop()
    for (const step of await shared.removeSteps()) await shared.run(step)
    expect(shared.work().records()).toEqual([])
    expect(await names('shared', 'configmaps')).toEqual(['kube-root-ca.crt', 'of-an-operator', 'ours', 'web'])
    await until(async () => (await read('', 'namespaces/plain')) === undefined)
    for (const name of ['shared', 'theirs', 'both-have'])
      expect((await read('', `namespaces/${name}`))?.status?.phase).toBe('Active')
  })

  it('are not said to lose objects that another pack has, as after a change of the uid of their profile', async () => {
    const moved = await createCluster('moved')
    moved.change({ manifests: [await moved.manifest('all', map('stays'))] })
    await moved.runAll()
    const again = { ...(await moved.manifest('again', map('stays'))), namespace: 'moved' }
    moved.others.push({ ...wantedPack('next'), manifests: [again] })
    moved.drop()
    const steps = await moved.removeSteps()
    expect(steps.map(({ key }) => key)).toEqual(['pack p1/moved gone'])
    for (const step of steps) await moved.run(step)
    expect(await names('moved', 'configmaps')).toContain('stays')
  })

  it('say what keeps an object that is being deleted', async () => {
    const held = await createCluster('held')
    const finalized = { ...map('stays'), metadata: { name: 'stays', finalizers: ['example.com/keeper'] } }
    held.change({ manifests: [await held.manifest('all', finalized)] })
    await held.runAll()
    held.drop()
    const [first] = await held.removeSteps()
    const removal = first && held.run(first)
    await waitFor(
      () =>
        expect(held.lines.join()).toContain(
          'ConfigMap held/stays: it is still being deleted; its finalizers hold it: example.com/keeper',
        ),
      30_000,
    )
    await kubectl('-n', 'held', 'patch', 'configmap', 'stays', '-p', '{"metadata":{"finalizers":null}}')
    await removal
  })

  it('lose a release and all objects that their new version does not have, and keep the rest as it is', async () => {
    const less = await createCluster('less')
    const other = await createCluster('beside')
    const chart = await less.chart({ replicas: 0, text: 'a' })
    less.change({
      charts: [chart, { ...chart, release: 'old' }],
      manifests: [await less.manifest('m', map('m'))],
    })
    other.change({ manifests: [await other.manifest('m', map('one'), deployment('two', 0))] })
    await less.runAll()
    await other.runAll()
    const versions = async () => {
      const found = [await read('beside', 'configmaps/one'), await read('beside', 'deployments/two')]
      return found.map((each) => each?.metadata.resourceVersion)
    }
    const before = await versions()
    expect(before).not.toContain(undefined)
    less.change({ digest: 'next', charts: [chart], manifests: [] })
    await less.runAll()
    expect(await names('less', 'configmaps')).toEqual(['kube-root-ca.crt', 'web'])
    expect(less.work().records()[0]).toMatchObject({ charts: ['less/web'], inventory: [] })
    expect(await versions()).toEqual(before)
    expect(await less.steps()).toEqual([])
  })

  it('are applied again where it is in doubt what is there, and nothing of them is forgotten', async () => {
    const doubted = await createCluster('doubted')
    doubted.change({ manifests: [await doubted.manifest('m', map('m'))] })
    await doubted.runAll()
    doubted.work().doubt()
    expect(await doubted.observe()).toMatchObject({ appliedDigest: '', hasObjects: true })
    await kubectl('-n', 'doubted', 'delete', 'configmap', 'm')
    await doubted.runAll()
    expect(await read('doubted', 'configmaps/m')).toBeDefined()
  })
})
