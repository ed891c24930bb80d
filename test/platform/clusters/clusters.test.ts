import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/archive/limits.ts'
import { examine } from '../../../src/definition/examination/examine.ts'
import type { SpectroCluster } from '../../../src/platform/schemas/clusters.ts'
import {
  clusterEntity,
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../../support/platform-clusters.ts'
import type { PlayedEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { minuteMs } from '../../support/turning-clock.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Record<string, string>
let viewer: Record<string, string>
let profileUid: string

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  await platform.addUser('eye@plant.example', password, ['viewer'])
  admin = await platform.signIn('root@plant.example', password)
  viewer = await platform.signIn('eye@plant.example', password)
  await uploadClusterPacks(platform, admin)
  profileUid = await importedProfile(platform, admin, clusterProfile('plant'))
})
afterAll(() => platform.close())

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
async function ask(method: Method, url: string, payload?: object, headers: object = admin) {
  const reply = await platform.app.inject({
    ...{ method, url, headers: { ...headers } },
    ...(payload ? { payload } : {}),
  })
  const isJson = reply.headers['content-type']?.includes('json') === true
  return {
    ...{ status: reply.statusCode, body: reply.body, headers: reply.headers, bytes: reply.rawPayload },
    json: isJson ? reply.json<Record<string, never>>() : undefined,
  }
}
const by = (host: PlayedEdgeHost) => ({ authorization: host.token })

async function create(
  host: PlayedEdgeHost,
  how: Parameters<typeof clusterEntity>[2] = {},
  profile = profileUid,
) {
  const { status, body } = await ask(
    'POST',
    '/v1/spectroclusters/edge-native',
    clusterEntity(host.uid, profile, how),
  )
  if (status !== 201) throw new Error(body)
  return (JSON.parse(body) as { uid: string }).uid
}
const shown = async (uid: string) =>
  JSON.parse((await ask('GET', `/v1/spectroclusters/${uid}`)).body) as SpectroCluster
const download = (host: PlayedEdgeHost, headers: object = {}) =>
  ask('GET', `/v1/edgehosts/${host.uid}/spc/download`, undefined, { ...by(host), ...headers })
const beat = async (host: PlayedEdgeHost) =>
  (await ask('PATCH', `/v1/edgehosts/${host.uid}/health`, { state: 'healthy' }, by(host))).headers[
    'edgehost-wanted'
  ]
const report = (host: PlayedEdgeHost, uid: string, body: object) =>
  ask('PUT', `/v1/spectroclusters/${uid}/heartbeat`, { agentVersion: '1.2.3', ...body }, by(host))

/** The two members of a tar. */
function unpack(bytes: Buffer) {
  const sizeAt = (at: number) => Number.parseInt(bytes.toString('latin1', at + 124, at + 135), 8)
  const nameAt = (at: number) => bytes.toString('latin1', at, at + 100).replace(/\0.*$/s, '')
  const members: [string, Buffer][] = []
  for (let at = 0; bytes[at] !== 0; at += 512 + Math.ceil(sizeAt(at) / 512) * 512)
    members.push([nameAt(at), bytes.subarray(at + 512, at + 512 + sizeAt(at))])
  return members
}
interface Description {
  readonly number: number
  readonly isDeleted: boolean
  readonly tenantUid: string
  readonly definitionSha256: string
  readonly cluster: { readonly uid: string; readonly name: string }
  readonly configuration: {
    readonly spec: {
      readonly archiveUploadPath?: string
      readonly profileVariables: readonly object[]
      readonly cloudConfig: {
        readonly spec: { readonly clusterConfig: object; readonly machinePoolConfig: object[] }
      }
    }
  }
}
async function wanted(host: PlayedEdgeHost) {
  const { bytes, headers, status } = await download(host)
  if (status !== 200) throw new Error(bytes.toString())
  const [[first, head], definition] = unpack(bytes) as [[string, Buffer], [string, Buffer] | undefined]
  expect(first).toBe('cluster.json')
  return { bytes, headers, definition, head: JSON.parse(head.toString()) as Description }
}

