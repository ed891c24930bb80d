import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PreflightProblem } from '../../../src/cluster/desired/preflight-codes.ts'
import { hasKit, isKitMissing } from '../../support/kubernetes-kit.ts'
import { createDisk, type Disk } from '../power/disk.ts'
import { bootForTests } from './boot-for-tests.ts'
import type { ClusterClient } from './cluster-client.ts'
import { uploadContent, uploadDefinition } from './cluster-host.ts'
import { plantVariables } from './plant-definition.ts'
import { expectWorks } from './workload.ts'

let disk: Disk | undefined
beforeAll(async () => {
  if (!hasKit) return
  disk = await createDisk(4_000)
  await disk.mount('ordered')
})
afterAll(() => disk?.remove())
const plant = bootForTests(() => ({
  nspawn: [`--bind=${disk!.folder}:/var/lib/edgehostd`],
  content: { withoutImages: /^(etcd|busybox)/, withoutPrograms: ['kubelet'] },
}))

/** The problems of a creation that has to be refused. */
async function refused(...args: Parameters<ClusterClient['post']>): Promise<readonly PreflightProblem[]> {
  const reply = await plant.cluster.post(...args)
  expect(reply, reply.text).toMatchObject({ status: 400, json: { code: 'PreflightFailed' } })
  expect(await plant.cluster.details()).toBeUndefined()
  const { problems } = reply.json.details as { problems: PreflightProblem[] }
  return problems.filter(({ severity }) => severity === 'error')
}

describe.skipIf(isKitMissing())('what hinders a cluster is in the reply', () => {
  it('images and programs that the content lacks are named, with the pack that wants them', async () => {
    const problems = await refused()
    const messages = problems.map(({ message }) => message).join('\n')
    expect(messages).toContain('registry.k8s.io/etcd:')
    expect(messages).toContain('docker.io/library/busybox:1')
    expect(messages).toContain('kubelet')
    expect(problems.find(({ message }) => message.includes('busybox'))?.pack).toMatch(/greeting|web/)
  })

  it('with the whole content, a variable without a value and a port that is taken are found at once', async () => {
    await uploadContent(plant.host, plant.token, plant.kit)
    await plant.host.sh(
      'systemd-run --quiet --unit=taken socat TCP-LISTEN:6443,fork -; until ss -Hltn | grep -q :6443; do :; done',
    )
    try {
      const problems = await refused({ variables: plantVariables.slice(0, 1) })
      const messages = problems.map(({ message }) => message).join('\n')
      expect(messages).toMatch(/token/)
      expect(messages).toMatch(/6443/)
      expect(problems).toHaveLength(2)
    } finally {
      await plant.host.output(['systemctl', 'stop', 'taken'])
    }
  })

  it('a chart that cannot be rendered is named with the error of helm', async () => {
    const definition = await uploadDefinition(plant.host, plant.token, plant.kit, {
      version: '1.0.1',
      webTemplate: '{{ required "webs need a colour" .Values.colour }}\n',
    })
    const problems = await refused({ definition })
    expect(problems).toHaveLength(1)
    expect(problems[0]!.pack).toMatch(/web/)
    expect(problems[0]!.message).toContain('webs need a colour')
  })

  it('a chart that the API server refuses fails with its reason; the other packs are installed', async () => {
    const definition = await uploadDefinition(plant.host, plant.token, plant.kit, {
      version: '1.0.2',
      webTemplate:
        'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: 192.0.2.1, ports: [{port: 80}]}\n',
    })
    await plant.cluster.create({ definition })
    const { status } = await plant.cluster.reach('Failed')
    expect(status.clusterState).toBe('Error')
    expect(status.clusterStateReason).toMatch(/web/)
    expect(status.clusterStateReason).toMatch(/192\.0\.2\.1/)
    expect(await plant.cluster.kubectl('-n', 'greeting', 'get', 'deployment', 'hello')).toContain('1/1')
    await plant.cluster.remove()
  })

  it('a disk that becomes full while the images are pulled is the reason; with space again the cluster runs', async () => {
    const definition = await uploadDefinition(plant.host, plant.token, plant.kit, { version: '1.0.3' })
    await plant.cluster.create({ definition })
    // All but what the database needs.
    await plant.host.sh(
      'free=$(df --output=avail -B1M /var/lib/edgehostd | tail -n 1); fallocate -l $((free - 200))M /var/lib/edgehostd/filler',
    )
    const { status } = await plant.cluster.reach('Failed')
    expect(status.clusterStateReason).toMatch(/no space left|disk is full/i)
    await plant.host.output(['rm', '/var/lib/edgehostd/filler'])
    await plant.cluster.reach('Running')
    await expectWorks(plant, plant.cluster)
  })

  it('the bundle that alone has programs and images of the running cluster is not deleted', async () => {
    const { token } = plant
    const path = '/v1/edge-mgmt/content/bundles'
    const listed = await plant.host.http('GET', path, { token })
    const [whole] = listed.json.items as { uid: string; holders: string[] }[]
    expect(whole?.holders).toEqual(['the cluster of this host'])
    expect(await plant.host.http('DELETE', `${path}/${whole!.uid}`, { token })).toMatchObject({
      status: 409,
      json: { code: 'ContentInUse' },
    })
  })
})
