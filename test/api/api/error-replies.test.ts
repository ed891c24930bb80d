import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer } from '../../../src/api/server.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTestEdge, loginPath, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
beforeAll(async () => {
  edge = await createTestEdge()
})
afterAll(() => edge.stop())

describe('an error', () => {
  it.each([
    ['a path that is not there', 'GET', '/v1/nothing', 404, 'NotFound'],
    ['a path of one segment', 'GET', '/nothing', 404, 'NotFound'],
    ['an undecodable path', 'GET', '/v1/%zz', 400, 'BadRequest'],
    [
      'a part of a path that is too long',
      'DELETE',
      `/v1/users/sessions/${'x'.repeat(300)}`,
      414,
      'UriTooLong',
    ],
    ['a method that is not there', 'PUT', loginPath, 405, 'MethodNotAllowed'],
    ['a method that no route has', 'TRACE', loginPath, 405, 'MethodNotAllowed'],
    ['a method that Fastify does not know', 'PROPFIND', '/v1/ping', 405, 'MethodNotAllowed'],
    ['a method that is not there at a path that is not there', 'PATCH', '/v1/nothing', 404, 'NotFound'],
    ['no path at all', 'OPTIONS', '*', 404, 'NotFound'],
    ['a token that is missing', 'GET', '/v1/users/current', 401, 'Unauthenticated'],
    ['a body that is missing', 'POST', loginPath, 400, 'BadRequest'],
    ['a query that is wrong', 'GET', '/v1/users/default/login?setCookie=maybe', 405, 'MethodNotAllowed'],
  ] as const)(
    'the reply to %s has the error body and a reference',
    async (_what, method, url, status, code) => {
      const reply = await edge.app.inject({ method: method as 'GET', url })
      const body = reply.json<ErrorReply>()
      expect([reply.statusCode, body.code]).toEqual([status, code])
      expect(body.message).not.toBe('')
      expect(body.ref).toBe(reply.headers['x-request-id'])
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
    },
  )

  it('a body that is not UTF-8 is refused, since a password in it would become another one', async () => {
    const reply = await edge.app.inject({
      ...{ method: 'POST', url: loginPath, headers: { 'content-type': 'application/json' } },
      payload: Buffer.from('{"username":"chief","password":"m\u00fcller"}', 'latin1'),
    })
    expect([reply.statusCode, reply.json<ErrorReply>()]).toMatchObject([
      400,
      { code: 'BadRequest', message: 'the body is not UTF-8, as JSON has to be' },
    ])
  })

  it('a refused method lists the supported ones', async () => {
    expect((await edge.app.inject({ method: 'PUT', url: loginPath })).headers.allow).toBe('POST')
    const get = await edge.app.inject({ method: 'POST', url: '/v1/ping?x=1' })
    expect(String(get.headers.allow).split(', ').sort()).toEqual(['GET', 'HEAD'])
    const remove = await edge.app.inject({ method: 'GET', url: '/v1/users/sessions/some-uid' })
    expect(remove.headers.allow).toBe('DELETE')
  })

  it('an error for HEAD has the status and headers of GET, and no body', async () => {
    for (const [url, status] of [
      ['/v1/nothing', 404],
      ['/v1/users/current', 401],
      [loginPath, 405],
    ] as const) {
      const reply = await edge.app.inject({ method: 'HEAD', url })
      expect([reply.statusCode, reply.body]).toEqual([status, ''])
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'x-request-id': expect.stringMatching(/./),
      })
      const get = await edge.app.inject({ url })
      expect([get.statusCode, get.headers.allow]).toEqual([status, reply.headers.allow])
    }
  })

  it.each([
    ['broken JSON', 'application/json', '{"username":', 400, 'BadRequest'],
    ['an empty body', 'application/json', '', 400, 'BadRequest'],
    ['JSON that reaches for the prototype', 'application/json', '{"__proto__":{"x":1}}', 400, 'BadRequest'],
    ['a body that is no object', 'application/json', '[]', 400, 'BadRequest'],
    ['text', 'text/plain', '{}', 415, 'UnsupportedMediaType'],
    ['a form', 'application/x-www-form-urlencoded', 'username=x', 415, 'UnsupportedMediaType'],
    ['a malformed content type', 'nonsense', '{}', 415, 'UnsupportedMediaType'],
    ['no content type', undefined, '{}', 415, 'UnsupportedMediaType'],
  ] as const)('the refusal of %s has the error body', async (_what, type, payload, status, code) => {
    const reply = await edge.app.inject({
      method: 'POST',
      url: loginPath,
      payload,
      headers: type === undefined ? {} : { 'content-type': type },
    })
    const body = reply.json<ErrorReply>()
    expect([reply.statusCode, body.code, body.ref]).toEqual([status, code, reply.headers['x-request-id']])
    expect(body.message).not.toMatch(/FST_|Unexpected|position/)
    if (status === 415)
      expect([body.message, body.details]).toEqual([
        expect.stringContaining('the header Content-Type'),
        { field: 'Content-Type' },
      ])
  })

  it('a body that is too large is a 413', async () => {
    const reply = await edge.post(loginPath, { username: 'x'.repeat(70_000), password: 'x' })
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([413, 'PayloadTooLarge'])
  })

  it('more than 128 KiB without a login is a 413, whatever larger limits there are', async () => {
    const { app } = createBareEdge(1_048_576)
    app.post('/open', { config: { access: 'open', audit: false } }, async () => ({}))
    app.post('/known', { config: { access: 'viewer', audit: false } }, async () => ({}))
    const post = async (url: string, length: number) => {
      const headers = { authorization: 'any', 'content-type': 'application/json' }
      return (await app.inject({ method: 'POST', url, headers, payload: `"${'x'.repeat(length - 2)}"` }))
        .statusCode
    }
    expect(await Promise.all([131_072, 131_073].map((length) => post('/open', length)))).toEqual([200, 413])
    expect(await Promise.all([131_073, 1_048_577].map((length) => post('/known', length)))).toEqual([
      200, 413,
    ])
  })

  it('each error has a reference of its own', async () => {
    const replies = await Promise.all(
      [1, 2].map(() => edge.app.inject({ url: '/v1/nothing', headers: { 'request-id': 'mine' } })),
    )
    const refs = replies.map((reply) => reply.json<ErrorReply>().ref)
    expect(new Set(refs).size).toBe(2)
    expect(refs).not.toContain('mine')
  })
})

