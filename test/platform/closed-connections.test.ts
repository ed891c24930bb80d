import { readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { CommandFailed, type CommandRunner } from '../../src/system/runner.ts'
import { createWorkersHere } from '../support/workers-here.ts'
import { openTls } from '../support/https-server.ts'
import { clusterEntity, clusterProfile, importedProfile } from '../support/platform-clusters.ts'
import { packUpload, smallPack, smallProfile, tarOf } from '../support/platform-packs.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { waitFor } from '../support/wait-for.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let authorization: string
let profileUid: string

// An examination that takes as long as it may.
const examining = createWorkersHere()
let isHeld = false
let started = 0
let ended = 0
const runner: CommandRunner = {
  async run(program, args, options) {
    if (!isHeld) return examining.run(program, args, options)
    started += 1
    await new Promise((resolve) => options.signal?.addEventListener('abort', resolve))
    ended += 1
    throw new CommandFailed('node', 'ended', '')
  },
}

beforeAll(async () => {
  platform = await createTestPlatform({ runner })
  await platform.start()
  await platform.addUser('op@plant.example', password, ['operator'])
  ;({ authorization } = await platform.signIn('op@plant.example', password))
  profileUid = await importedProfile(platform, { authorization }, clusterProfile('plant'))
})
beforeEach(() => {
  isHeld = true
  started = ended = 0
})
afterAll(() => platform.close())

const json = { 'content-type': 'application/json' }
const bytes = (value: object) => Buffer.from(JSON.stringify(value))
const entity = () => bytes(clusterEntity('no-host', profileUid))
const requests = {
  'a validation': () => ({
    ...{ method: 'POST', path: '/v1/spectroclusters/edge-native/validate', headers: json },
    payload: entity(),
  }),
  'a creation': () => ({
    ...{ method: 'POST', path: '/v1/spectroclusters/edge-native', headers: json, payload: entity() },
  }),
  'an import': () => ({
    ...{ method: 'POST', path: '/v1/clusterprofiles/import', headers: json },
    payload: bytes(smallProfile('closed')),
  }),
  'a change of variables': () => ({
    ...{ method: 'PUT', path: `/v1/clusterprofiles/${profileUid}/variables`, headers: json },
    payload: bytes({ variables: [] }),
  }),
  'an upload': () => ({
    ...{ method: 'POST', path: '/v1/packs' },
    ...packUpload(tarOf(smallPack('closed'))),
  }),
}

/** Folders of examinations that run or wait. */
const staged = () => readdirSync(join(platform.stateDirectory, 'clusters', 'staging')).length

async function open() {
  const { port } = platform.app.server.address() as AddressInfo
  const ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  const client = await openTls(port, ca)
  return {
    ...client,
    send(name: keyof typeof requests) {
      const { method, path, headers, payload } = requests[name]()
      const fields = { host: 'localhost', authorization, ...headers, 'content-length': payload.length }
      const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}`)
      client.socket.write([`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
      client.socket.write(payload)
    },
  }
}

it.each(Object.keys(requests) as (keyof typeof requests)[])(
  'the examination of %s ends with its connection, and nothing is kept',
  async (name) => {
    const client = await open()
    client.send(name)
    await waitFor(() => expect(started).toBe(1))
    client.socket.destroy()
    await waitFor(() => expect(ended).toBe(1))
    isHeld = false
    const { statusCode } = await platform.app.inject({
      ...{ method: 'POST', url: '/v1/spectroclusters/edge-native/validate', headers: { authorization } },
      payload: clusterEntity('no-host', profileUid),
    })
    expect(statusCode).toBe(200)
    for (const path of [
      '/v1/packs',
      '/v1/clusterprofiles?filters=metadata.name=closed',
      '/v1/spectroclusters',
    ]) {
      const reply = await platform.app.inject({ url: path, headers: { authorization } })
      expect(reply.json()).toMatchObject({ items: [] })
    }
  },
)

it('validations that wait leave with their connection, those behind others on it too', async () => {
  const first = await open()
  const others = [await open(), await open()]
  first.send('a validation')
  await waitFor(() => expect(started).toBe(1))
  for (const client of others) for (let count = 0; count < 8; count += 1) client.send('a validation')
  // As many as may wait.
  await waitFor(() => expect(staged()).toBe(17))
  for (const { socket } of others) socket.destroy()
  await waitFor(() => expect(staged()).toBe(1))
  expect([started, ended]).toEqual([1, 0])
  const next = await open()
  next.send('a validation')
  first.socket.destroy()
  await waitFor(() => expect([started, ended]).toEqual([2, 1]))
  next.socket.destroy()
  await waitFor(() => expect([started, ended]).toEqual([2, 2]))
})
