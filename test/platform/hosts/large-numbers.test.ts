import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  admin = await platform.signIn('root@plant.example', 'a long password')
})
afterAll(() => platform.close())

async function statusOf(url: string): Promise<number> {
  return (await platform.app.inject({ url, headers: admin })).statusCode
}

async function registered(name: string) {
  const host = playEdgeHost(platform)
  const { token } = platform.rooms.hosts.tokens.create({ metadata: { name } })
  await host.register(token)
  return host
}

describe('a number that a host sends', () => {
  it.each([2 ** 52 + 1, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER])(
    'is no generation where it is as large as %d: its record stays readable',
    async (generation) => {
      const host = await registered(`generation ${generation}`)
      host.generation = generation
      expect((await host.logIn()).json.code).toBe('LoginRefused')
      expect(await statusOf(`/v1/edgehosts/${host.uid}`)).toBe(200)
      expect(await statusOf('/v1/edgehosts')).toBe(200)
    },
  )

  it('is a generation up to the largest one, and the logins after an acceptance continue from there', async () => {
    const host = await registered('largest generation')
    host.generation = 2 ** 52
    expect((await host.logIn()).json.generation).toBe(2 ** 52 + 1)
    platform.rooms.hosts.acceptNext(host.uid, '')
    host.generation = 0
    expect((await host.logIn()).json.generation).toBe(2 ** 52 + 2)
    expect(await statusOf('/v1/edgehosts')).toBe(200)
  })

  it.each(['9007199254740992', '1152921504606846976', '1e19', '1e300', '1e400'])(
    'is refused as a count where it is %s: the list can be ordered by it',
    async (text) => {
      const host = await registered(`count ${text}`)
      await host.logIn()
      const reply = await platform.app.inject({
        ...{ method: 'PUT', url: `/v1/edgehosts/${host.uid}` },
        headers: { authorization: host.token, 'content-type': 'application/json' },
        payload: `{"spec":{"device":{"cpu":{"cores":${text}}},"host":{"hostAddress":""}}}`,
      })
      expect(reply.statusCode).toBe(400)
      expect(reply.json<{ details: { field: string } }>().details.field).toBe('spec.device.cpu.cores')
      expect(await statusOf('/v1/edgehosts?orderBy=spec.device.cpu.cores=-1')).toBe(200)
    },
  )
})