function createBareEdge(bodyLimitBytes = 1_000) {
  const { log, lines } = captureLog()
  const { app } = createServer({
    log,
    bodyLimitBytes,
    mode: 'airgap',
    identify: () => ({ userName: 'bob', role: 'viewer', sessionUid: 'any' }),
    onAuthenticated: () => undefined,
  })
  return { app, lines }
}

describe('a handler that breaks', () => {
  it.each<[string, () => unknown]>([
    [
      'with an exception',
      () => {
        throw new Error('secret detail in /etc/shadow')
      },
    ],
    [
      'with an error that names a status of its own',
      () => {
        throw Object.assign(new Error('secret detail'), { statusCode: 418, code: 'E_OTHER' })
      },
    ],
    [
      'with a system error',
      () => {
        throw Object.assign(new Error("EACCES: secret detail '/etc/shadow'"), { code: 'EACCES', errno: -13 })
      },
    ],
  ])('%s is a 500 that discloses nothing about the daemon', async (_what, handler) => {
    const { app, lines } = createBareEdge()
    app.get('/broken', { config: { access: 'viewer' } }, async () => handler())
    const reply = await app.inject({ url: '/broken?query', headers: { authorization: 'any' } })
    const { ref, ...body } = reply.json<ErrorReply>()
    expect(reply.statusCode).toBe(500)
    expect(body).toEqual({
      code: 'Internal',
      message: 'the daemon failed; find the journal line by the reference',
    })
    expect(reply.body + JSON.stringify(reply.headers)).not.toContain('secret detail')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      ref,
      level: 50,
      method: 'GET',
      path: '/broken',
      status: 500,
      durationMs: expect.any(Number),
      user: 'bob',
    })
    expect(JSON.stringify(lines[0]?.err)).toContain('secret detail')
    await app.close()
  })

  it('a failure is in the journal also when the client has disconnected', async () => {
    const { app, lines } = createBareEdge()
    app.get('/slow', { config: { access: 'open' } }, async ({ raw }) => {
      client.destroy()
      await once(raw.socket, 'close')
      throw new Error('secret detail')
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    client.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => lines).toMatchObject([{ level: 50, path: '/slow', status: 500 }])
    await app.close()
  })
})

it('malformed bytes during a reply end the connection, and nothing is mixed into the reply', async () => {
  const { app } = createBareEdge()
  app.get('/stream', { config: { access: 'open' } }, async (_request, reply) => {
    const stream = new PassThrough()
    stream.write('first part')
    return reply.type('application/octet-stream').send(stream)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  let received = ''
  client.on('data', (chunk) => (received += chunk.toString()))
  client.on('error', () => undefined)
  client.write('GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => received).toContain('first part')
  client.write('garbage\r\n\r\n')
  await once(client, 'close')
  expect(received).not.toContain('BadRequest')
  await app.close()
})
