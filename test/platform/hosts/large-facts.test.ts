import { afterAll, beforeAll, expect, it } from 'vitest'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>

beforeAll(async () => {
  platform = await createTestPlatform()
})
afterAll(() => platform.close())

it('what a host reports has at most 128 KiB: a page of fifty hosts with a megabyte each held up all requests, and lists have it where it is asked for', async () => {
  const host = playEdgeHost(platform)
  await host.register(platform.rooms.hosts.tokens.create({ metadata: { name: 'large' } }).token)
  await host.logIn()
  const report = async (bytes: number) => {
    const facts = (fill: number) =>
      JSON.stringify({
        spec: {
          device: { gpus: [{ addresses: { [`k${'x'.repeat(fill)}`]: '' } }] },
          host: { hostAddress: '' },
        },
      })
    const reply = await platform.app.inject({
      ...{ method: 'PUT', url: `/v1/edgehosts/${host.uid}`, payload: facts(bytes - facts(0).length) },
      headers: { authorization: host.token, 'content-type': 'application/json' },
    })
    return reply.statusCode
  }
  expect(await report(131_072)).toBe(204)
  expect(await report(131_073)).toBe(413)

  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  const headers = await platform.signIn('root@plant.example', 'a long password')
  const list = async (query = '') =>
    (await platform.app.inject({ url: `/v1/edgehosts${query}`, headers })).body
  expect((await list()).length).toBeLessThan(2_000)
  expect((await list()).includes('"device":{}')).toBe(true)
  expect((await list('?fields=spec.device')).length).toBeGreaterThan(130_000)
  expect((await list('?fields=spec.device.gpus')).length).toBeGreaterThan(130_000)
})