describe('a cluster', () => {
  it('is created, and its host learns of it with the next heartbeat', async () => {
    const host = await joinedHost(platform, admin)
    expect(await beat(host)).toBeUndefined()
    expect((await download(host)).status).toBe(404)
    const uid = await create(host, { name: 'line-1', cloudConfig: { ntpServers: ['ntp.plant.example'] } })
    const header = await beat(host)
    const { bytes, headers, head, definition } = await wanted(host)
    const digest = createHash('sha256').update(bytes).digest()
    expect(header).toBe(`number=1, etag="1-${digest.toString('hex').slice(0, 32)}"`)
    expect(headers).toMatchObject({
      ...{ etag: `"1-${digest.toString('hex').slice(0, 32)}"`, 'cache-control': 'no-store' },
      ...{ 'repr-digest': `sha-256=:${digest.toString('base64')}:`, 'content-type': 'application/x-tar' },
      ...{ 'accept-ranges': 'bytes', 'content-length': String(bytes.length) },
    })
    expect(headers['last-modified']).toBeUndefined()
    expect(definition?.[0]).toBe('definition.tar.zst')
    expect(head).toMatchObject({
      ...{ number: 1, isDeleted: false, cluster: { uid, name: 'line-1' } },
      definitionSha256: createHash('sha256')
        .update(definition?.[1] ?? '')
        .digest('hex'),
      configuration: {
        metadata: { name: 'line-1' },
        spec: {
          cloudConfig: {
            spec: {
              clusterConfig: { ntpServers: ['ntp.plant.example'] },
              machinePoolConfig: [{ hosts: [{ hostUid: host.hostUid }] }],
            },
          },
          profileVariables: [{ name: 'PASSWORD', profileUid, value: 'hunter-of-two' }],
        },
      },
    })
    expect(head.configuration.spec.archiveUploadPath).toBeUndefined()
    const device = (await ask('GET', `/v1/edgehosts/${host.uid}`)).json
    expect(device).toMatchObject({
      ...{ aclmeta: { tenantUid: head.tenantUid } },
      status: { state: 'in-use', inUseClusters: [{ uid, name: 'line-1' }] },
    })
    expect(await shown(uid)).toMatchObject({
      metadata: { name: 'line-1', uid, labels: { hall: '3' } },
      spec: {
        number: 1,
        edgeHost: { uid: host.uid },
        clusterProfileTemplates: [{ name: 'plant', uid: profileUid }],
      },
      status: { state: 'Pending', conditions: [], isDeletionRequested: false },
    })
  })

  it('has a definition that a host accepts, without the secret of a variable', async () => {
    const more = [
      {
        ...{ name: 'LEVEL', isSensitive: true, inputType: 'dropdown', immutable: true },
        options: [{ value: 'option-of-secrets', default: true }, { value: 'other-of-secrets' }],
      },
      { name: 'HIDDEN', isSensitive: true, hidden: true, required: true, defaultValue: 'hidden-of-secrets' },
    ]
    const secret = 'default-of-secrets'
    const uid = await importedProfile(platform, admin, clusterProfile('secrets', '1.0.0', { secret, more }))
    const host = await joinedHost(platform, admin)
    await create(host, {}, uid)
    const { head, definition } = await wanted(host)
    expect(head.configuration.spec.profileVariables).toEqual([
      { name: 'PASSWORD', profileUid: uid, value: secret },
      { name: 'LEVEL', profileUid: uid, value: 'option-of-secrets' },
      { name: 'HIDDEN', profileUid: uid, value: 'hidden-of-secrets' },
    ])
    const folder = await mkdtemp(join(tmpdir(), 'examined-'))
    try {
      const file = join(folder, 'definition.tar.zst')
      const [, content] = definition ?? []
      await writeFile(file, content ?? '')
      async function* lines() {
        yield String(content?.length)
        yield 'end'
      }
      const order = { file, folder, limits: defaultLimits, reserveBytes: 0, isHashed: true }
      expect(await examine(order, lines())).toMatchObject({ name: 'secrets', sha256: head.definitionSha256 })
      const written = readdirSync(folder).map((name) => readFileSync(join(folder, name)))
      for (const bytes of written) expect(bytes.includes('-of-secrets')).toBe(false)
    } finally {
      await rm(folder, { recursive: true })
    }
    const { database } = platform.rooms.state
    const rows = JSON.stringify(database.sql.prepare('SELECT * FROM cluster').all(), (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    )
    expect(rows).not.toContain('-of-secrets')
  })

  it('gives the same bytes for the same content, and is rebuilt with each change', async () => {
    const [one, other] = [await joinedHost(platform, admin), await joinedHost(platform, admin)]
    const uid = await create(one)
    await create(other, { variables: [{ name: 'USER', value: 'paula' }] })
    const [first, second] = [await wanted(one), await wanted(other)]
    expect(first.definition?.[1].equals(second.definition?.[1] ?? Buffer.alloc(0))).toBe(true)
    expect(second.head.configuration.spec.profileVariables).toContainEqual({
      ...{ name: 'USER', profileUid, value: 'paula' },
    })
    const folder = join(platform.stateDirectory, 'clusters')
    const before = readdirSync(folder).length
    const changed = await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
      { profileUid, variables: [{ name: 'USER', value: 'petra' }] },
    ])
    expect([changed.status, changed.headers.etag]).toEqual([204, '"2"'])
    expect((await wanted(one)).head).toMatchObject({
      number: 2,
      definitionSha256: first.head.definitionSha256,
    })
    expect(readdirSync(folder)).toHaveLength(before)
  })

  it('its download goes on where it was, and only with the same content', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    const { bytes, headers } = await wanted(host)
    const etag = headers.etag as string
    const size = bytes.length
    for (const from of [0, 700, 1_500, size - 1_024, size - 1]) {
      const part = await download(host, { range: `bytes=${from}-`, 'if-range': etag })
      expect([part.status, part.headers['content-range']]).toEqual([206, `bytes ${from}-${size - 1}/${size}`])
      expect(part.bytes.equals(bytes.subarray(from))).toBe(true)
    }
    const middle = await download(host, { range: 'bytes=100-2000' })
    expect(middle.bytes.equals(bytes.subarray(100, 2_001))).toBe(true)
    const beyond = await download(host, { range: `bytes=${size}-` })
    expect([beyond.status, beyond.headers['content-range']]).toEqual([416, `bytes */${size}`])
    expect((await download(host, { 'if-none-match': etag })).status).toBe(304)
    await ask('POST', `/v1/spectroclusters/${uid}/apply`)
    const whole = await download(host, { range: 'bytes=700-', 'if-range': etag })
    expect([whole.status, unpack(whole.bytes)[0]?.[0]]).toEqual([200, 'cluster.json'])
  })

  it('is downloaded by its host alone', async () => {
    const [host, other] = [await joinedHost(platform, admin), await joinedHost(platform, admin)]
    await create(host)
    const url = `/v1/edgehosts/${host.uid}/spc/download`
    expect((await ask('GET', url, undefined, admin)).status).toBe(403)
    expect((await ask('GET', url, undefined, by(other))).status).toBe(404)
    expect((await ask('GET', url, undefined, {})).status).toBe(401)
  })

  it('keeps its profile, the packs of it, its host and its project', async () => {
    const host = await joinedHost(platform, admin, { name: 'kept-host' })
    await create(host, { name: 'keeper' })
    const refused = await ask('DELETE', `/v1/edgehosts/${host.uid}`)
    expect([refused.status, refused.json?.code]).toEqual([409, 'HostInUse'])
    expect(refused.body).toContain('keeper')
    const ofProfile = await ask('DELETE', `/v1/clusterprofiles/${profileUid}`)
    expect([ofProfile.status, ofProfile.json?.code]).toEqual([409, 'ProfileInUse'])
    expect(ofProfile.body).toContain('keeper')
    const profile = (await ask('GET', `/v1/clusterprofiles/${profileUid}`)).json
    expect(JSON.stringify(profile)).toContain('"name":"keeper"')
  })

  it('of a project uses its hosts, and profiles of the tenant', async () => {
    const made = await ask('POST', '/v1/projects', { metadata: { name: 'with-cluster' } })
    const { uid: projectUid } = made.json as unknown as { uid: string }
    const inProject = { ...admin, projectuid: projectUid }
    const host = await joinedHost(platform, admin, { projectUid })
    const entity = clusterEntity(host.uid, profileUid, { name: 'of-project' })
    const elsewhere = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect(problemCodes(elsewhere)).toEqual(['HostNotFound'])
    const created = await ask('POST', '/v1/spectroclusters/edge-native', entity, inProject)
    expect(created.status).toBe(201)
    const { uid } = created.json as unknown as { uid: string }
    expect((await ask('GET', `/v1/spectroclusters/${uid}`)).status).toBe(404)
    expect((await ask('GET', `/v1/spectroclusters/${uid}?ProjectUid=${projectUid}`)).status).toBe(200)
    expect((await ask('DELETE', `/v1/projects/${projectUid}`)).body).toContain('1 cluster')
  })
})

