import { createPrivateKey, createPublicKey } from 'node:crypto'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { backupMachine } from '../../support/backup-machine.ts'
import { earlierState } from '../../support/earlier-state.ts'
import { playCloud, type PlayedCloud } from '../../support/played-cloud.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

interface Known {
  readonly madeAt: number
  readonly session: string
  readonly north: string
  readonly plant: string
  readonly clusters: readonly string[]
  readonly apiKey: string
  readonly shown: Readonly<Record<string, Resource | List>>
  readonly counts: Readonly<Record<string, { readonly count: number }>>
  readonly hosts: readonly HostKey[]
}
interface HostKey {
  readonly uid: string
  readonly hostUid: string
  readonly generation: number
  readonly pem: string
}
interface Resource {
  readonly metadata: { readonly uid: string; readonly name: string; readonly labels?: object }
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: {
    readonly conditions?: readonly { readonly type: string }[]
    readonly lastHeartbeatTimestamp?: string
  }
}
interface List {
  readonly items: readonly Resource[]
}
type Method = 'GET' | 'PUT' | 'PATCH' | 'DELETE' | 'POST'

const earlier = earlierState<Known>('platform-of-c80bc925')
const machine = backupMachine()
let cloud: PlayedCloud
let platform: Awaited<ReturnType<typeof createTestPlatform>>
beforeEach(async () => {
  cloud = await playCloud()
})
afterEach(async () => {
  await platform.close()
  await cloud.close()
})

const open = async (stateDirectory: string) =>
  (platform = await createTestPlatform({ stateDirectory, flags: cloud.flags }))
const admin = () => ({ authorization: earlier.known().session })
const inNorth = () => ({ ...admin(), projectuid: earlier.known().north })

async function ask(method: Method, url: string, headers: object, payload?: object) {
  const reply = await platform.app.inject({
    ...{ method, url, headers: { ...headers } },
    ...(payload ? { payload } : {}),
  })
  const { etag } = reply.headers
  return { status: reply.statusCode, etag, text: reply.body, json: () => reply.json<Resource & List>() }
}

const uidsOf = ({ items }: List) => items.map(({ metadata }) => metadata.uid)
/** What is compared of a resource: without the condition that is of today, and the report that a platform has in memory until it stops. */
const compared = ({ status, ...rest }: Resource): object => {
  if (!status) return rest
  const { conditions, ...same } = status
  const kept = conditions?.filter(({ type }) => type !== 'HostSilent')
  const last = status.lastHeartbeatTimestamp === undefined ? {} : { lastHeartbeatTimestamp: '' }
  return { ...rest, status: { ...same, ...(kept ? { conditions: kept } : {}), ...last } }
}

/** That all is there which the earlier program has shown, and that nothing was put aside or complained of. */
async function expectWhole(stateDirectory: string) {
  const { shown, counts, apiKey } = earlier.known()
  expect(platform.lines.filter(({ level }) => Number(level) >= 40)).toEqual([])
  expect(readdirSync(stateDirectory).filter((name) => /corrupt|suspect|aside|ended/.test(name))).toEqual([])
  for (const [what, before] of Object.entries(shown)) {
    const [, project, url = ''] = /^(north )?(.*)$/.exec(what) ?? []
    const { status, json } = await ask('GET', url, project === undefined ? admin() : inNorth())
    expect(status, what).toBe(200)
    // A list may show less of each today; each is asked for by itself too.
    if ('items' in before) expect(uidsOf(json()), what).toEqual(uidsOf(before))
    else expect(compared(json()), what).toMatchObject(compared(before))
  }
  for (const [list, { count }] of Object.entries(counts)) {
    const { json } = await ask('GET', `/v1/${list}?limit=1`, admin())
    expect(
      (json() as unknown as { listmeta: { count: number } }).listmeta.count,
      list,
    ).toBeGreaterThanOrEqual(count)
  }
  expect((await ask('GET', '/v1/clusterprofiles', { apikey: apiKey })).status).toBe(200)
  expect(await platform.rooms.audit.access.verify(undefined)).toMatchObject({ isIntact: true })
}

const played = ({ pem, ...host }: HostKey) => {
  const privateKey = createPrivateKey(pem)
  return playEdgeHost(platform, { ...host, keys: { privateKey, publicKey: createPublicKey(privateKey) } })
}

