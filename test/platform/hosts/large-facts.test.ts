import { afterAll, beforeAll, expect, it } from 'vitest'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>

beforeAll(async () => {
  platform = await createTestPlatform()
})
afterAll(() => platform.close())

it('what a host reports has at most 128 KiB: a page of fifty hosts with a megabyte each held up all requests', async () => {
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
})
