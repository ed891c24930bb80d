import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCloudWorld, right, rightId, type CloudWorld } from '../../support/platform-clouds.ts'
import { makeMaterial, startServer } from '../../support/https-server.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const path = '/v1/clouds/vendor/account/validate'
let world: CloudWorld
beforeAll(async () => {
  world = await createCloudWorld()
})
beforeEach(() => {
  world.cloud.misbehaves = undefined
  world.cloud.requests.length = 0
})
afterAll(() => world.close())

const validate = (payload: object = right) => world.ask('POST', path, payload)

describe('POST /v1/clouds/vendor/account/validate', () => {
  it('is 204 with the uid of its audit for credentials that the cloud accepts', async () => {
    const { code, headers } = await validate()
    expect(code).toBe('204')
    expect(headers.audituid).toMatch(/^[0-9a-f-]{36}$/)
    const { body } = await world.ask<{ items: object[] }>('GET', '/v1/audits?limit=1')
    expect(body.items[0]).toMatchObject({ metadata: { uid: headers.audituid } })
    expect(
      world.cloud.requests.map(({ method, url, body: sent }) => [method, url, JSON.parse(sent) as unknown]),
    ).toEqual([
      [
        'POST',
        '/identity/v3/auth/tokens',
        {
          auth: {
            identity: {
              methods: ['application_credential'],
              application_credential: { id: right.secretId, secret: right.secretKey },
            },
          },
        },
      ],
    ])
  })

  it('asks the cloud anew each time: credentials may have been deleted', async () => {
    expect((await validate()).code).toBe('204')
    world.cloud.credentials.delete(rightId)
    expect((await validate()).code).toBe('400 CloudCredentialsRefused')
    world.cloud.credentials.set(rightId, right.secretKey)
    expect((await validate()).code).toBe('204')
  })

  it('gives one answer for a wrong secret and an unknown id', async () => {
    const wrong = await validate({ ...right, secretKey: 'wrong' })
    const unknown = await validate({ ...right, secretId: 'unknown' })
    for (const { code, message } of [wrong, unknown])
      expect([code, message]).toEqual(['400 CloudCredentialsRefused', 'the cloud refuses these credentials'])
  })

  it.each([
    [{}, 'secretId'],
    [{ secretId: 'a' }, 'secretKey'],
    [{ secretId: '', secretKey: 'b' }, 'secretId'],
    [{ secretId: 'a', secretKey: 7 }, 'secretKey'],
    [{ secretId: 'a', secretKey: 'b'.repeat(1_025) }, 'secretKey'],
  ])('refuses the body %j, naming %s, and does not ask the cloud', async (payload, field) => {
    const { code, message, body } = await validate(payload)
    expect([code, message]).toEqual(['400 BadRequest', expect.stringContaining(field)])
    expect(body).not.toHaveProperty('details.value')
    expect(world.cloud.requests).toEqual([])
  })
})

const json = (reply: ServerResponse, status: number, text: string, headers = {}) =>
  reply.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
const token = { 'x-subject-token': 'a-token' }

describe('a cloud that misbehaves', () => {
  it.each<[string, (reply: ServerResponse) => unknown, string]>([
    ['drops the connection', (reply) => reply.socket?.destroy(), 'Keystone cannot be reached (ECONNRESET)'],
    [
      'ends a reply in its middle',
      (reply) => {
        reply.writeHead(201, { 'content-length': 100, ...token }).write('{"token"')
        return setTimeout(() => reply.socket?.destroy(), 20)
      },
      'Keystone cannot be reached (ECONNRESET)',
    ],
    [
      'redirects',
      (reply) => reply.writeHead(302, { location: 'https://127.0.0.1:1/' }).end(),
      'Keystone answers as no OpenStack does: it redirects (status 302)',
    ],
    [
      'sends a huge reply',
      (reply) => json(reply, 201, `{"token": "${'a'.repeat(4_200_000)}"}`, token),
      'Keystone answers as no OpenStack does: its reply is longer than 4194304 bytes',
    ],
    [
      'sends a huge refusal',
      (reply) => json(reply, 401, `{"error": "${'a'.repeat(70_000)}"}`),
      'Keystone answers as no OpenStack does: its reply is longer than 65536 bytes',
    ],
    [
      'sends no JSON',
      (reply) => json(reply, 201, '<html>', token),
      'Keystone answers as no OpenStack does: its reply is not a JSON object',
    ],
    [
      'sends a list',
      (reply) => json(reply, 201, '[]', token),
      'Keystone answers as no OpenStack does: its reply is not a JSON object',
    ],
    ['gives no token', (reply) => json(reply, 201, '{"token": {}}'), 'Keystone answers with status 201'],
    ['describes no token', (reply) => json(reply, 201, '{}', token), 'Keystone answers with status 201'],
    ['has an error', (reply) => json(reply, 500, '{}'), 'Keystone answers with status 500'],
    ['is busy', (reply) => json(reply, 503, 'busy'), 'Keystone answers with status 503'],
    [
      'changes the protocol',
      (reply) =>
        reply.socket?.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: a\r\nconnection: upgrade\r\n\r\n'),
      'Keystone answers as no OpenStack does: it changes to another protocol',
    ],
  ])('one that %s is 503', async (_, misbehave, wanted) => {
    world.cloud.misbehaves = (_request, reply) => misbehave(reply) ?? true
    const { code, message, headers } = await validate()
    expect([code, message, headers['retry-after']]).toEqual(['503 CloudUnavailable', wanted, '10'])
    world.cloud.misbehaves = undefined
    expect((await validate()).code).toBe('204')
  })

  it('one that does not answer is 503 after five seconds, also in the middle of a reply', async () => {
    for (const misbehave of [
      () => true,
      (reply: ServerResponse) => reply.writeHead(201, { 'content-length': 100, ...token }).write('{'),
    ]) {
      world.cloud.misbehaves = (_, reply) => misbehave(reply)
      const begun = performance.now()
      const { code, message } = await validate()
      expect([code, message]).toEqual(['503 CloudUnavailable', 'Keystone does not answer in time'])
      // Timers may be early by a fraction of a millisecond.
      expect(performance.now() - begun).toBeGreaterThan(4_990)
    }
  })

  it('one with a certificate of another authority gets no credentials', async () => {
    let asked = 0
    const other = await startServer(await makeMaterial(), (_, reply) => {
      asked += 1
      reply.end()
    })
    const platform = await createTestPlatform({
      flags: [
        ...world.cloud.flags.filter((flag) => flag.includes('caFile')),
        `--clouds.vendor.authUrl=https://127.0.0.1:${other.port}`,
      ],
    })
    await platform.addUser('root@plant.example', 'a long password', ['admin'])
    const headers = await platform.signIn('root@plant.example', 'a long password')
    const reply = await platform.app.inject({ method: 'POST', url: path, headers, payload: right })
    expect([reply.statusCode, reply.json()]).toEqual([
      503,
      expect.objectContaining({ message: 'Keystone cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)' }),
    ])
    expect(asked).toBe(0)
    await platform.close()
    await other.stop()
  })
})

it('without clouds.vendor.authUrl every request that needs the cloud is 400 CloudNotConfigured', async () => {
  const platform = await createTestPlatform()
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  const headers = await platform.signIn('root@plant.example', 'a long password')
  for (const [url, payload] of [
    [path, right],
    ['/v1/cloudaccounts/vendor', { metadata: { name: 'a' }, spec: right }],
  ] as const) {
    const reply = await platform.app.inject({ method: 'POST', url, headers, payload })
    expect([reply.statusCode, reply.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'CloudNotConfigured' }),
    ])
  }
  await platform.close()
})
