import { randomUUID } from 'node:crypto'
import { clusterEntity, clusterProfile, importedProfile, uploadClusterPacks } from './platform-clusters.ts'
import { playEdgeHost, type PlayedEdgeHost } from './played-edge-host.ts'
import type { createTestPlatform } from './test-platform.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>

export const fleetPassword = 'a long password'

/** A platform with users, a project, hosts in every state, and a cluster that its host reports about. */
export interface PlantedFleet {
  readonly project: string
  /** A host with facts and events, well; it has the cluster. */
  readonly well: PlayedEdgeHost
  /** A host that has a problem. */
  readonly ill: PlayedEdgeHost
  /** A host that was never heard. */
  readonly silent: PlayedEdgeHost
  readonly cluster: string
  readonly profile: string
  /** A pack of the project, `web`. */
  readonly pack: string
  /** A request as the administrator; any refusal is an error. */
  ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, payload?: object): Promise<unknown>
}

const device = {
  archType: 'amd64',
  cpu: { cores: 8 },
  memory: { sizeInMB: 16_384 },
  os: { family: 'debian', version: '12', kernel: 'linux', kernelVersion: '6.1.0' },
  disks: [
    {
      ...{ controller: 'NVMe', vendor: 'disk', size: 256 },
      partitions: [
        { mountPoint: '/', fileSystemType: 'ext4', totalSpace: 200, freeSpace: 26, usedSpace: 174 },
      ],
    },
  ],
  nics: [
    {
      nicName: 'eth0',
      macAddr: '52:54:00:00:00:01',
      ip: '192.0.2.7',
      subnet: '255.255.255.0',
      isDefault: true,
    },
    { nicName: 'eth1', macAddr: '52:54:00:00:00:02' },
  ],
}

/** Plants the fleet in the project `north hall`. The administrator is admin@plant.example, the viewer of the project viewer@plant.example. */
export async function plantFleet(platform: TestPlatform): Promise<PlantedFleet> {
  await platform.addUser('admin@plant.example', fleetPassword, ['admin'])
  const viewer = await platform.addUser('viewer@plant.example', fleetPassword)
  const headers = await platform.signIn('admin@plant.example', fleetPassword)

  async function send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    authorization: string,
    payload?: object,
  ) {
    const reply = await platform.app.inject({
      ...{ method, url, headers: { authorization } },
      ...(payload ? { payload } : {}),
    })
    if (reply.statusCode >= 300) throw new Error(`${method} ${url}: ${reply.body}`)
    return reply.body === '' ? undefined : reply.json<unknown>()
  }
  const ask: PlantedFleet['ask'] = (method, url, payload) => send(method, url, headers.authorization, payload)

  const { uid: project } = (await ask('POST', '/v1/projects', {
    metadata: { name: 'north hall' },
    spec: { users: [{ userId: viewer, roles: ['viewer'] }] },
  })) as { uid: string }
  const scope = { ...headers, projectuid: project }
  const { token } = (await ask('POST', '/v1/edgehosts/tokens', {
    metadata: { name: 'hall-b' },
    spec: { defaultProjectUid: project },
  })) as { token: string }
  const join = async (name: string, labels: Readonly<Record<string, string>>) => {
    const host = playEdgeHost(platform)
    const { status, text } = await host.register(token, name, { labels })
    if (status !== 200) throw new Error(text)
    await host.logIn()
    return host
  }
  const beat = (host: PlayedEdgeHost, state: string, message: string) =>
    send('PATCH', `/v1/edgehosts/${host.uid}/health`, host.token, { agentVersion: '1.2.3', state, message })

  const well = await join('press-4', { hall: '3', line: '2' })
  const ill = await join('oven-<b>1', { hall: '3' }).catch(() => join('oven-1', { hall: '3' }))
  const silent = await join('welder-9', {})
  await send('PUT', `/v1/edgehosts/${well.uid}`, well.token, {
    metadata: { labels: { hall: '3', line: '2' } },
    spec: { device, host: { hostAddress: '192.0.2.7' }, service: { name: 'edgehostd', version: '1.2.3' } },
  })
  await beat(well, 'healthy', '')
  await beat(ill, 'unhealthy', 'The disk of the state folder is full. <b>Free some</b>')
  await uploadClusterPacks(platform, scope)
  const profile = await importedProfile(platform, scope, clusterProfile('plant', '1.0.0'))
  await importedProfile(platform, scope, clusterProfile('plant', '1.1.0'))
  const { uid: cluster } = (await ask(
    'POST',
    `/v1/spectroclusters/edge-native?ProjectUid=${project}`,
    clusterEntity(well.uid, profile, { name: 'line-2' }),
  )) as { uid: string }
  const at = `/v1/spectroclusters/${cluster}`
  const now = new Date(platform.clock.now()).toISOString()
  const failed = {
    ...{ key: 'pack web', title: 'Install the pack web', pack: 'web', state: 'failed', failures: 2 },
    ...{ reason: 'the image registry.example/web:1.0.0 is not on this host', startTimestamp: now },
  }
  const done = {
    key: 'init',
    title: 'Set up the control plane',
    state: 'done',
    failures: 0,
    startTimestamp: now,
  }
  await send('PUT', `${at}/heartbeat`, well.token, {
    ...{
      agentVersion: '1.2.3',
      number: 1,
      seenNumber: 1,
      revision: 1,
      state: 'Error',
      message: 'a step has failed',
    },
    steps: [done, failed],
  })
  const pack = (name: string, type: string, message = '') => ({
    ...{ name, version: '1.0.0', profileUid: profile, type: 'spectro' },
    condition: { type, status: type === 'Available' ? 'True' : 'False', reason: type, message },
  })
  await send('PATCH', `${at}/packs/status`, well.token, {
    packs: [pack('cni', 'Available'), pack('web', 'Failed', failed.reason)],
  })
  await send('PATCH', `${at}/status/conditions`, well.token, [
    { type: 'Wanted', status: 'True', reason: 'Applied', message: '', lastTransitionTime: now },
  ])
  await send(
    'POST',
    '/v1/events/components/bulk',
    well.token,
    (['Normal', 'Warning', 'Error'] as const).map((severity) => ({
      ...{ severity, reason: `Step${severity}`, message: `The step is ${severity}. <i>Text</i>` },
      metadata: { uid: randomUUID(), creationTimestamp: now },
      involvedObject: { kind: 'Cluster', name: 'line-2', uid: cluster },
      source: { component: 'cluster' },
    })),
  )
  const { items } = (await ask('GET', `/v1/packs?ProjectUid=${project}&filters=spec.name=web`)) as {
    items: readonly [{ metadata: { uid: string } }]
  }
  return { project, well, ill, silent, cluster, profile, pack: items[0].metadata.uid, ask }
}

/** Each page of the platform behind the address of a project; those of the tenant are the same in every one. */
export const fleetPages = ({ well, cluster, profile, pack }: PlantedFleet): readonly string[] => [
  ...['hosts', `hosts/${well.uid}`, 'hosts/connect', 'clusters', `clusters/${cluster}`, 'clusters/new'],
  ...['profiles', `profiles/${profile}`, 'packs', `packs/${pack}`, 'tokens', 'users', 'audit', 'more'],
]
