import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultLimits } from '../../../src/archive/limits.ts'
import { examine } from '../../../src/definition/examination/examine.ts'
import { describe, expect, it } from 'vitest'
import {
  ask,
  beat,
  by,
  clusterWorld,
  create,
  download,
  problemCodes,
  report,
  shown,
  unpack,
  wanted,
} from '../../support/cluster-world.ts'
import { clusterEntity, clusterProfile } from '../../support/platform-clusters.ts'

const world = clusterWorld()

describe('a cluster', () => {
  it('is created, and its host learns of it with the next heartbeat', async () => {
    const host = await world.joined()
    expect(await beat(host)).toBeUndefined()
    expect((await download(host)).status).toBe(404)
    const uid = await create(host, { name: 'line-1', cloudConfig: { ntpServers: ['ntp.plant.example'] } })
    const header = await beat(host)
    const { bytes, headers, head, definition } = await wanted(host)
    const digest = createHash('sha256').update(bytes).digest()
    expect(header).toBe(`number=1, etag="1-${digest.toString('hex').slice(0, 32)}", uid="${uid}"`)
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
          profileVariables: [{ name: 'PASSWORD', profileUid: world.profileUid(), value: 'hunter-of-two' }],
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
        clusterProfileTemplates: [{ name: 'plant', uid: world.profileUid() }],
      },
      status: {
        ...{ state: 'Pending', isDeletionRequested: false },
        conditions: [
          {
            type: 'HostSilent',
            status: 'False',
            reason: expect.stringMatching(/^(NotSeenYet|Seen)$/) as string,
          },
        ],
      },
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
    const uid = await world.imported(clusterProfile('secrets', '1.0.0', { secret, more }))
    const host = await world.joined()
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
    const { database } = world.platform().rooms.state
    const rows = JSON.stringify(database.sql.prepare('SELECT * FROM cluster').all(), (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    )
    expect(rows).not.toContain('-of-secrets')
  })

  it('gives the same bytes for the same content, and is rebuilt with each change', async () => {
    const [one, other] = [await world.joined(), await world.joined()]
    const uid = await create(one)
    await create(other, { variables: [{ name: 'USER', value: 'paula' }] })
    const [first, second] = [await wanted(one), await wanted(other)]
    expect(first.definition?.[1].equals(second.definition?.[1] ?? Buffer.alloc(0))).toBe(true)
    expect(second.head.configuration.spec.profileVariables).toContainEqual({
      ...{ name: 'USER', profileUid: world.profileUid(), value: 'paula' },
    })
    const folder = join(world.platform().stateDirectory, 'clusters')
    const before = readdirSync(folder).length
    const changed = await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
      { profileUid: world.profileUid(), variables: [{ name: 'USER', value: 'petra' }] },
    ])
    expect([changed.status, changed.headers.etag]).toEqual([204, '"2"'])
    expect((await wanted(one)).head).toMatchObject({
      number: 2,
      definitionSha256: first.head.definitionSha256,
    })
    expect(readdirSync(folder)).toHaveLength(before)
  })

  it('its download continues where it was, and only with the same content', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const { bytes, headers } = await wanted(host)
    const etag = headers.etag!
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
    const [host, other] = [await world.joined(), await world.joined()]
    await create(host)
    const url = `/v1/edgehosts/${host.uid}/spc/download`
    expect((await ask('GET', url, undefined, world.admin())).status).toBe(403)
    expect((await ask('GET', url, undefined, by(other))).status).toBe(404)
    expect((await ask('GET', url, undefined, {})).status).toBe(401)
  })

  it('keeps its profile, the packs of it, its host and its project', async () => {
    const host = await world.joined({ name: 'kept-host' })
    await create(host, { name: 'keeper' })
    const refused = await ask('DELETE', `/v1/edgehosts/${host.uid}`)
    expect([refused.status, refused.json?.code]).toEqual([409, 'HostInUse'])
    expect(refused.body).toContain('keeper')
    const ofProfile = await ask('DELETE', `/v1/clusterprofiles/${world.profileUid()}`)
    expect([ofProfile.status, ofProfile.json?.code]).toEqual([409, 'ProfileInUse'])
    expect(ofProfile.body).toContain('keeper')
    const profile = (await ask('GET', `/v1/clusterprofiles/${world.profileUid()}`)).json
    expect(JSON.stringify(profile)).toContain('"name":"keeper"')
  })

  it('of a project uses its hosts, and profiles of the tenant', async () => {
    const made = await ask('POST', '/v1/projects', { metadata: { name: 'with-cluster' } })
    const { uid: projectUid } = made.json as unknown as { uid: string }
    const inProject = { ...world.admin(), projectuid: projectUid }
    const host = await world.joined({ projectUid })
    const entity = clusterEntity(host.uid, world.profileUid(), { name: 'of-project' })
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

describe('a change', () => {
  it('of variables keeps what it does not name, and masks that are sent back', async () => {
    const host = await world.joined()
    const secret = { name: 'PASSWORD', value: 'given-secret' }
    const uid = await create(host, { variables: [{ name: 'USER', value: 'paula' }, secret] })
    const url = `/v1/spectroclusters/${uid}/variables`
    const read = await ask('GET', url, undefined, world.viewer())
    expect(read.json).toMatchObject([
      {
        profileUid: world.profileUid(),
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
    expect((await ask('PATCH', url, [{ profileUid: world.profileUid(), variables }])).status).toBe(204)
    expect((await wanted(host)).head.configuration.spec.profileVariables).toEqual([
      { ...secret, profileUid: world.profileUid() },
      { name: 'USER', profileUid: world.profileUid(), value: 'petra' },
    ])
    const refused = await ask('PATCH', url, [
      { profileUid: world.profileUid(), variables: [{ name: 'USER', value: '1' }] },
    ])
    expect(problemCodes(refused)).toEqual(['VariableInvalid'])
    expect((await shown(uid)).spec.number).toBe(2)
    for (const text of [
      read.body,
      JSON.stringify(world.platform().lines),
      (await ask('GET', '/v1/audits')).body,
    ])
      expect(text).not.toContain('given-secret')
  })

  it('is refused where another one came between', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const url = `/v1/spectroclusters/${uid}/apply`
    const { etag } = (await ask('GET', `/v1/spectroclusters/${uid}`)).headers
    expect((await ask('POST', url, undefined, { ...world.admin(), 'if-match': etag })).status).toBe(204)
    const refused = await ask('POST', url, undefined, { ...world.admin(), 'if-match': etag })
    expect([refused.status, refused.json?.code]).toEqual([412, 'PreconditionFailed'])
    expect(refused.json?.message).toMatch(/last at 20\S+Z, as number 2; GET \/v1\/audits says who did it/)
    const [one, other] = await Promise.all([ask('POST', url), ask('POST', url)])
    expect([one.status, other.status].sort()).toEqual([204, 409])
  })

  it('of profiles carries the values to another version', async () => {
    const host = await world.joined()
    const first = await world.imported(clusterProfile('moving', '1.0.0'))
    const gone = { name: 'GONE', defaultValue: 'x' }
    const second = await world.imported(clusterProfile('moving', '1.1.0', { more: [gone] }))
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
    const replaced = await ask('PUT', url, {
      profiles: [{ uid: first, replaceWithProfile: world.profileUid() }],
    })
    expect(replaced.status).toBe(204)
    expect((await wanted(host)).head.configuration.spec.profileVariables[0]).toEqual({
      ...{ name: 'USER', profileUid: world.profileUid(), value: 'paula' },
    })
  })

  it('of settings replaces both lists, and nothing else', async () => {
    const host = await world.joined()
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

  it('of the address of the control plane is possible only after the host has refused it', async () => {
    const host = await world.joined()
    const endpoint = (address: string) => ({ controlPlaneEndpoint: { host: address, type: 'VIP' } })
    const uid = await create(host, { cloudConfig: endpoint('192.0.2.80') })
    const set = (clusterConfig: object) =>
      ask('PUT', `/v1/cloudconfigs/edge-native/${uid}/clusterConfig`, { clusterConfig })
    const refuse = (observedGeneration: number) =>
      ask(
        'PATCH',
        `/v1/spectroclusters/${uid}/status/conditions`,
        [{ type: 'Wanted', status: 'False', reason: 'Refused', message: 'no', observedGeneration }],
        by(host),
      )
    // The host may be about to accept it.
    expect(problemCodes(await set(endpoint('192.0.2.81')))).toEqual(['CannotChange'])
    expect((await refuse(1)).status).toBe(204)
    expect(problemCodes(await set(endpoint('999.1.1.1')))).toEqual(['EndpointInvalid'])
    expect((await set(endpoint('192.0.2.81'))).status).toBe(204)
    const { head } = await wanted(host)
    expect(head.number).toBe(2)
    expect(head.configuration.spec.cloudConfig.spec.clusterConfig).toMatchObject(endpoint('192.0.2.81'))
    await refuse(2)
    await report(host, uid, { number: 1, seenNumber: 2, state: 'Running' })
    const late = await set(endpoint('192.0.2.82'))
    expect(late.body).toContain('delete the cluster and create it again')
    expect(problemCodes(late)).toEqual(['CannotChange'])
  })

  it('is applied again with a number that is higher than that of the host', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await report(host, uid, { number: 7, state: 'Running' })
    expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).headers.etag).toBe('"8"')
    expect(await beat(host)).toMatch(/^number=8, etag="8-/)
  })
})
