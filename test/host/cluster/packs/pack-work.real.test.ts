import { describe, expect, it } from 'vitest'
import { ownerValue } from '../../../../src/kubernetes/inventory.ts'
import { wantedPack } from '../../../support/cluster-parts.ts'
import { isKitMissing } from '../../../support/kubernetes-kit.ts'
import { deployment, map, packWorld } from '../../../support/pack-world.ts'
import { waitFor } from '../../../support/wait-for.ts'

describe.skipIf(isKitMissing())('packs on a real API server', { timeout: 120_000 }, () => {
  const { createCluster, kubectl, read, names, until, podsReady } = packWorld()

  it('are applied step by step: namespaces with labels, a chart, manifests; then they are available', async () => {
    const shop = await createCluster('shop')
    shop.change({
      charts: [await shop.chart({ replicas: 0, text: 'hello' })],
      manifests: [await shop.manifest('rules', map('rules'), deployment('other', 0))],
    })
    expect(await shop.observe()).toBeUndefined()
    await shop.runAll()
    expect(await shop.observe()).toMatchObject({
      appliedDigest: 'digest of shop',
      isAvailable: true,
      message: '',
    })
    expect(await shop.steps()).toEqual([])
    expect((await read('', 'namespaces/shop'))?.metadata.labels?.team).toBe('a')
    expect((await read('shop', 'configmaps/web'))?.data?.text).toBe('hello')
    const [record] = shop.work().records()
    expect(record?.inventory.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
      'ConfigMap/rules',
      'Deployment/other',
    ])
    expect(record?.releases.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
      'ConfigMap/web',
      'Deployment/web',
    ])
    expect(shop.lines).toContain('2 objects applied')
  })

  it('wait for their workloads, and say what they wait for', async () => {
    const late = await createCluster('late')
    late.change({ manifests: [await late.manifest('web', deployment('web', 1))] })
    const steps = await late.steps()
    const running = (async () => {
      for (const step of steps) await late.run(step)
    })()
    await waitFor(
      () => expect(late.lines.join()).toContain('waits for Deployment late/web: 0 of 1 pods are available'),
      30_000,
    )
    expect(await late.observe()).toMatchObject({ appliedDigest: 'digest of late', isAvailable: false })
    expect((await late.steps()).map(({ key }) => key)).toEqual(['pack p1/late available'])
    await until(async () => (await podsReady('late')) > 0)
    await running
    expect(await late.observe()).toMatchObject({ isAvailable: true })
  })

  it('do not wait for a Job that was removed when it had ended, and fail with one that has failed', async () => {
    const jobs = await createCluster('jobs')
    const spec = { restartPolicy: 'Never', containers: [{ name: 'set-up', image: 'example.com/set-up:1' }] }
    const job = (name: string) => ({
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } },
      spec: { activeDeadlineSeconds: 1, template: { spec } },
    })
    jobs.change({ manifests: [await jobs.manifest('jobs', job('gone'), job('failed'))] })
    const steps = await jobs.steps()
    for (const step of steps.slice(0, -1)) await jobs.run(step)
    await kubectl('-n', 'jobs', 'delete', 'job', 'gone')
    // A Job that runs is as it shall be.
    await kubectl('-n', 'jobs', 'wait', '--for=condition=Failed', 'job/failed', '--timeout=30s')
    const [last] = steps.slice(-1)
    await expect(last && jobs.run(last)).rejects.toThrow(
      /^Job jobs\/failed: .*longer than specified deadline/,
    )
  })

  it('continue after a restart behind the last step that was done', async () => {
    const cut = await createCluster('cut')
    cut.change({ manifests: [await cut.manifest('web', map('one'))] })
    const [first] = await cut.steps()
    if (first) await cut.run(first)
    cut.restart()
    expect((await cut.steps()).map(({ key }) => key)).toEqual([
      'pack p1/cut manifests',
      'pack p1/cut available',
    ])
    await cut.runAll()
    cut.restart()
    expect(await cut.observe()).toMatchObject({ isAvailable: true })
  })

  it('are unhealthy when a workload goes down while the cluster runs, and healthy when it is back; also when it was deleted', async () => {
    const down = await createCluster('down')
    down.change({
      charts: [await down.chart({ replicas: 0, text: '' })],
      manifests: [await down.manifest('web', deployment('front', 1))],
    })
    const running = down.runAll()
    await until(async () => (await podsReady('down')) > 0)
    await running
    await until(async () => (await down.observe())?.isAvailable === true)
    const before = down.changes.count
    await kubectl('-n', 'down', 'delete', 'pod', '-l', 'app=front', '--wait=false')
    await until(async () => (await down.observe())?.isAvailable === false)
    expect((await down.observe())?.message).toMatch(/^Deployment down\/front: /)
    expect(down.changes.count).toBeGreaterThan(before)
    await until(async () => (await podsReady('down')) > 0)
    await until(async () => (await down.observe())?.isAvailable === true)
    await kubectl('-n', 'down', 'delete', 'deployment', 'web')
    await until(async () => (await down.observe())?.message === 'Deployment down/web is missing')
  })

  it('lose what a new version of them does not have any more', async () => {
    const changed = await createCluster('changed')
    changed.change({ manifests: [await changed.manifest('web', map('one'), map('two'))] })
    await changed.runAll()
    changed.change({ digest: 'next', manifests: [await changed.manifest('web', map('two', { a: 'b' }))] })
    await changed.runAll()
    expect(await names('changed', 'configmaps', 'edgehostd/pack')).toEqual(['two'])
    expect(await changed.observe()).toMatchObject({ appliedDigest: 'next', isAvailable: true })
  })

  it('keep the labels of a namespace that a manifest contains too', async () => {
    const both = await createCluster('both')
    const namespace = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'both', labels: { own: 'b' } },
    }
    both.change({ manifests: [await both.manifest('web', namespace, map('one'))] })
    await both.runAll()
    expect((await read('', 'namespaces/both'))?.metadata.labels).toMatchObject({ team: 'a', own: 'b' })
  })

  it('a namespace that one pack makes and another labels is the same, whichever of them is applied last', async () => {
    const shared = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shared', labels: { own: 'b' } } }
    const labels = { namespaces: [{ name: 'shared', labels: { tier: 'front' }, annotations: {} }] }
    const metadata = async () => (await read('', 'namespaces/shared'))?.metadata.labels
    const making = await createCluster('making')
    const maker = { manifests: [await making.manifest('space', shared)] }
    making.change(maker)
    making.others.push({ ...wantedPack('labelling'), ...labels })
    await making.runAll()
    const all = { own: 'b', tier: 'front', 'edgehostd/pack': ownerValue('p1/making') }
    expect(await metadata()).toMatchObject(all)

    const labelling = await createCluster('labelling', labels)
    await labelling.manifest('space', shared)
    labelling.others.push({ ...wantedPack('making'), ...maker })
    await labelling.runAll()
    expect(await metadata()).toMatchObject(all)
  })

  it('fail with the object and the words of the API server', async () => {
    const bad = await createCluster('bad')
    bad.change({ manifests: [await bad.manifest('web', map('one'), map('Not_A_Name'))] })
    await expect(bad.runAll()).rejects.toThrow(/ConfigMap bad\/Not_A_Name: .*lowercase RFC 1123 subdomain/)
    expect(await bad.observe()).toMatchObject({ appliedDigest: '', doneSteps: ['pack p1/bad namespaces'] })
  })

  it('fail when the controller of a workload has given up', async () => {
    const stuck = await createCluster('stuck')
    const given = deployment('web', 1)
    const spec = { ...given.spec, progressDeadlineSeconds: 1 }
    stuck.change({ manifests: [await stuck.manifest('web', { ...given, spec })] })
    await expect(stuck.runAll()).rejects.toThrow(/^Deployment stuck\/web: .*has timed out progressing/)
  })

  it('end their wait with its signal', async () => {
    const ending = await createCluster('ending')
    ending.change({ manifests: [await ending.manifest('web', deployment('web', 1))] })
    const steps = await ending.steps()
    for (const step of steps.slice(0, -1)) await ending.run(step)
    const stop = new AbortController()
    const [last] = steps.slice(-1)
    const waiting = last && ending.run(last, stop.signal)
    await waitFor(() => expect(ending.lines.join()).toContain('waits for'), 30_000)
    stop.abort()
    await expect(waiting).rejects.toThrow('aborted')
  })

  it('tell in events what helm waits for, and that a release was cured', async () => {
    const told = await createCluster('told')
    const eventOf = (key: string, line: string) => told.work().eventOf({ key }, line)
    const key = 'pack p1/told chart told/web'
    expect(eventOf(key, 'waits: Deployment is not ready: told/web')).toEqual({
      ...{ reason: 'StepProgress', message: 'waits: Deployment is not ready: told/web' },
    })
    expect(eventOf(key, 'cured: the release')).toEqual({ reason: 'ReleaseCured', message: 'the release' })
    expect([eventOf(key, 'at line 1'), eventOf('kubeadm-init', 'waits: x')]).toEqual([undefined, undefined])
  })

  it('are forgotten with the cluster', async () => {
    const gone = await createCluster('gone')
    gone.change({ manifests: [await gone.manifest('web', map('one'))] })
    await gone.runAll()
    gone.forget()
    expect(gone.work().records()).toEqual([])
  })
})
