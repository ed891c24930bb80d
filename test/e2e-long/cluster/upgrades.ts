import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll } from 'vitest'
import { bootForTests, type TestHost } from '../../e2e/cluster/boot-for-tests.ts'
import { clusterPath, type ClusterClient } from '../../e2e/cluster/cluster-client.ts'
import { uploadContent, type ClusterHost } from '../../e2e/cluster/cluster-host.ts'
import { webAddress } from '../../e2e/cluster/plant-definition.ts'
import { kit } from '../../support/kubernetes-kit.ts'

/** The host of a file of tests, with a Running cluster of 1.33 and with what an upgrade to 1.34 needs. */
export function bootForUpgrade(): TestHost {
  const plant = bootForTests({ version: '1.33.13', isRunning: true })
  beforeAll(async () => {
    const next = await kit('1.34.4')
    if (next) await uploadContent(plant.host, plant.token, next)
  })
  return plant
}

/** Asks the workload on the host every 200 ms until its end. */
export function askAllTheTime({ host }: ClusterHost) {
  let [asked, failed, isOver] = [0, 0, false]
  const asking = (async () => {
    while (!isOver) {
      const url = `http://${webAddress}/greeting`
      const { exitCode } = await host.run(['curl', '--silent', '--fail', '--max-time', '1', url])
      asked += 1
      if (exitCode !== 0) failed += 1
      await sleep(200)
    }
  })()
  return {
    async end() {
      isOver = true
      await asking
      return { asked, failed }
    },
  }
}

/** Uid and restarts of the pods of a namespace. */
export const podStarts = async (cluster: ClusterClient, namespace: string): Promise<readonly string[]> =>
  (
    await cluster.kubectl(
      ...['get', 'pods', '--namespace', namespace, '--output'],
      'jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\\n"}{end}',
    )
  )
    .trim()
    .split('\n')

/** Number, version and outcome of the revisions, the newest first. */
export async function revisionsOf(cluster: ClusterClient) {
  const { json } = await cluster.get(`${clusterPath}/revisions`)
  const items = json.items as { revision: number; kubernetesVersion: string; outcome: string }[]
  return items.map(({ revision, kubernetesVersion, outcome }) => [revision, kubernetesVersion, outcome])
}

/** What a failed test shows of its changes: the newest revision with its reason, and the events since it was begun. */
export async function storyOf(cluster: ClusterClient): Promise<string> {
  const [newest] = (await cluster.get(`${clusterPath}/revisions`)).json.items as readonly object[]
  const events = await cluster.ownEvents()
  const begun = events.findIndex(({ reason }) => reason === 'UpdateStarted')
  const lines = events
    .slice(0, begun + 1)
    .map(({ metadata, reason, message }) => `  ${metadata.creationTimestamp} ${reason}: ${message}`)
  return [JSON.stringify(newest), ...lines.reverse()].join('\n')
}

/** What the event of the last restoration says. */
export async function timesOf(cluster: ClusterClient) {
  const event = (await cluster.ownEvents()).find(({ reason }) => reason === 'KubernetesRestored')
  const [, seconds, from, to] =
    /(\d+) s after its restoration began.* between (\S+) and (\S+) is lost/.exec(event?.message ?? '') ?? []
  if (!seconds || !from || !to) throw new Error(`no restoration was told: ${event?.message}`)
  return { restoreSeconds: Number(seconds), from: Date.parse(from), to: Date.parse(to) }
}
