import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../support/kubernetes-kit.ts'
import { clusterClient, type ClusterClient } from '../e2e/cluster/cluster-client.ts'
import { changesBetween, readHostState, type HostState } from '../e2e/cluster/host-state.ts'
import { sensitiveValue } from '../e2e/cluster/plant-definition.ts'
import { askWorkload } from '../e2e/cluster/workload.ts'
import { eventually } from '../e2e/host/eventually.ts'
import { bootPlatformPlant, comesMs, type ConnectedHost, type PlatformPlant } from './platform-plant.ts'

let plant: PlatformPlant
let host: ConnectedHost
let cluster: ClusterClient
let before: HostState
let uid: string

const path = (rest: string) => `/v1/spectroclusters/${uid}${rest}`
const says = (words: string) => eventually(async () => expect(await askWorkload(host)).toBe(words), comesMs)
const setGreeting = (value: string) =>
  plant.ask('PATCH', path('/variables'), [
    { profileUid: plant.profileUid, variables: [{ name: 'greeting', value }] },
  ])

/** Imports another version of the profile, with other values of the pack `web`. @returns its uid */
async function importVersion(version: string, change: (values: string) => string): Promise<string> {
  const { platform, profileUid } = plant
  const exported = await platform.output(['edgeplatformctl', 'profile', 'export', profileUid])
  const profile = JSON.parse(exported) as {
    spec: { version: string; template: { packs: { name: string; values: string }[] } }
  }
  profile.spec.version = version
  for (const pack of profile.spec.template.packs) if (pack.name === 'web') pack.values = change(pack.values)
  await platform.write('/root/version.json', JSON.stringify(profile))
  return (await platform.output(['edgeplatformctl', 'profile', 'import', '/root/version.json'])).trim()
}
const replaceProfile = (from: string, to: string) =>
  plant.ask('PUT', path('/profiles'), { profiles: [{ uid: from, replaceWithProfile: to }] })

beforeAll(async () => {
  if (isKitMissing()) return
  plant = await bootPlatformPlant(1)
  host = plant.hosts[0]!
  cluster = clusterClient(host)
  await host.host.configure('update', 'cluster: {}\n')
  before = await readHostState(host.host)
})
afterAll(() => (plant as PlatformPlant | undefined)?.unplug())