const problemCodes = ({ body }: { readonly body: string }) => {
  const { details, problems } = JSON.parse(body) as {
    details?: { problems: { code: string; severity: string }[] }
    problems?: { code: string; severity: string }[]
  }
  return (problems ?? details?.problems ?? [])
    .filter(({ severity }) => severity === 'error')
    .map(({ code }) => code)
}

describe('a cluster that cannot be', () => {
  const validate = (entity: object) => ask('POST', '/v1/spectroclusters/edge-native/validate', entity)

  it('is told all problems at once, by the validation and by the creation', async () => {
    const host = await joinedHost(platform, admin)
    const values = 'user: "{{ .spectro.var.UNKNOWN }}"\n'
    const wrong = clusterProfile('wrong', '1.0.0', { values })
    wrong.spec.template.packs[3]!.tag = '9.9.9'
    const uid = await importedProfile(platform, admin, wrong)
    const entity = clusterEntity(host.uid, uid, {
      ...{
        name: 'Not a name',
        variables: [
          { name: 'USER', value: 'UPPER' },
          { name: 'NOBODY', value: '1' },
        ],
      },
      cloudConfig: { ntpServers: ['a b'], sshKeys: ['no key'] },
      poolConfig: { machinePoolProperties: { archType: 'arm64' }, isControlPlane: false },
    })
    const found = await validate(entity)
    expect(found.status).toBe(200)
    expect(found.json).toMatchObject({ isPossible: false })
    expect(problemCodes(found).sort()).toEqual(
      [
        ...['FieldInvalid', 'FieldInvalid', 'FieldInvalid', 'FieldInvalid', 'FieldInvalid'],
        ...['VariableInvalid', 'VariableInvalid', 'PackMissing', 'VariableUndeclared'],
      ].sort(),
    )
    const { profiles, machinePools } = found.json as unknown as {
      profiles: { uid: string; packs: { results: { name: string }[] } }[]
      machinePools: { results: { errors: object[] }[] }
    }
    expect(profiles[0]?.uid).toBe(uid)
    expect(profiles[0]?.packs.results.map(({ name }) => name)).toContain('web')
    expect(machinePools.results[0]?.errors).toHaveLength(2)
    // No path of this machine.
    expect(found.body).not.toContain(platform.stateDirectory)
    const refused = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect([refused.status, refused.json?.code]).toEqual([400, 'ClusterInvalid'])
    expect(problemCodes(refused)).toEqual(problemCodes(found))
    expect(await beat(host)).toBeUndefined()
    expect(readdirSync(join(platform.stateDirectory, 'clusters/staging'))).toEqual([])
  })

  it.each<[string, string, (entity: ReturnType<typeof clusterEntity>, host: PlayedEdgeHost) => void]>([
    [
      'two hosts',
      'NeedsOneHost',
      ({ spec }) => spec.machinepoolconfig[0]?.cloudConfig.edgeHosts.push({ hostUid: 'b' }),
    ],
    ['no host', 'NeedsOneHost', ({ spec }) => spec.machinepoolconfig.splice(0)],
    [
      'an unknown host',
      'HostNotFound',
      ({ spec }) => (spec.machinepoolconfig[0]!.cloudConfig.edgeHosts[0]!.hostUid = 'x'),
    ],
    ['no profile', 'ProfileMissing', ({ spec }) => spec.profiles.splice(0)],
    ['an unknown profile', 'ProfileNotFound', ({ spec }) => (spec.profiles[0]!.uid = 'x')],
    ['a profile twice', 'ProfileTwice', ({ spec }) => spec.profiles.push(spec.profiles[0]!)],
    [
      'values of packs',
      'PackValuesGiven',
      ({ spec }) => Object.assign(spec.profiles[0]!, { packValues: [{ name: 'web' }] }),
    ],
  ])('with %s is refused: %s', async (_, code, change) => {
    const host = await joinedHost(platform, admin)
    const entity = clusterEntity(host.uid, profileUid)
    change(entity, host)
    expect(problemCodes(await validate(entity))).toContain(code)
    const refused = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect(refused.status).toBe(400)
    expect(problemCodes(refused)).toContain(code)
  })

  it('on a host with a cluster, or with a name that there is, is refused', async () => {
    const [host, free] = [await joinedHost(platform, admin), await joinedHost(platform, admin)]
    await create(host, { name: 'first' })
    expect(problemCodes(await validate(clusterEntity(host.uid, profileUid)))).toEqual(['HostInUse'])
    expect(problemCodes(await validate(clusterEntity(free.uid, profileUid, { name: 'first' })))).toEqual([
      'ClusterExists',
    ])
  })

  it('without infrastructure is refused', async () => {
    const profile = clusterProfile('addon-only')
    profile.spec.template = {
      ...profile.spec.template,
      ...{ type: 'add-on', packs: profile.spec.template.packs.slice(3) },
    }
    const uid = await importedProfile(platform, admin, profile)
    const host = await joinedHost(platform, admin)
    expect(problemCodes(await validate(clusterEntity(host.uid, uid)))).toEqual(['InfrastructureMissing'])
  })

  it('is one of two that are created at once on one host', async () => {
    const host = await joinedHost(platform, admin)
    const replies = await Promise.all(
      ['a', 'b'].map((name) =>
        ask(
          'POST',
          '/v1/spectroclusters/edge-native',
          clusterEntity(host.uid, profileUid, { name: `race-${name}` }),
        ),
      ),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409])
  })
})

