import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>
let north: string
let south: string

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  admin = await platform.signIn('root@plant.example', 'a long password')
  ;[north, south] = [await makeProject('north'), await makeProject('south')]
})
afterAll(() => platform.close())

async function makeProject(name: string): Promise<string> {
  const payload = { metadata: { name } }
  const reply = await platform.app.inject({ method: 'POST', url: '/v1/projects', headers: admin, payload })
  return reply.json<{ uid: string }>().uid
}

it('a header ProjectUid that is sent more than once is refused for different values, and counts once for the same one', async () => {
  const statusOf = async (inHeader: string) => {
    // Node gives the values of such a header as one text, with commas between.
    const headers = { ...admin, ProjectUid: inHeader }
    return (await platform.app.inject({ url: '/v1/edgehosts', headers })).statusCode
  }
  expect(await statusOf(`${north}, ${north}`)).toBe(200)
  expect(await statusOf(`${north}, `)).toBe(200)
  expect(await statusOf(`${north}, ${south}`)).toBe(400)
  expect(await statusOf(`${north} ${north}`)).toBe(404)
})

it('a query parameter that is ProjectUid but for its case is refused, where it has no meaning of its own', async () => {
  const statusOf = async (path: string) => {
    const { statusCode, body } = await platform.app.inject({ url: path, headers: admin })
    return statusCode === 200 ? 200 : `${statusCode} ${(JSON.parse(body) as { message: string }).message}`
  }
  expect(await statusOf(`/v1/edgehosts?ProjectUid=${north}`)).toBe(200)
  expect(await statusOf(`/v1/audits?projectUid=${north}`)).toBe(200)
  const refused = '400 projectUid is misspelt; write ProjectUid'
  for (const path of ['/v1/edgehosts', '/v1/spectroclusters', '/v1/packs', '/v1/clusterprofiles'])
    expect(await statusOf(`${path}?projectUid=${north}`)).toBe(refused)
})

it('an empty query parameter is refused, as of a variable of a shell that is not set; an empty header is not there', async () => {
  const refused = await platform.app.inject({ url: '/v1/edgehosts?ProjectUid=', headers: admin })
  expect([refused.statusCode, refused.json<{ message: string }>().message]).toEqual([
    400,
    'ProjectUid is empty; leave it out for the tenant',
  ])
  const headers = { ...admin, ProjectUid: '' }
  expect((await platform.app.inject({ url: '/v1/edgehosts', headers })).statusCode).toBe(200)
  const { statusCode, body } = await platform.app.inject({
    ...{ method: 'POST', url: `/v1/edgehosts/tokens?project=${north}`, headers: admin },
    payload: { metadata: { name: 'a' } },
  })
  expect([statusCode, JSON.parse(body)]).toMatchObject([400, { details: { field: 'project' } }])
})
