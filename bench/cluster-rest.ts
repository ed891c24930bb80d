import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import { countVerbs, readRequests, startAudit } from './cluster-audit.ts'
import type { Figure } from './figure.ts'
import { single } from './numbers.ts'
import { parseCpuMs, parseRssMiB } from './usage.ts'

export interface RestTimes {
  /** After a start, before the daemon is at rest. */
  readonly settleMs: number
  readonly measureMs: number
}

/** Starts the daemon anew. @returns its resident memory at rest, MiB */
export async function readMemoryAtRest({ host }: ClusterHost, { settleMs }: RestTimes): Promise<number> {
  await host.output(['systemctl', 'restart', 'edgehostd'])
  await sleep(settleMs)
  return parseRssMiB(await host.read(`/proc/${await host.mainPid()}/status`))
}

/** What a Running cluster costs the daemon at rest. @param withoutMiB its memory at rest before there was a cluster */
export async function measureRest(
  plant: ClusterHost,
  cluster: ClusterClient,
  times: RestTimes,
  withoutMiB: number,
): Promise<Figure[]> {
  const { host } = plant
  await startAudit(plant, cluster)
  await eventually(async () => {
    const details = await cluster.details()
    if (details?.status.health.status === 'Healthy') return
    await sleep(1_000)
    throw new Error('the cluster is not healthy')
  }, 180_000)
  const memory = await readMemoryAtRest(plant, times)
  const pid = await host.mainPid()
  const cpuMs = async () => parseCpuMs(await host.read(`/proc/${pid}/stat`), { children: true })
  const [begun, before] = [Date.now(), await cpuMs()]
  await sleep(times.measureMs)
  const [ended, after] = [Date.now(), await cpuMs()]
  const requests = await readRequests(host, { from: begun, to: ended })
  const seconds = (ended - begun) / 1_000
  return [
    {
      name: 'cluster: idle CPU of a core',
      ...{ value: single((after - before) / (10 * seconds)), unit: '%', target: '≤ 0.5 %' },
      note: `${after - before} ms in ${Math.round(seconds)} s, children included`,
    },
    {
      name: 'cluster: idle RSS more than without',
      ...{ value: single(memory - withoutMiB), unit: 'MiB', target: '≤ 15 MiB' },
      note: `${memory.toFixed(1)} and ${withoutMiB.toFixed(1)} MiB, each ${times.settleMs / 1_000} s after a start`,
    },
    {
      name: 'cluster: requests to the API server a minute',
      ...{ value: single((requests.length * 60) / seconds), unit: '', target: '≤ 6' },
      note: countVerbs(requests),
    },
  ]
}