describe('a change', () => {
  it('of variables keeps what it does not name, and masks that are sent back', async () => {
    const host = await joinedHost(platform, admin)
    const secret = { name: 'PASSWORD', value: 'given-secret' }
    const uid = await create(host, { variables: [{ name: 'USER', value: 'paula' }, secret] })
    const url = `/v1/spectroclusters/${uid}/variables`
    const read = await ask('GET', url, undefined, viewer)
    expect(read.json).toMatchObject([
      {
        profileUid,
        variables: [
          { name: 'USER', value: 'paula', defaultValue: 'paul' },
          { name: 'PASSWORD', value: '********', defaultValue: '********', isSensitive: true },
        ],
      },
    ])
    const variables = [
      { name: 'PASSWORD', value: '********' },
      { name: 'USER', value: 'petra' },
    ]
    expect((await ask('PATCH', url, [{ profileUid, variables }])).status).toBe(204)
    expect((await wanted(host)).head.configuration.spec.profileVariables).toEqual([
      { ...secret, profileUid },
      { name: 'USER', profileUid, value: 'petra' },
    ])
    const refused = await ask('PATCH', url, [{ profileUid, variables: [{ name: 'USER', value: '1' }] }])
    expect(problemCodes(refused)).toEqual(['VariableInvalid'])
    expect((await shown(uid)).spec.number).toBe(2)
    for (const text of [read.body, JSON.stringify(platform.lines), (await ask('GET', '/v1/audits')).body])
      expect(text).not.toContain('given-secret')
  })

  it('is refused where another one came between', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    const url = `/v1/spectroclusters/${uid}/apply`
    const { etag } = (await ask('GET', `/v1/spectroclusters/${uid}`)).headers
    expect((await ask('POST', url, undefined, { ...admin, 'if-match': etag })).status).toBe(204)
    const refused = await ask('POST', url, undefined, { ...admin, 'if-match': etag })
    expect([refused.status, refused.json?.code]).toEqual([412, 'PreconditionFailed'])
    const [one, other] = await Promise.all([ask('POST', url), ask('POST', url)])
    expect([one.status, other.status].sort()).toEqual([204, 409])
  })

  it('of profiles carries the values to another version', async () => {
    const host = await joinedHost(platform, admin)
    const first = await importedProfile(platform, admin, clusterProfile('moving', '1.0.0'))
    const gone = { name: 'GONE', defaultValue: 'x' }
    const second = await importedProfile(platform, admin, clusterProfile('moving', '1.1.0', { more: [gone] }))
    const variables = [
      { name: 'USER', value: 'paula' },
      { name: 'GONE', value: 'y' },
    ]
    const uid = await create(host, { variables }, second)
    const url = `/v1/spectroclusters/${uid}/profiles`
    expect((await ask('PUT', url, { profiles: [{ uid: first }] })).status).toBe(204)
    const { head } = await wanted(host)
    expect(head.configuration.spec.profileVariables).toEqual([
      { name: 'USER', profileUid: first, value: 'paula' },
      { name: 'PASSWORD', profileUid: first, value: 'hunter-of-two' },
    ])
    expect((await ask('GET', url)).json).toMatchObject({
      profiles: [{ metadata: { uid: first }, spec: { profileVersion: '1.0.0' } }],
    })
    expect((await ask('DELETE', `/v1/clusterprofiles/${second}`)).status).toBe(204)
    const replaced = await ask('PUT', url, { profiles: [{ uid: first, replaceWithProfile: profileUid }] })
    expect(replaced.status).toBe(204)
    expect((await wanted(host)).head.configuration.spec.profileVariables[0]).toEqual({
      ...{ name: 'USER', profileUid, value: 'paula' },
    })
  })

  it('of settings replaces both lists, and nothing else', async () => {
    const host = await joinedHost(platform, admin)
    const endpoint = { controlPlaneEndpoint: { host: '192.0.2.80', type: 'VIP' } }
    const uid = await create(host, { cloudConfig: { ...endpoint, ntpServers: ['a.example'] } })
    const url = `/v1/cloudconfigs/edge-native/${uid}/clusterConfig`
    const set = (clusterConfig: object) => ask('PUT', url, { clusterConfig })
    expect((await set({ ...endpoint, ntpServers: ['b.example'] })).status).toBe(204)
    expect((await wanted(host)).head.configuration.spec.cloudConfig.spec.clusterConfig).toEqual({
      ...{ ...endpoint, ntpServers: ['b.example'], sshKeys: [] },
    })
    expect(problemCodes(await set({ controlPlaneEndpoint: { host: '192.0.2.81' } }))).toEqual([
      'CannotChange',
    ])
    expect(problemCodes(await set({ ntpServers: ['a b'] }))).toEqual(['FieldInvalid'])
  })

  it('is applied again with a number that is higher than that of the host', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    await report(host, uid, { number: 7, state: 'Running' })
    expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).headers.etag).toBe('"8"')
    expect(await beat(host)).toMatch(/^number=8, etag="8-/)
  })
})

