import { describe, expect, it } from 'vitest'
import type { HostActions } from '../../../src/power/schemas.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { bootForTests } from './boot-for-tests.ts'
import { expectWorks } from './workload.ts'

const plant = bootForTests({ isRunning: true })
const path = '/v1/edge-mgmt/edgehosts/current/actions'

// Each instance appends to a file of the host when it gets SIGTERM, and three seconds later: one that is killed meanwhile lacks the second line.
const writer = `apiVersion: apps/v1
kind: Deployment
metadata: {name: writer, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: writer}}
  template:
    metadata: {labels: {app: writer}}
    spec:
      containers:
      - name: writer
        image: docker.io/library/busybox:1
        imagePullPolicy: IfNotPresent
        command: [sh, -c, 'trap "echo begin >> /out/lines; sleep 3; echo end >> /out/lines; sync; exit 0" TERM; while true; do sleep 0.2; done']
        volumeMounts: [{name: out, mountPath: /out}]
      volumes: [{name: out, hostPath: {path: /var/lib/writer, type: DirectoryOrCreate}}]
`
const lines = () => plant.host.output(['cat', '/var/lib/writer/lines'])
const writers = async () => {
  const shown = await plant.cluster.kubectl(
    'get',
    'pods',
    '-l',
    'app=writer',
    '-o',
    'jsonpath={.items[*].status.phase}',
  )
  return shown.trim()
}
const locks = () => plant.host.output(['systemd-inhibit', '--list', '--no-legend', '--no-pager'])

async function reboot(message: string): Promise<HostActions> {
  await plant.host.rebootBy(async () => {
    const reply = await plant.host.http('POST', `${path}/reboot?message=${message}`, { token: plant.token })
    expect(reply, reply.text).toMatchObject({ status: 202 })
  })
  await eventually(() => plant.logInAgain(), 60_000)
  await plant.cluster.expectHealthy(240_000)
  await expectWorks(plant, plant.cluster, 120_000)
  return (await plant.cluster.get(path)).json as HostActions
}

describe.skipIf(isKitMissing())('a reboot of a host with a cluster', () => {
  it('with logind the kubelet ends the pods: each has its time, and the workloads answer again', async () => {
    await eventually(async () => expect(await locks()).toMatch(/^kubelet\s.*shutdown.*delay/m), 60_000)
    await plant.host.write('/root/writer.yaml', writer)
    await plant.cluster.kubectl('apply', '-f', '/root/writer.yaml')
    await eventually(async () => expect(await writers()).toBe('Running'), 60_000)
    const { boot } = await reboot('with-logind')
    expect(await lines()).toBe('begin\nend\n')
    expect(boot?.message).toBe(
      `this host is back after ${boot?.backAfterSeconds} s: reboot by chief: with-logind`,
    )
    const reasons = (await plant.cluster.ownEvents()).map(({ reason }) => reason)
    expect(reasons).toContain('HostStopping')
    expect(reasons).toContain('HostBack')
    // What the kubelet has ended is not listed as failed for ever.
    await eventually(async () => expect(await writers()).toBe('Running'), 120_000)
    const failed = await plant.cluster.kubectl(
      ...['get', 'pods', '-A', '--field-selector=status.phase=Failed', '-o', 'name'],
    )
    expect(failed.trim()).toBe('')
  })

  it('without logind the node is drained before, and admits pods again', async () => {
    await plant.host.output(['systemctl', 'mask', '--now', 'systemd-logind.service'])
    await plant.host.output(['systemctl', 'restart', 'kubelet'])
    await plant.cluster.expectHealthy(120_000)
    await plant.host.output(['truncate', '--size=0', '/var/lib/writer/lines'])
    await reboot('without-logind')
    expect(await lines()).toBe('begin\nend\n')
    await eventually(async () => {
      const node = await plant.cluster.kubectl(
        'get',
        'nodes',
        '-o',
        'jsonpath={.items[0].spec.unschedulable}',
      )
      expect(node.trim()).toBe('')
      expect(await writers()).toBe('Running')
    }, 120_000)
  })

  it('a reset deletes the cluster too, over a kill of the daemon, and the host is as before', async () => {
    const body = { hostName: (await plant.host.output(['hostname'])).trim() }
    const reply = await plant.host.http('POST', `${path}/reset`, { token: plant.token, body })
    expect(reply, reply.text).toMatchObject({ status: 202 })
    await eventually(() => plant.logInAgain())
    await eventually(async () => {
      const { json } = await plant.cluster.get(path)
      expect((json as HostActions).reset?.phase).toBe('cluster')
      expect((await plant.cluster.details())?.status.clusterState).toBe('Deleting')
    }, 30_000)
    await plant.host.output(['systemctl', 'kill', '--signal=KILL', 'edgehostd'])
    await eventually(async () => {
      await plant.logInAgain()
      const { json } = await plant.cluster.get(path)
      expect((json as HostActions).reset).toHaveProperty('endTimestamp')
    }, 240_000)
    await eventually(() => plant.logInAgain())
    expect(await plant.cluster.details()).toBeUndefined()
    const bundles = await plant.cluster.get('/v1/edge-mgmt/content/bundles')
    expect(bundles.json.items).toEqual([])
    // What the kubelet has written for logind is gone too.
    const { exitCode } = await plant.host.run(['test', '-e', '/etc/systemd/logind.conf.d/99-kubelet.conf'])
    expect(exitCode).toBe(1)
  })
})
