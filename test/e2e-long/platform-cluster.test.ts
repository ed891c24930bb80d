import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../support/kubernetes-kit.ts'
import { clusterClient, type ClusterClient } from '../e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../e2e/cluster/cluster-host.ts'
import { changesBetween, readHostState, type HostState } from '../e2e/cluster/host-state.ts'
import { sensitiveValue, writePlant } from '../e2e/cluster/plant-definition.ts'
import { askWorkload } from '../e2e/cluster/workload.ts'
import { bootEdgeplatform, type Edgeplatform } from '../e2e/host/edgeplatform.ts'
import { eventually } from '../e2e/host/eventually.ts'
import type { Host } from '../e2e/host/host.ts'
import { output } from '../e2e/host/process.ts'

const platformName = 'platform.plant.example'
const platformAddress = '10.77.0.9'
// The heartbeat of a minute, and what a host of a loaded machine takes.
const comesMs = 1_200_000

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}
interface ClusterShown {
  readonly metadata: { readonly uid: string }
  readonly status: { readonly state: string; readonly conditions: readonly Condition[] }
}

const booted: Host[] = []
let plant: ClusterHost
let cluster: ClusterClient
let before: HostState
let platform: Edgeplatform
let edgeHostUid: string
let clusterUid: string
let folder: string

/** A request of root on the platform, which has to succeed. */
async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, text } = await platform.asRoot(method, path, body)
  expect(status, text).toBeLessThan(300)
  return (text === '' || text === 'null' ? undefined : JSON.parse(text)) as T
}
const shown = () => ask<ClusterShown>('GET', `/v1/spectroclusters/${clusterUid}`)
const wanted = async () => (await shown()).status.conditions.find(({ type }) => type === 'Wanted')

/** Waits until the platform shows this of what it wants. */
const untilWanted = (reason: string) =>
  eventually(async () => {
    const found = await wanted()
    if (found?.reason !== reason) throw new Error(JSON.stringify(found))
    return found
  }, comesMs)

/** Puts the packs and the profile of the plant on the platform. @returns uid of the profile */
async function importPlant(): Promise<string> {
  await writePlant(folder, plant.kit)
  await cp(folder, `/proc/${platform.leader}/root/root/plant`, { recursive: true })
  await platform.sh('for pack in /root/plant/packs/*/; do edgeplatformctl packs upload "$pack"; done')
  return (await platform.output(['edgeplatformctl', 'profiles', 'import', '/root/plant/profile.json'])).trim()
}

beforeAll(async () => {
  if (isKitMissing()) return
  folder = await mkdtemp(join(tmpdir(), 'platform-cluster-'))
  plant = await bootClusterHost()
  booted.push(plant.host)
  cluster = clusterClient(plant)
  platform = await bootEdgeplatform({ lower: 'minbase', wire: false })
  booted.push(platform)
  // A cable from the platform to the switch of the host.
  const inSwitch = (...args: readonly string[]) =>
    output('nsenter', ['-t', String(plant.host.clientNamespace()), '-n', 'ip', ...args])
  await inSwitch(
    ...['link', 'add', 'platform', 'type', 'veth', 'peer', 'name', 'host0'],
    ...['netns', String(platform.leader)],
  )
  await inSwitch('link', 'set', 'platform', 'master', 'edge0', 'up')
  // The platform stands on a Debian without ip(8).
  const inPlatform = (...args: readonly string[]) =>
    output('nsenter', ['-t', String(platform.leader), '-n', 'ip', ...args])
  await inPlatform('address', 'add', `${platformAddress}/16`, 'dev', 'host0')
  await inPlatform('link', 'set', 'host0', 'up')
  await platform.write('/etc/edgeplatform/config.d/10-site.yaml', `platform: {hostName: ${platformName}}\n`)
  await platform.output(['systemctl', 'restart', 'edgeplatformd'])
  await platform.trust()
  await plant.host.sh('echo "$1 $2" >> /etc/hosts', platformAddress, platformName)

  const token = (await platform.output(['edgeplatformctl', 'tokens', 'create', 'hall'])).trim()
  await plant.host.write('/root/token', `${token}\n`, 0o600)
  await plant.host.write('/root/ca.pem', await platform.read('/var/lib/edgeplatform/tls/certificate.pem'))
  await plant.host.output([
    ...['edgehostctl', 'platform', 'connect', `https://${platformName}`],
    ...['--token-file', '/root/token', '--ca-file', '/root/ca.pem'],
  ])
  const { items } = await ask<{ items: { metadata: { uid: string } }[] }>('GET', '/v1/edgehosts')
  edgeHostUid = items[0]!.metadata.uid
  before = await readHostState(plant.host)
})
afterAll(async () => {
  await Promise.all(booted.map((each) => each.unplug()))
  if (folder) await rm(folder, { recursive: true, force: true })
})