describe('a cluster is deleted', () => {
  it('by its host, and then forgotten', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host, { name: 'to-be-gone' })
    const url = `/v1/spectroclusters/${uid}`
    expect((await ask('DELETE', url)).status).toBe(204)
    const { head, definition, headers, bytes } = await wanted(host)
    expect(definition).toBeUndefined()
    expect(head).toEqual({
      ...{ number: 2, isDeleted: true, tenantUid: head.tenantUid, cluster: { uid, name: 'to-be-gone' } },
    })
    const digest = createHash('sha256').update(bytes).digest('base64')
    expect(headers['repr-digest']).toBe(`sha-256=:${digest}:`)
    expect((await shown(uid)).status).toMatchObject({ state: 'Deleting', isDeletionRequested: true })
    const patched = await ask('PATCH', `${url}/variables`, [])
    expect([patched.status, patched.json?.code]).toEqual([409, 'ClusterDeleting'])
    // Once more changes nothing; applied again it stays a deletion.
    expect((await ask('DELETE', url)).headers.etag).toBe('"2"')
    expect((await ask('POST', `${url}/apply`)).headers.etag).toBe('"3"')
    await report(host, uid, { number: 2, state: 'Deleted' })
    expect((await ask('GET', url)).status).toBe(200)
    expect((await report(host, uid, { number: 3, state: 'Deleted' })).status).toBe(204)
    expect((await ask('GET', url)).status).toBe(404)
    expect(await beat(host)).toBeUndefined()
    expect((await ask('GET', `/v1/edgehosts/${host.uid}`)).json).toMatchObject({ status: { state: 'ready' } })
    await create(host, { name: 'to-be-gone' })
  })

  it('is not forgotten where its host deleted it by itself', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    await report(host, uid, { number: 1, state: 'Deleted' })
    expect((await ask('GET', `/v1/spectroclusters/${uid}/status`)).json).toEqual({
      status: { state: 'Deleted' },
    })
  })

  it('without its host only when that has been silent for an hour', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    await beat(host)
    const url = `/v1/spectroclusters/${uid}?forceDelete=true`
    const refused = await ask('DELETE', url)
    expect([refused.status, refused.json?.code]).toEqual([409, 'HostNotSilent'])
    platform.clock.turn(61 * minuteMs)
    admin = await platform.signIn('root@plant.example', password)
    viewer = await platform.signIn('eye@plant.example', password)
    expect((await ask('DELETE', url)).status).toBe(204)
    expect((await ask('GET', `/v1/spectroclusters/${uid}`)).status).toBe(404)
  })
})

