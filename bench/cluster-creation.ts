import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import type { Figure } from './figure.ts'
import { single } from './numbers.ts'
import { readOwnTime, startUps, timeOf } from './own-time.ts'

/**
 * Creates a cluster, and says how much of the time from its POST to the event `Running` is the daemon's own. The POST counts whole, although
 * it starts helm and kubeadm.
 */
export async function measureCreation({ host }: ClusterHost, cluster: ClusterClient): Promise<Figure[]> {
  const from = Date.now()
  await cluster.create()
  const write = { from, to: Date.now() }
  const { status } = await cluster.reach('Running', { timeoutMs: 600_000, onLook: () => sleep(1_000) })
  const end = await timeOf(cluster, 'Running')
  const own = await readOwnTime(host, status.steps, { write, end })
  const name = 'cluster: of it without a program of a step and without a wait for Kubernetes'
  const part = (what: string, ms: number, note: string): Figure => ({
    ...{ name: `cluster: ${what}`, value: single(ms / 1_000), unit: 's', note },
  })
  return [
    part('POST to Running', end - from, `${status.steps.length} steps, ${own.programs} programs`),
    {
      ...{ name, value: single(own.total / 1_000), unit: 's', target: '≤ 2 s' },
      note: 'the sum of the next four',
    },
    part('own, until the reply to the POST', own.write, 'preparation and pre-flight'),
    part('own, between steps', own.between, 'looks, plans, records'),
    part(
      'own, within steps',
      own.within,
      'starts of units and keepers, ends of programs, work of the daemon itself',
    ),
    part(
      'own, starts of step.cjs',
      own.start,
      `${own.programs} times its start, measured ${startUps} times by itself`,
    ),
  ]
}