describe.skipIf(isKitMissing())('a cluster of the platform on a connected host', () => {
  let profileUid: string

  it('is validated, created, and comes; the host begins within 65 seconds', async () => {
    profileUid = await importPlant()
    const entity = {
      metadata: { name: 'plant' },
      spec: {
        cloudConfig: {},
        machinepoolconfig: [{ cloudConfig: { edgeHosts: [{ hostUid: edgeHostUid }] }, poolConfig: {} }],
        profiles: [
          {
            uid: profileUid,
            variables: [
              { name: 'greeting', value: 'good morning' },
              { name: 'token', value: sensitiveValue },
            ],
          },
        ],
      },
    }
    await ask('POST', '/v1/spectroclusters/edge-native/validate', entity)
    ;({ uid: clusterUid } = await ask<{ uid: string }>('POST', '/v1/spectroclusters/edge-native', entity))
    const createdAt = performance.now()
    await eventually(async () => expect(await wanted()).toBeDefined(), comesMs)
    const begunMs = performance.now() - createdAt
    process.stdout.write(
      `a change on the platform to the first step of its host: ${Math.round(begunMs)} ms\n`,
    )
    await untilWanted('Applied')
    await eventually(async () => expect((await shown()).status.state).toBe('Running'), comesMs)
    expect(await eventually(() => askWorkload(plant), 120_000)).toBe('good morning')
  }, 1_800_000)

  it('gives the platform its kubeconfig, and no secret in clear text', async () => {
    const { status, text } = await platform.asRoot(
      'GET',
      `/v1/spectroclusters/${clusterUid}/assets/kubeconfig`,
    )
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

  it('changes with its values', async () => {
    const variables = [{ name: 'greeting', value: 'good evening' }]
    await ask('PATCH', `/v1/spectroclusters/${clusterUid}/variables`, [{ profileUid, variables }])
    await eventually(async () => expect(await askWorkload(plant)).toBe('good evening'), comesMs)
    await untilWanted('Applied')
  }, 1_300_000)

  it('with an image that the host does not have stays as it is, and says what is missing', async () => {
    const exported = await platform.output(['edgeplatformctl', 'profiles', 'export', profileUid])
    const profile = JSON.parse(exported) as {
      spec: { version: string; template: { packs: { name: string; values: string }[] } }
    }
    profile.spec.version = '2.0.0'
    for (const pack of profile.spec.template.packs)
      if (pack.name === 'web') pack.values = pack.values.replaceAll('library/busybox:1', 'library/absent:1')
    await platform.write('/root/absent.json', JSON.stringify(profile))
    const uid = (await platform.output(['edgeplatformctl', 'profiles', 'import', '/root/absent.json'])).trim()
    await ask('PUT', `/v1/spectroclusters/${clusterUid}/profiles`, {
      profiles: [{ uid: profileUid, replaceWithProfile: uid }],
    })
    expect((await untilWanted('ContentMissing')).message).toContain('docker.io/library/absent:1')
    expect(await askWorkload(plant)).toBe('good evening')
    await ask('PUT', `/v1/spectroclusters/${clusterUid}/profiles`, {
      profiles: [{ uid, replaceWithProfile: profileUid }],
    })
    await untilWanted('Applied')
    expect(await askWorkload(plant)).toBe('good evening')
  }, 1_800_000)

  it('goes on while its host is disconnected, and the same platform takes it back', async () => {
    await plant.host.output(['edgehostctl', 'platform', 'disconnect', '--yes'])
    expect(await askWorkload(plant)).toBe('good evening')
    await plant.host.output([
      ...['edgehostctl', 'platform', 'connect', `https://${platformName}`],
      ...['--token-file', '/root/token', '--ca-file', '/root/ca.pem'],
    ])
    await untilWanted('Applied')
    expect(await askWorkload(plant)).toBe('good evening')
  }, 1_300_000)

  it('is deleted, and the host is as it was', async () => {
    await ask('DELETE', `/v1/spectroclusters/${clusterUid}`)
    await eventually(
      async () =>
        expect((await platform.asRoot('GET', `/v1/spectroclusters/${clusterUid}`)).status).toBe(404),
      comesMs,
    )
    await cluster.gone(60_000)
    // It keeps the number of the last change that it has dealt with.
    await eventually(async () =>
      expect(changesBetween(before, await readHostState(plant.host))).toEqual([
        'stateFolder + f 600 platform/wanted.json',
      ]),
    )
  }, 1_300_000)
})