describe.skipIf(isKitMissing())('a cluster of the platform on a connected host', () => {
  it('is validated, created, and comes; the host begins within 65 seconds', async () => {
    const entity = plant.entity(host, 'plant', 'good morning')
    await plant.ask('POST', '/v1/spectroclusters/edge-native/validate', entity)
    uid = await plant.create(host, 'plant', 'good morning')
    const createdAt = performance.now()
    await eventually(async () => expect(await plant.wanted(uid)).toBeDefined(), comesMs)
    const begunMs = Math.round(performance.now() - createdAt)
    process.stdout.write(`a change on the platform to the first step of its host: ${begunMs} ms\n`)
    await plant.untilWanted(uid, 'Applied')
    await eventually(async () => expect((await plant.shown(uid)).status.state).toBe('Running'), comesMs)
    await says('good morning')
  }, 1_800_000)

  it('gives the platform its kubeconfig, and no secret in clear text', async () => {
    const { platform } = plant
    const { status, text } = await platform.asRoot('GET', path('/assets/kubeconfig'))
    expect([status, text]).toEqual([200, expect.stringContaining('client-certificate-data')])
    const found = await platform.sh(
      'grep -r -l --binary-files=text "$1" /var/lib/edgeplatform /var/log 2>/dev/null || true',
      sensitiveValue,
    )
    expect(found.trim()).toBe('')
    expect((await platform.journal('edgeplatformd')).map(({ message }) => message).join()).not.toContain(
      sensitiveValue,
    )
  })

  it('changes with its values, and a watch ends when the host has applied them', async () => {
    await setGreeting('good evening')
    const shown = await plant.platform.run(['edgeplatformctl', 'cluster', 'watch', 'plant'], {
      timeoutMs: comesMs,
    })
    expect([shown.exitCode, shown.stdout]).toEqual([0, expect.stringContaining('Applied')])
    expect(await askWorkload(host)).toBe('good evening')
  }, 1_300_000)

  it('with an image that the host does not have stays as it is, and says what is missing', async () => {
    const absent = await importVersion('2.0.0', (values) =>
      values.replaceAll('library/busybox:1', 'library/absent:1'),
    )
    await replaceProfile(plant.profileUid, absent)
    expect((await plant.untilWanted(uid, 'ContentMissing')).message).toContain('docker.io/library/absent:1')
    expect(await askWorkload(host)).toBe('good evening')
    await replaceProfile(absent, plant.profileUid)
    await plant.untilWanted(uid, 'Applied')
    expect(await askWorkload(host)).toBe('good evening')
  }, 1_800_000)

  it('comes back from a change with which it does not run', async () => {
    await host.host.configure('update', 'cluster: {update: {timeoutSeconds: 12}}\n')
    // The host has this image, which does not have the program that the pod starts.
    const broken = await importVersion('3.0.0', (values) =>
      values.replace(/^( {4}image: ).*$/m, '$1docker.io/edge/network:1'),
    )
    await replaceProfile(plant.profileUid, broken)
    const watched = await plant.platform.run(['edgeplatformctl', 'cluster', 'watch', 'plant'], {
      timeoutMs: comesMs,
    })
    expect([watched.exitCode, watched.stderr]).toEqual([
      1,
      expect.stringMatching(/has refused it: revision \d+ has failed, and the host has gone back/),
    ])
    expect(await askWorkload(host)).toBe('good evening')
    await host.host.configure('update', 'cluster: {}\n')
    await replaceProfile(broken, plant.profileUid)
    await plant.untilWanted(uid, 'Applied')
    expect(await askWorkload(host)).toBe('good evening')
  }, 1_800_000)

  it('continues while its host is disconnected, and the same platform takes it back', async () => {
    await host.host.output(['edgehostctl', 'platform', 'disconnect', '--yes'])
    expect(await askWorkload(host)).toBe('good evening')
    await host.connect()
    await plant.untilWanted(uid, 'Applied')
    expect(await askWorkload(host)).toBe('good evening')
  }, 1_300_000)

  it('is not taken back by a platform that was restored, until it is applied again', async () => {
    const { platform } = plant
    await platform.write('/root/passphrase', 'correct horse battery staple\n')
    const option = ['--passphrase-file', '/root/passphrase']
    await platform.output(['edgeplatformctl', 'backup', '/root/platform.backup', ...option])
    await setGreeting('good night')
    await says('good night')
    await plant.untilWanted(uid, 'Applied')
    await platform.output(['systemctl', 'stop', 'edgeplatformd.socket', 'edgeplatformd.service'])
    await platform.output(['edgeplatformctl', 'restore', '/root/platform.backup', '--yes', ...option])
    await platform.output(['systemctl', 'start', 'edgeplatformd.socket', 'edgeplatformd.service'])
    await plant.untilWanted(uid, 'NewerOnHost')
    expect(await askWorkload(host)).toBe('good night')
    await platform.output(['edgeplatformctl', 'cluster', 'apply', 'plant', '--yes'])
    await says('good evening')
    await plant.untilWanted(uid, 'Applied')
  }, 1_800_000)

  it('that is deleted on its host is not made again, until it is applied again', async () => {
    await host.host.output(['edgehostctl', 'platform', 'disconnect', '--yes'])
    await host.host.output(['edgehostctl', 'cluster', 'delete', '--yes', '--wait'], {
      timeoutMs: 300_000,
    })
    await host.connect()
    await plant.untilWanted(uid, 'DeletedOnHost')
    expect(await cluster.details()).toBeUndefined()
    await plant.platform.output(['edgeplatformctl', 'cluster', 'apply', 'plant', '--yes'])
    await plant.untilWanted(uid, 'Applied')
    await says('good evening')
  }, 1_800_000)

  it('is deleted, and the host is as it was', async () => {
    await plant.ask('DELETE', path(''))
    await plant.untilForgotten(uid)
    await cluster.gone(60_000)
    // It keeps the number of the last change that it has dealt with.
    await eventually(async () =>
      expect(changesBetween(before, await readHostState(host.host))).toEqual([
        'stateFolder + f 600 platform/wanted.json',
      ]),
    )
  }, 1_300_000)
})
