import { describe, expect, it } from 'vitest'
import { wantVersion } from '../../e2e/cluster/cluster-host.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { clusterWire } from '../../e2e/host/ground.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { bootForUpgrade, storyOf } from './upgrades.ts'

// A host as it is found in the field: it gets another name, or another address, after its cluster was made.

const plant = bootForUpgrade()
const minutes = 60_000
const { ipv4 } = clusterWire.host

const nodeName = async () =>
  (await plant.cluster.kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).trim()
/** What root reads on the host: its network does not lead to it any more. */
const shown = async (...command: readonly string[]) =>
  (await plant.host.run(['edgehostctl', ...command])).stdout.replaceAll(/\s+/g, ' ')
const healthy = (timeoutMs: number) =>
  eventually(async () => expect(await shown('cluster', 'get')).toMatch(/Running.*Healthy/), timeoutMs)

describe.skipIf(isKitMissing())('a host with a cluster', { timeout: 30 * minutes }, () => {
  it('that is renamed and booted again keeps the name of its node', async () => {
    const node = await nodeName()
    await plant.host.sh(
      'hostname press-9; echo press-9 > /etc/hostname; echo 127.0.1.1 press-9 >> /etc/hosts',
    )
    await plant.host.reboot()
    expect((await plant.host.output(['hostname'])).trim()).toBe('press-9')
    // Its certificate names the host as it is now.
    await plant.host.trust()
    await plant.cluster.expectHealthy(5 * minutes)
    expect(await nodeName()).toBe(node)
  })

  it('that is renamed keeps the name of its node through an upgrade', async () => {
    const node = await nodeName()
    const reply = await wantVersion(plant, '1.34.4')
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
    const { status } = await plant.cluster.reach('Running', { timeoutMs: 25 * minutes })
    expect(status.k8sVersion, await storyOf(plant.cluster)).toBe('1.34.4')
    await plant.cluster.expectHealthy(5 * minutes)
    expect(await nodeName()).toBe(node)
    expect(await plant.cluster.kubectl('get', 'nodes')).toMatch(/Ready +control-plane .*v1\.34\.4/)
  })

  it('that boots with another address says which one is missing and what to do', async () => {
    await plant.host.sh(`sed -i 's#${ipv4}/16#10.77.0.7/16#' /etc/systemd/system/test-ground.service`)
    await plant.host.reboot()
    for (const command of [['cluster', 'get'], ['status']])
      await eventually(
        async () => expect(await shown(...command)).toMatch(missing('it has 10\\.77\\.0\\.7')),
        3 * minutes,
      )
  })

  it('that has none says so, and with its address again the cluster runs', async () => {
    await plant.host.sh('ip address delete 10.77.0.7/16 dev host0')
    await eventually(async () => expect(await shown('status')).toMatch(missing('it has none')), minutes)
    // As the reason says.
    await plant.host.sh(`ip address add ${ipv4}/16 dev host0`)
    await healthy(5 * minutes)
  })
})

const missing = (has: string) =>
  new RegExp(
    `the address ${ipv4.replaceAll('.', '\\.')} of the node is not on this host any more \\(${has}\\); give it back: ip address add ${ipv4.replaceAll('.', '\\.')}/PREFIX dev \\w+, .*edgehostctl cluster delete`,
  )
