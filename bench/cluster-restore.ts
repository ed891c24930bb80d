import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import { changeVersion, type ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { clusterWrites } from '../test/e2e/cluster/cluster-writes.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import type { KitVersion } from '../test/support/kubernetes-kit.ts'
import { timesOf } from '../test/e2e-long/cluster/upgrades.ts'
import type { Figure } from './figure.ts'
import { single } from './numbers.ts'
import { timeOf } from './own-time.ts'

const pauseMs = 100
const mostMs = 1_500_000

/**
 * Breaks an upgrade by an argument that the API server does not know, and measures from the decision to restore, the event `RollbackStarted`,
 * to the first answer of the API server of before.
 */
export async function measureRestoration(
  plant: ClusterHost,
  cluster: ClusterClient,
  to: KitVersion,
): Promise<Figure[]> {
  const asking = askReady(plant.host)
  const apiArguments = { 'no-such-argument': 'true' }
  const reply = await changeVersion(plant, to, { definition: { version: '2.0.0', apiArguments } })
  if (reply.status !== 204) throw new Error(`the upgrade was refused: ${reply.text || reply.failure}`)
  await eventually(async () => {
    await sleep(1_000)
    const { outcome, reason } = await clusterWrites(plant, cluster).newest()
    if (outcome !== 'rolledBack') throw new Error(`the upgrade is ${outcome}: ${reason}`)
  }, mostMs)
  const answers = await asking.end()
  const [decidedAt, backAt] = [await timeOf(cluster, 'RollbackStarted'), await timeOf(cluster, 'RolledBack')]
  const readyAt = answers.find((at) => at >= decidedAt)
  if (readyAt === undefined) throw new Error('the API server did not answer again')
  const silentMs = decidedAt - (answers.findLast((at) => at < decidedAt) ?? Number.NaN)
  const { restoreSeconds } = await timesOf(cluster)
  const seconds = (ms: number) => (ms / 1_000).toFixed(1)
  return [
    {
      name: 'cluster: from the decision to restore until the API is ready',
      ...{ value: single((readyAt - decidedAt) / 1_000), unit: 's', target: '≤ 30 s' },
      note: `an upgrade to ${to} whose API server does not start; it was silent for ${seconds(silentMs)} s before; ${restoreSeconds} s of it in the step; Running ${seconds(backAt - decidedAt)} s after the decision`,
    },
  ]
}

/** Asks the API server whether it is ready, until its end. */
function askReady(host: ClusterHost['host']) {
  const answers: number[] = []
  const end = new AbortController()
  const url = 'https://10.77.0.1:6443/readyz'
  const asking = (async () => {
    while (!end.signal.aborted) {
      const { exitCode } = await host.run([
        'curl',
        '--silent',
        '--insecure',
        '--fail',
        '--max-time',
        '1',
        url,
      ])
      if (exitCode === 0) answers.push(Date.now())
      await sleep(pauseMs)
    }
  })()
  return {
    /** @returns when it was, milliseconds since 1970, in order */
    async end(): Promise<readonly number[]> {
      end.abort()
      await asking
      return answers
    },
  }
}
