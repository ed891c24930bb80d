import { expect, it } from 'vitest'
import { ask, clusterWorld } from '../support/cluster-world.ts'
import { clusterProfile } from '../support/platform-clusters.ts'
import { importProfile, smallPack, tarOf, uploadPack } from '../support/platform-packs.ts'
import { playEdgeHost } from '../support/played-edge-host.ts'

const world = clusterWorld()

it('a host does not take the name of another one in other letters', async () => {
  const { json } = await ask('POST', '/v1/edgehosts/tokens', { metadata: { name: 'of hosts' }, spec: {} })
  const token = json?.token as unknown as string
  const [one, other] = [playEdgeHost(world.platform()), playEdgeHost(world.platform())]
  expect((await one.register(token, 'Press-3')).status).toBe(200)
  const refused = await other.register(token, 'press-3')
  expect([refused.status, refused.json.code, refused.json.details]).toEqual([
    ...[409, 'HostNameExists', { field: 'metadata.name' }],
  ])
  expect(refused.text).toContain(
    'a host named Press-3 in this project, and press-3 differs from it in case only',
  )
  expect((await other.register(token, 'press-4')).status).toBe(200)
})

it('a profile has one spelling of its name in all its versions; those that are stored stay', async () => {
  const load = (name: string, version: string) =>
    importProfile(world.platform(), JSON.stringify(clusterProfile(name, version)), world.admin())
  expect((await load('Kiosk', '1.0.0')).statusCode).toBe(201)
  for (const version of ['1.0.0', '2.0.0']) {
    const refused = await load('KIOSK', version)
    expect([refused.statusCode, refused.json<{ code: string }>().code]).toEqual([409, 'ProfileExists'])
    expect(refused.body).toContain('a cluster profile named Kiosk in this scope, and KIOSK differs')
  }
  // As an earlier version has taken it.
  const { sql } = world.platform().rooms.state.database
  sql.exec("UPDATE cluster_profile SET name = 'kiosk' WHERE name = 'plant'")
  for (const name of ['Kiosk', 'kiosk']) expect((await load(name, '3.0.0')).statusCode).toBe(201)
})

it('a pack has one spelling of its name in all its versions', async () => {
  const load = (name: string, version: string) =>
    uploadPack(world.platform(), tarOf(smallPack(name, version)), world.admin())
  expect((await load('Scanner', '1.0.0')).statusCode).toBe(201)
  for (const version of ['1.0.0', '2.0.0']) {
    const refused = await load('scanner', version)
    expect([refused.statusCode, refused.json<{ code: string }>().code]).toEqual([409, 'PackExists'])
    expect(refused.body).toContain('a pack named Scanner in this scope, and scanner differs')
  }
  expect((await load('Scanner', '2.0.0')).statusCode).toBe(201)
})
