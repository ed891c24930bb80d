import { bootClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { clusterClient } from '../test/e2e/cluster/cluster-client.ts'
import { makePackage } from '../test/e2e/host/package.ts'
import { hasKit, noKit } from '../test/support/kubernetes-kit.ts'
import { measureCreation } from './cluster-creation.ts'
import { measureImagePulls } from './cluster-images.ts'
import { measureRest, readMemoryAtRest } from './cluster-rest.ts'
import type { Measure } from './figure.ts'

/** A cluster in a booted host with the package of this checkout. */
export const measureCluster: Measure = async ({ isQuick, say }) => {
  if (!hasKit) return [{ name: 'cluster', value: undefined, unit: '', note: noKit }]
  const times = isQuick ? { settleMs: 20_000, measureMs: 60_000 } : { settleMs: 90_000, measureMs: 300_000 }
  process.env.ARCHITECTURES ??= 'amd64'
  say('cluster: booting a host')
  const plant = await bootClusterHost({ deb: await makePackage() })
  try {
    const cluster = clusterClient(plant)
    const withoutMiB = await readMemoryAtRest(plant, times)
    say('cluster: creating it')
    const creation = await measureCreation(plant, cluster)
    const images = await measureImagePulls(plant, { rounds: isQuick ? 2 : 5, say })
    say('cluster: at rest')
    return [...creation, ...images, ...(await measureRest(plant, cluster, times, withoutMiB))]
  } finally {
    await plant.host.unplug()
  }
}
