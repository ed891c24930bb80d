import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { killDaemon } from '../e2e/cluster/kills.ts'
import { askWorkload } from '../e2e/cluster/workload.ts'
import { eventually } from '../e2e/host/eventually.ts'
import { output } from '../e2e/host/process.ts'
import { isKitMissing } from '../support/kubernetes-kit.ts'
import { createRandom } from '../support/random.ts'
import { bootPlatformPlant, comesMs, type ConnectedHost, type PlatformPlant } from './platform-plant.ts'

let plant: PlatformPlant
let first: ConnectedHost
let second: ConnectedHost
let third: ConnectedHost

beforeAll(async () => {
  if (isKitMissing()) return
  plant = await bootPlatformPlant(3)
  ;[first, second, third] = plant.hosts as [ConnectedHost, ConnectedHost, ConnectedHost]
})
afterAll(() => (plant as PlatformPlant | undefined)?.unplug())

const says = (host: ConnectedHost, words: string) =>
  eventually(async () => expect(await askWorkload(host)).toBe(words), comesMs)
const random = createRandom(1207)

/** How much of a definition the second host has. */
async function receivedBytes(): Promise<number> {
  const shown = await second.host.output(['edgehostctl', 'platform', 'status', '-o', 'json'])
  const { wanted } = JSON.parse(shown) as { wanted?: { download?: { receivedBytes: number } } }
  return wanted?.download?.receivedBytes ?? 0
}

/** What may happen while a host does what the platform wants. */
const mishaps: Readonly<Record<string, () => Promise<unknown>>> = {
  'the host is killed': () => killDaemon(first.host),
  async 'the platform is killed'() {
    await plant.platform.sh('kill -KILL "$1"', await plant.platform.property('MainPID'))
  },
  async 'the network is cut'() {
    await plant.setWire(false)
    await sleep(random.below(30_000))
    await plant.setWire(true)
  },
}

/** One of them at a random moment of the next minute and a half: the heartbeat, the download, the change. */
async function mishap(): Promise<string> {
  const waitMs = random.below(90_000)
  await sleep(waitMs)
  const names = Object.keys(mishaps)
  const name = names[random.below(names.length)]!
  await mishaps[name]!()
  return `${name} after ${waitMs} ms`
}

describe.skipIf(isKitMissing())('clusters of the platform', () => {
  let uid: string
  let secondUid: string
  let thirdUid: string

  it('of one profile with different values on three hosts come', async () => {
    uid = await plant.create(first, 'line-1', 'good morning')
    secondUid = await plant.create(second, 'line-2', 'bon jour')
    thirdUid = await plant.create(third, 'line-3', 'buenos dias')
    await plant.untilWanted(uid, 'Applied')
    await plant.untilWanted(secondUid, 'Applied')
    await plant.untilWanted(thirdUid, 'Applied')
    await says(first, 'good morning')
    await says(second, 'bon jour')
    await says(third, 'buenos dias')
  }, 2_700_000)

  it.each(Array.from({ length: 20 }, (_, at) => at + 1))(
    'come where they are wanted through mishap %i of 20',
    async (at) => {
      const greeting = `greeting ${at}`
      // Each seventh time the cluster is deleted, and made again.
      if (at % 7 === 0) {
        await plant.ask('DELETE', `/v1/spectroclusters/${uid}`)
        process.stdout.write(`deletion: ${await mishap()}\n`)
        await plant.untilForgotten(uid)
        uid = await eventually(() => plant.create(first, 'line-1', greeting), 30_000)
      } else {
        const variables = [{ name: 'greeting', value: greeting }]
        const path = `/v1/spectroclusters/${uid}/variables`
        await eventually(
          () => plant.ask('PATCH', path, [{ profileUid: plant.profileUid, variables }]),
          30_000,
        )
        process.stdout.write(`change: ${await mishap()}\n`)
      }
      await eventually(async () => {
        const cluster = await plant.shown(uid)
        expect(cluster.status.conditions).toContainEqual(
          expect.objectContaining({
            ...{ type: 'Wanted', reason: 'Applied', observedGeneration: cluster.spec.number },
          }),
        )
      }, comesMs)
      await says(first, greeting)
    },
    1_300_000,
  )

  it('come with a definition of 500 MB through ten cuts', async () => {
    const { platform, profileUid } = plant
    // A pack may have files that nothing of it names; a large one has to have the name of an archive.
    const described = { name: 'large', version: '1.0.0', layer: 'addon', cloudTypes: ['edge-native'] }
    await platform.sh(
      'mkdir -p /root/large/assets; head -c 500000000 /dev/urandom > /root/large/assets/noise.tgz',
    )
    await platform.write('/root/large/pack.json', JSON.stringify(described))
    await platform.write('/root/large/values.yaml', 'pack: {namespace: large}\n')
    await platform.output(['edgeplatformctl', 'pack', 'upload', '/root/large'], { timeoutMs: 300_000 })
    const exported = await platform.output(['edgeplatformctl', 'profile', 'export', profileUid])
    const profile = JSON.parse(exported) as { spec: { version: string; template: { packs: object[] } } }
    profile.spec.version = '2.0.0'
    const layer = { layer: 'addon', tag: '1.0.0', type: 'spectro', values: 'pack: {namespace: large}\n' }
    profile.spec.template.packs.push({ name: 'large', ...layer })
    await platform.write('/root/large.json', JSON.stringify(profile))
    const uidOfLarge = await platform.output(['edgeplatformctl', 'profile', 'import', '/root/large.json'])
    // 20 MB in a second, so that it lasts.
    await output('nsenter', [
      ...['-t', String(second.host.clientNamespace()), '-n', 'tc', 'qdisc', 'add', 'dev', 'edge0', 'root'],
      ...['tbf', 'rate', '160mbit', 'burst', '1mb', 'latency', '400ms'],
    ])
    const replacement = { uid: profileUid, replaceWithProfile: uidOfLarge.trim() }
    await plant.ask('PUT', `/v1/spectroclusters/${secondUid}/profiles`, { profiles: [replacement] })
    for (let cuts = 0; cuts < 10; cuts++) {
      const atLeast = (cuts + 1) * 40_000_000
      await eventually(async () => expect(await receivedBytes()).toBeGreaterThan(atLeast), comesMs)
      plant.cutRelay()
    }
    await plant.untilWanted(secondUid, 'Applied')
    expect(await askWorkload(second)).toBe('bon jour')
  }, 1_800_000)

  it('of other hosts do not notice', async () => {
    expect(await askWorkload(second)).toBe('bon jour')
    expect((await plant.shown(secondUid)).spec.number).toBe(2)
    await plant.untilWanted(secondUid, 'Applied')
    expect(await askWorkload(third)).toBe('buenos dias')
    expect((await plant.shown(thirdUid)).spec.number).toBe(1)
    await plant.untilWanted(thirdUid, 'Applied')
  }, 1_300_000)
})
