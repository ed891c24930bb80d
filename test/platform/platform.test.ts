import { X509Certificate } from 'node:crypto'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestPlatform } from '../support/test-platform.ts'

let folder: string
let platform: Awaited<ReturnType<typeof createTestPlatform>>

/** As root of the machine does, over the local socket. */
async function asRoot(path: string): Promise<{ status: number | undefined; body: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: unknown }>()
  request({ socketPath: join(folder, 'platform.sock'), path }, (reply) => {
    text(reply).then(
      (body) => resolve({ status: reply.statusCode, body: JSON.parse(body) as unknown }),
      reject,
    )
  })
    .on('error', reject)
    .end()
  return promise
}

describe('the platform', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgeplatform-test-'))
    platform = await createTestPlatform({
      socket: join(folder, 'platform.sock'),
      flags: ['--platform.hostName=platform.plant.example'],
    })
    await platform.start()
  })
  afterAll(async () => {
    await platform.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('says without a login that it answers', async () => {
    const reply = await platform.app.inject('/v1/health/ping')
    expect([reply.statusCode, reply.json()]).toEqual([200, { msg: 'pong' }])
  })

  it('is ready when its checks hold', async () => {
    await expect
      .poll(async () => (await platform.app.inject('/v1/health/ready')).statusCode, { timeout: 60_000 })
      .toBe(200)
  })

  it('tells its state to root of the machine, and to no caller without a login', async () => {
    const { status, body } = await asRoot('/v1/system/status')
    expect(status).toBe(200)
    expect(body).toMatchObject({ version: '1.2.3', certificate: { isOwn: true }, failing: [] })
    const reply = await platform.app.inject('/v1/system/status')
    expect([reply.statusCode, reply.json<{ code: string }>().code]).toEqual([401, 'Unauthenticated'])
  })

  it('has its configured name in its certificate', () => {
    const { subjectAltName } = new X509Certificate(platform.rooms.certificate.material().cert)
    expect(subjectAltName).toContain('DNS:platform.plant.example')
  })

  it('answers no path of a host', async () => {
    for (const path of ['/v1/ping', '/v1/edge-mgmt/edgehosts/current', '/v1/users/default/login'])
      expect((await platform.app.inject(path)).statusCode).toBe(404)
  })

  it('names its own unit in its metrics', async () => {
    const { body } = await platform.app.inject({ url: '/metrics', remoteAddress: '127.0.0.1' })
    expect(body).toMatch(/^edgeplatformd_http_connections /m)
    expect(body).not.toContain('edgehostd')
  })
})

it('keeps its tenant over restarts, and its trail stays whole', async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), 'edgeplatform-test-'))
  const read = async () => {
    const one = await createTestPlatform({ stateDirectory })
    const { database } = one.rooms.state
    const tenant = database.sql.prepare('SELECT uid FROM tenant').get()
    const made = database.sql.prepare("SELECT count(*) AS made FROM audit WHERE kind = 'tenant'").get()
    await one.close()
    return { tenant, made }
  }
  const first = await read()
  expect(first.made).toEqual({ made: 1 })
  expect(await read()).toEqual(first)
  await rm(stateDirectory, { recursive: true, force: true })
})
