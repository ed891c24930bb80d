import { describe, expect, it } from 'vitest'
import type { EdgeHostDevice } from '../../../src/platform/hosts/schemas.ts'
import { ask, clusterWorld, create } from '../../support/cluster-world.ts'

const world = clusterWorld()

const device = async (uid: string, headers: object = world.admin()) => {
  const reply = await ask('GET', `/v1/edgehosts/${uid}?resolvePackValues=true`, undefined, headers)
  expect(reply.status).toBe(200)
  expect(Number(reply.headers['content-length'])).toBe(reply.bytes.length)
  return JSON.parse(reply.body) as EdgeHostDevice
}
const webOf = ({ spec }: EdgeHostDevice) =>
  spec.clusterProfileTemplates?.[0]?.packs.find(({ name }) => name === 'web')

describe('a host with resolved packs', () => {
  it('shows their values after variables, sensitive ones masked', async () => {
    const host = await world.joined()
    const variables = [
      { name: 'USER', value: 'paula' },
      { name: 'PASSWORD', value: 'given-secret' },
    ]
    const uid = await create(host, { variables })
    const found = await device(host.uid)
    expect(webOf(found)).toMatchObject({ tag: '1.0.0', values: "password: '********'\nuser: 'paula'\n" })
    const plain = JSON.parse((await ask('GET', `/v1/edgehosts/${host.uid}`)).body) as EdgeHostDevice
    expect(plain.spec.clusterProfileTemplates).toBeUndefined()
    const { clusterProfileTemplates, ...spec } = found.spec
    expect({ ...found, spec }).toEqual(plain)
    expect(clusterProfileTemplates).toHaveLength(1)
    await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
      { profileUid: world.profileUid(), variables: [{ name: 'USER', value: 'otto' }] },
    ])
    expect(webOf(await device(host.uid))?.values).toContain("user: 'otto'")
  })

  it('shows viewers the packs without values', async () => {
    const host = await world.joined()
    await create(host)
    const web = webOf(await device(host.uid, world.viewer()))
    expect(web).toMatchObject({ name: 'web', tag: '1.0.0' })
    expect(web).not.toHaveProperty('values')
  })

  it('has none without a cluster, and none with values where that is deleted', async () => {
    const host = await world.joined()
    expect((await device(host.uid)).spec).not.toHaveProperty('clusterProfileTemplates')
    const uid = await create(host)
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    expect(webOf(await device(host.uid))).not.toHaveProperty('values')
  })

  it('is a reply with a query that is checked', async () => {
    const { uid } = await world.joined()
    expect((await ask('GET', `/v1/edgehosts/${uid}?resolvePackValues=perhaps`)).status).toBe(400)
  })
})

describe('a cloud configuration', () => {
  it('has the settings, the pool and the host of a cluster', async () => {
    const host = await world.joined({ name: 'hall-7' })
    const cloudConfig = {
      ntpServers: ['a.example'],
      controlPlaneEndpoint: { host: '192.0.2.80', type: 'VIP' },
    }
    const poolConfig = { name: 'plant', additionalLabels: { hall: '7' } }
    const uid = await create(host, { name: 'line-7', cloudConfig, poolConfig })
    const url = `/v1/cloudconfigs/edge-native/${uid}`
    const { json, headers } = await ask('GET', url)
    expect(json).toMatchObject({
      metadata: { uid, name: 'line-7', labels: { hall: '3' } },
      spec: {
        clusterConfig: cloudConfig,
        machinePoolConfig: [{ ...poolConfig, hosts: [{ hostUid: host.uid, hostAddress: '192.0.2.7' }] }],
      },
      status: { conditions: [] },
    })
    const clusterConfig = { ...cloudConfig, ntpServers: ['b.example'] }
    const changed = await ask(
      'PUT',
      `${url}/clusterConfig`,
      { clusterConfig },
      {
        ...{ ...world.admin(), 'if-match': headers.etag },
      },
    )
    expect(changed.status).toBe(204)
    expect((await ask('GET', url)).json).toMatchObject({
      spec: { clusterConfig: { ntpServers: ['b.example'] } },
    })
  })

  it('names the pool as its host does, and is not found in another scope', async () => {
    const uid = await create(await world.joined())
    const url = `/v1/cloudconfigs/edge-native/${uid}`
    expect((await ask('GET', url)).json).toMatchObject({
      spec: { machinePoolConfig: [{ name: 'control-plane-pool' }] },
    })
    const project = (await ask('POST', '/v1/projects', { metadata: { name: 'elsewhere' } })).json
    const headers = { ...world.admin(), projectuid: String(project?.uid) }
    expect((await ask('GET', url, undefined, headers)).status).toBe(404)
  })
})
