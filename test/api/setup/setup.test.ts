import { expect, it, onTestFinished } from 'vitest'
import type { HostName, HostTime } from '../../../src/setup/schemas.ts'
import { createTestEdge, type ErrorReply } from '../../support/test-edge.ts'

const currentPath = '/v1/edge-mgmt/edgehosts/current'

async function start() {
  const edge = await createTestEdge()
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  return {
    get: (path: string) => edge.get(`${currentPath}/${path}`, access),
    put: (path: string, payload: object) =>
      edge.app.inject({
        method: 'PUT',
        url: `${currentPath}/${path}`,
        headers: { authorization: access },
        payload,
      }),
  }
}

it('a name that is none is refused with the field and the reason', async () => {
  const { get, put } = await start()
  for (const bad of ['', 'Line-7', 'a b', '192.0.2.7', 'localhost', 'a'.repeat(65)]) {
    const reply = await put('hostname', { hostName: bad })
    expect([bad, reply.statusCode]).toEqual([bad, 400])
    expect(reply.json<ErrorReply>().message).toContain('hostName')
  }
  expect((await put('hostname', {})).statusCode).toBe(400)
  expect((await get('hostname')).json<HostName>().hostName).not.toBe('')
})

it('time servers that are none are refused with their place, and without a time service the reason is shown', async () => {
  const { get, put } = await start()
  for (const [servers, place] of [
    [['ntp.example', 'a b'], 'ntpServers[1]'],
    [['1.2.3'], 'ntpServers[0]'],
    [['x;reboot'], 'ntpServers[0]'],
    ['ntp.example', 'ntpServers'],
  ] as const) {
    const reply = await put('time', { ntpServers: servers })
    expect([servers, reply.statusCode]).toEqual([servers, 400])
    expect(reply.json<ErrorReply>().message).toContain(place)
  }
  expect((await get('time')).json<HostTime>()).toMatchObject({ ntpServers: [] })
})
