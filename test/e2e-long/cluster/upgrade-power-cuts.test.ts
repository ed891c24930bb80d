import { beforeAll, describe, expect, it } from 'vitest'
import { clusterPath } from '../../e2e/cluster/cluster-client.ts'
import { wantVersion } from '../../e2e/cluster/cluster-host.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { bootForUpgrade, revisionsOf, storyOf } from './upgrades.ts'

const plant = bootForUpgrade()
const copies = '/var/lib/edgehostd/cluster/copies'

describe.skipIf(isKitMissing())('an upgrade of Kubernetes on a poor host', { timeout: 1_800_000 }, () => {
  beforeAll(async () => {
    await plant.cluster.kubectl('create', 'configmap', 'before')
  })
  const newest = async () => (await revisionsOf(plant.cluster))[0]![0] as number
  const outcomeOf = async (revision: number) =>
    (await revisionsOf(plant.cluster)).find(([generation]) => generation === revision)?.[2]

  /** Waits until a revision has an outcome and the cluster is Running; cuts the power once in each step. */
  async function settledWithCuts(revision: number) {
    const cut = new Set<string>()
    await plant.cluster.reach('Running', {
      timeoutMs: 1_500_000,
      async onLook({ status: { steps } }) {
        const running = steps.find(({ key, state }) => state === 'running' && !cut.has(key))
        if (!running) return
        cut.add(running.key)
        await plant.host.cutPower()
      },
    })
    return { cut, outcome: await outcomeOf(revision) }
  }

  it('without room for a copy is refused before anything is stopped', async () => {
    const { host } = plant
    const kubernetes = '/etc/kubernetes'
    await host.sh(
      `mkdir /run/small; mount -t tmpfs -o size=20m tmpfs /run/small; cp -a ${kubernetes}/. /run/small; mount --bind /run/small ${kubernetes}`,
    )
    expect(await wantVersion(plant, '1.34.4')).toMatchObject({ status: 204 })
    const revision = await newest()
    await eventually(async () => expect(await outcomeOf(revision)).toBe('rolledBack'), 300_000)
    const [refused] = (await plant.cluster.get(`${clusterPath}/revisions`)).json.items as { reason: string }[]
    expect(refused!.reason).toMatch(/the file system of \S+ has \d+ MiB free, .* make room/)
    await host.output(['umount', '--lazy', kubernetes, '/run/small'])
    expect((await plant.cluster.reach('Running')).status.k8sVersion).toBe('1.33.13')
    await expectWorks(plant, plant.cluster)
  })

  it('comes to its end with a power cut in each of its steps', async () => {
    expect(await wantVersion(plant, '1.34.4')).toMatchObject({ status: 204 })
    const { cut, outcome } = await settledWithCuts(await newest())
    process.stdout.write(`power cuts in ${[...cut].join(', ')}: ${outcome}\n`)
    for (const key of ['kubernetes-copy', 'kubernetes-upgrade']) expect([...cut]).toContain(key)
    expect(outcome, await storyOf(plant.cluster)).toBe('good')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.34.4')
    expect(await plant.cluster.kubectl('get', 'configmap', 'before', '--output=name')).toContain('before')
    await expectWorks(plant, plant.cluster)
  })

  it('is gone back from by hand with a power cut in the restoration', async () => {
    const { host, token } = plant
    const body = { revision: 1, discardChanges: true }
    const accepted = await host.http('POST', `${clusterPath}/rollback`, { token, body, timeoutMs: 120_000 })
    expect(accepted, accepted.text || accepted.failure).toMatchObject({ status: 204 })
    const { cut, outcome } = await settledWithCuts(await newest())
    process.stdout.write(`power cuts in ${[...cut].join(', ')}: ${outcome}\n`)
    expect([...cut]).toContain('kubernetes-restore')
    expect(outcome, await storyOf(plant.cluster)).toBe('good')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.33.13')
    expect(await plant.cluster.kubectl('get', 'configmap', 'before', '--output=name')).toContain('before')
    await expectWorks(plant, plant.cluster)
  })

  it('that breaks while its copy is damaged is an Error that says so, and runs when the copy is whole', async () => {
    const { host } = plant
    const definition = { apiArguments: { 'no-such-argument': 'true' } }
    expect(await wantVersion(plant, '1.34.4', { definition })).toMatchObject({
      status: 204,
    })
    await eventually(async () => {
      const steps = (await plant.cluster.details())?.status.steps ?? []
      expect(steps.find(({ key }) => key === 'kubernetes-upgrade')?.state).toBe('running')
    }, 300_000)
    const revision = await newest()
    const [db] = (
      await host.output(['find', `${copies}/${revision}/files/var/lib/etcd`, '-name', 'db'])
    ).split('\n')
    const overwrite = (byte: string) => host.sh(`printf '${byte}' | dd of=${db} bs=1 seek=4096 conv=notrunc`)
    const whole = await host.output(['od', '-An', '-to1', '-j4096', '-N1', db!])
    await overwrite(whole.trim() === '377' ? '\\000' : '\\377')
    await eventually(async () => {
      const status = (await plant.cluster.details())?.status
      expect(status?.clusterStateReason).toMatch(/RollbackFailed: .* damaged: .*db has another content/)
      expect(status?.phase).toBe('Failed')
    }, 900_000)
    expect((await plant.cluster.ownEvents()).map(({ reason }) => reason)).toContain('RollbackFailed')
    await overwrite(`\\${whole.trim()}`)
    await eventually(async () => expect(await outcomeOf(revision)).toBe('rolledBack'), 600_000)
    await plant.cluster.reach('Running')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.33.13')
    expect(await plant.cluster.kubectl('get', 'configmap', 'before', '--output=name')).toContain('before')
    await expectWorks(plant, plant.cluster)
  })
})
