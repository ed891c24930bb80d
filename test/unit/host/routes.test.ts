import type { FastifyReply } from 'fastify'
import { fastify } from 'fastify'
import { expect, it } from 'vitest'
import { hostRoutes } from '../../../src/host/routes.ts'
import { settingsOf } from '../../../src/host/settings.ts'
import type { SnapshotReply } from '../../../src/host/snapshot.ts'

// Spaced as no serialiser would, with a field that no schema knows.
const reply: SnapshotReply = {
  body: '{ "metadata": {  "id": "edge-1" }, "unknown": 1 }',
  etag: '"a1"',
}

const usage = { clock: {}, fileSystems: [], links: [] }

async function server(current: () => SnapshotReply | undefined = () => reply) {
  const app = fastify()
  const refreshed: string[] = []
  const note = async (what: string) => void refreshed.push(what)
  const snapshot = { current, refresh: note, firstReading: () => note('first look') }
  const accesses: unknown[] = []
  app.addHook('onRoute', ({ config }) => void accesses.push(config?.access))
  let serialised = 0
  app.addHook('preSerialization', async (_request, _reply: FastifyReply, payload) => {
    serialised += 1
    return payload
  })
  await app.register(hostRoutes, { snapshot, usage: async () => usage, settings: settingsOf('airgap') })
  const get = (url: string, headers = {}) => app.inject({ url, headers })
  return { get, refreshed, accesses, snapshot, serialised: () => serialised }
}

const path = '/v1/edge-mgmt/edgehosts/current'

it('the bytes of the snapshot are sent as they are, never serialised again', async () => {
  const { get, serialised } = await server()
  const response = await get(path)
  expect(response.statusCode).toBe(200)
  expect(response.rawPayload.toString()).toBe(reply.body)
  expect(response.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(reply.body.length),
    etag: '"a1"',
  })
  expect(serialised()).toBe(0)
})

it.each(['"a1"', 'W/"a1"', '"zz", "a1"', '*'])(
  'a matching If-None-Match %s is answered with 304 and no body',
  async (tag) => {
    const response = await (await server()).get(path, { 'if-none-match': tag })
    expect(response.statusCode).toBe(304)
    expect(response.body).toBe('')
    expect(response.headers.etag).toBe('"a1"')
  },
)

it.each(['"a2"', 'a1', '""'])('another If-None-Match %s is answered in full', async (tag) => {
  expect((await (await server()).get(path, { 'if-none-match': tag })).statusCode).toBe(200)
})

it('the facts are read again only with refresh=true', async () => {
  const { get, refreshed } = await server()
  await get(path)
  await get(`${path}?refresh=false`)
  expect(refreshed).toEqual([])
  await get(`${path}?refresh=true`)
  expect(refreshed).toEqual(['all'])
})

it('a refresh that is neither true nor false is refused', async () => {
  const response = await (await server()).get(`${path}?refresh=perhaps`)
  expect(response.statusCode).toBe(400)
  expect(response.json().message).toContain('refresh')
})

it('a request before the first reading waits for it', async () => {
  const { get, refreshed } = await server(() => (refreshed.length > 0 ? reply : undefined))
  expect((await get(path)).rawPayload.toString()).toBe(reply.body)
  expect(refreshed).toEqual(['first look'])
})

it('a missing reply after the first reading is answered with 500', async () => {
  const { get } = await server(() => undefined)
  expect((await get(path)).statusCode).toBe(500)
})

it('a refresh that fails is answered with 500', async () => {
  const { get, snapshot } = await server()
  snapshot.refresh = () => Promise.reject(new Error('broken'))
  expect((await get(`${path}?refresh=true`)).statusCode).toBe(500)
})

it('the settings say how the host is installed and managed', async () => {
  expect((await (await server()).get('/v1/edge-mgmt/settings')).json()).toEqual({
    featureFlags: {},
    installationMode: 'airgap',
    managementMode: 'local',
  })
  expect(settingsOf('connected')).toMatchObject({ installationMode: 'connected', managementMode: 'central' })
})

it('every viewer may read the host, and no caller without a token', async () => {
  const { accesses } = await server()
  expect(new Set(accesses)).toEqual(new Set(['viewer']))
})