describe('what a host reports', () => {
  it('is shown, and found by filters', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host, { name: 'reporting' })
    const step = { key: 'k', title: 'Install', state: 'done', failures: 0 }
    const body = { number: 1, state: 'Running', revision: 3, message: 'fine', steps: [step] }
    expect((await report(host, uid, body)).status).toBe(204)
    const condition = { type: 'Wanted', status: 'True', reason: 'Applied', message: 'as wanted' }
    const url = `/v1/spectroclusters/${uid}`
    expect((await ask('PATCH', `${url}/status/conditions`, [condition], by(host))).status).toBe(204)
    const packs = [
      { name: 'web', profileUid, version: '1.0.0', condition: { type: 'Ready', status: 'True' } },
    ]
    expect((await ask('PATCH', `${url}/packs/status`, { packs }, by(host))).status).toBe(204)
    expect((await ask('PATCH', `/v1/edgehosts/${host.uid}/packs/status`, { packs }, by(host))).status).toBe(
      204,
    )
    expect((await shown(uid)).status).toMatchObject({
      ...{ state: 'Running', number: 1, revision: 3, message: 'fine', agentVersion: '1.2.3' },
      ...{ conditions: [condition], packs, steps: [step] },
    })
    const list = (filters: string) => ask('GET', `/v1/spectroclusters?filters=${encodeURIComponent(filters)}`)
    expect((await list('status.state=RunningANDmetadata.name=reporting')).json).toMatchObject({
      ...{ items: [{ metadata: { uid } }], listmeta: { count: 1 } },
    })
    expect((await list('metadata.labels.hall=4')).json).toMatchObject({ items: [] })
    // Nothing of it is in the trail.
    expect((await ask('GET', `/v1/audits?resourceUid=${uid}`)).json).toMatchObject({ listmeta: { count: 1 } })
  })

  it('is accepted from the host of the cluster alone', async () => {
    const [host, other] = [await joinedHost(platform, admin), await joinedHost(platform, admin)]
    const uid = await create(host)
    expect((await report(other, uid, { state: 'Running' })).status).toBe(404)
    expect((await ask('PUT', `/v1/spectroclusters/${uid}/heartbeat`, { agentVersion: '1' })).status).toBe(403)
    expect((await ask('PATCH', `/v1/edgehosts/${other.uid}/packs/status`, {}, by(other))).status).toBe(404)
  })

  it('its kubeconfig is sealed, and each read by an administrator is in the trail', async () => {
    const host = await joinedHost(platform, admin)
    const uid = await create(host)
    const url = `/v1/spectroclusters/${uid}/assets/kubeconfig`
    expect((await ask('GET', url)).status).toBe(404)
    const kubeconfig = 'apiVersion: v1\nusers: [{ token: a-token-of-kubernetes }]\n'
    const sent = await ask('PUT', url, { kubeconfig }, by(host))
    expect([sent.status, typeof sent.headers.audituid]).toEqual([204, 'string'])
    const read = await ask('GET', url)
    expect([read.body, read.headers['cache-control'], typeof read.headers.audituid]).toEqual([
      ...[kubeconfig, 'no-store', 'string'],
    ])
    expect((await ask('GET', url, undefined, viewer)).status).toBe(403)
    const row = platform.rooms.state.database.sql
      .prepare('SELECT kubeconfig FROM cluster WHERE uid = ?')
      .get(uid)
    expect(Buffer.from(row?.kubeconfig as Uint8Array).includes('a-token')).toBe(false)
    expect((await ask('GET', '/v1/audits?limit=50')).body).not.toContain('a-token')
  })
})