/** The hosts log in with the keys that they had, send heartbeats, and get what is wanted of them. */
async function expectHosts() {
  const { hosts } = earlier.known()
  for (const [index, key] of hosts.entries()) {
    const host = played(key)
    expect((await host.logIn()).status).toBe(200)
    const by = { authorization: host.token }
    const beat = await ask('PATCH', `/v1/edgehosts/${host.uid}/health`, by, { state: 'healthy' })
    expect(beat.status).toBe(204)
    const wanted = await ask('GET', `/v1/edgehosts/${host.uid}/spc/download`, by)
    expect(wanted.status).toBe(index < 3 ? 200 : 404)
  }
}

/** Each stored resource takes what was read of it, and a change, by its ETag. */
async function expectChanges() {
  const { clusters, plant, shown } = earlier.known()
  const change = async (
    url: string,
    to: (read: Resource) => object,
    { at = url, headers = admin(), verb = 'PUT' }: { at?: string; headers?: object; verb?: Method } = {},
  ) => {
    const read = await ask('GET', url, headers)
    const changed = await ask(verb, at, { ...headers, 'if-match': read.etag }, to(read.json()))
    expect([changed.status, changed.text], `${verb} ${at}`).toEqual([204, ''])
    const after = await ask('GET', url, headers)
    expect(after.etag, url).not.toBe(read.etag)
    return after.json()
  }
  const labelled = ({ metadata, spec }: Resource) => ({
    metadata: { ...metadata, labels: { hall: '9' } },
    spec,
  })
  const all = (list: string, headers: object = admin()) => {
    const found = shown[`${'projectuid' in headers ? 'north ' : ''}/v1/${list}`] as List
    expect(found.items.length, list).toBeGreaterThan(0)
    return uidsOf(found)
  }
  for (const uid of all('projects'))
    expect((await change(`/v1/projects/${uid}`, labelled)).metadata.labels).toEqual({ hall: '9' })
  for (const uid of all('apiKeys')) await change(`/v1/apiKeys/${uid}`, labelled)
  for (const uid of all('edgehosts/tokens?limit=50')) await change(`/v1/edgehosts/tokens/${uid}`, labelled)
  for (const headers of [admin(), inNorth()])
    for (const uid of all('edgehosts?limit=50', headers))
      await change(`/v1/edgehosts/${uid}`, labelled, { at: `/v1/edgehosts/${uid}/meta`, headers })
  const [user = ''] = all('users')
  await change(`/v1/users/${user}`, () => ({ roles: ['operator'] }), { at: `/v1/users/${user}/roles` })
  const draft = (shown['/v1/clusterprofiles?limit=50'] as List).items.find(
    ({ metadata }) => metadata.name === 'shop-1',
  )
  await change(`/v1/clusterprofiles/${draft?.metadata.uid}/variables`, () => ({
    variables: [
      { name: 'USER', defaultValue: 'rosa' },
      { name: 'PASSWORD', isSensitive: true },
    ],
  }))
  const [running = '', second = ''] = clusters
  const cluster = `/v1/spectroclusters/${running}`
  const withUser = (value: string) => [{ profileUid: plant, variables: [{ name: 'USER', value }] }]
  await change(cluster, () => withUser('berta'), { at: `${cluster}/variables`, verb: 'PATCH' })
  await change(`${cluster}/profiles`, () => ({
    profiles: [{ uid: plant, variables: [{ name: 'USER', value: 'carla' }] }],
  }))
  const variables = JSON.stringify((await ask('GET', `${cluster}/variables`, admin())).json())
  // The secret that was given to the earlier program is still there, sealed.
  expect(variables).toContain('carla')
  expect(variables).toContain('********')
  expect(variables).not.toContain('secret of cluster')
  expect((await ask('POST', `/v1/spectroclusters/${second}/apply`, admin())).status).toBe(204)
  expect((await ask('DELETE', `/v1/spectroclusters/${second}`, admin())).status).toBe(204)
}

it('a state of the platform of c80bc925 opens with all that was in it, and its resources are changed', async () => {
  await open(earlier.stateDirectory())
  await expectWhole(earlier.stateDirectory())
  await expectHosts()
  await expectChanges()
  await platform.close()
  await open(earlier.stateDirectory())
  expect(platform.lines.filter(({ level }) => Number(level) >= 40)).toEqual([])
})

it('a backup that the program of c80bc925 has made is restored with all that was in it', async () => {
  copyFileSync(join(earlier.folder(), 'platform.backup'), machine.file())
  const restored = await machine.restore()
  expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
  const { state } = machine.paths()
  await open(state)
  await expectWhole(state)
  await expectHosts()
  await expectChanges()
})
