import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Type } from 'typebox'
import type { Mode } from '../../../src/base/role.ts'
import { identifyByToken } from '../../../src/api/guard.ts'
import { createServer } from '../../../src/api/server.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'

function createEdge(mode: Mode) {
  const { app } = createServer({
    log: captureLog().log,
    bodyLimitBytes: 1_000,
    mode,
    identify: identifyByToken((token) =>
      token === 'admin' || token === 'viewer' ? { userName: 'x', role: token, sessionUid: 'x' } : undefined,
    ),
    onAuthenticated: () => undefined,
  })
  app.put(
    '/v1/test/cluster',
    {
      config: { access: 'admin', airgapOnly: true },
      schema: { body: Type.Object({ name: Type.String() }) },
    },
    async () => ({ done: true }),
  )
  const ask = async (headers: Record<string, string>, payload: unknown) => {
    const reply = await app.inject({
      method: 'PUT',
      url: '/v1/test/cluster',
      headers,
      payload: payload as object,
    })
    return [reply.statusCode, reply.json<Partial<ErrorReply>>().code]
  }
  return { app, ask }
}

const good = { name: 'x' }
const wrong = { name: 5 }
const admin = { authorization: 'admin' }
const viewer = { authorization: 'viewer' }

describe('a route for airgapped hosts alone', () => {
  it('an airgapOnly route works on an airgapped host', async () => {
    const { ask } = createEdge('airgap')
    expect(await ask({}, wrong)).toEqual([401, 'Unauthenticated'])
    expect(await ask(viewer, wrong)).toEqual([403, 'Forbidden'])
    expect(await ask(admin, wrong)).toEqual([400, 'BadRequest'])
    expect(await ask(admin, good)).toEqual([200, undefined])
  })

  it('an airgapOnly route is refused on a connected host, after the token and before the role and the body', async () => {
    const { ask } = createEdge('connected')
    expect(await ask({}, good)).toEqual([401, 'Unauthenticated'])
    expect(await ask({ authorization: 'other' }, good)).toEqual([401, 'Unauthenticated'])
    expect(await ask(viewer, wrong)).toEqual([403, 'ManagedByPlatform'])
    expect(await ask(admin, wrong)).toEqual([403, 'ManagedByPlatform'])
    expect(await ask(admin, good)).toEqual([403, 'ManagedByPlatform'])
  })

  it('an airgapOnly route does not accept the cookie of a request that another site may have caused', async () => {
    const { ask } = createEdge('connected')
    const cookie = 'Authorization=admin'
    expect(await ask({ cookie }, good)).toEqual([403, 'CrossOrigin'])
    expect(await ask({ cookie, 'sec-fetch-site': 'same-origin' }, good)).toEqual([403, 'ManagedByPlatform'])
  })

  it.each([
    ['connected', 'admin', 'HTTP/1.1 403', 'ManagedByPlatform'],
    ['connected', 'none', 'HTTP/1.1 401', 'Unauthenticated'],
    ['airgap', 'viewer', 'HTTP/1.1 403', 'Forbidden'],
  ] as const)(
    'an airgapOnly route is refused on a host in mode %s, token %s, without a byte of the body',
    async (mode, token, line, code) => {
      const { app } = createEdge(mode)
      await app.listen({ port: 0, host: '127.0.0.1' })
      const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
      let received = ''
      client.on('data', (chunk) => (received += chunk.toString()))
      client.write(
        `PUT /v1/test/cluster HTTP/1.1\r\nHost: box\r\nAuthorization: ${token}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 900\r\n\r\n',
      )
      await expect.poll(() => received).toContain(code)
      expect(received).toContain(line)
      client.destroy()
      await once(client, 'close')
      await app.close()
    },
  )

  it('an airgapOnly route cannot be declared without a role', () => {
    const { app } = createEdge('airgap')
    const declare = () =>
      app.get('/v1/test/open', { config: { access: 'open', airgapOnly: true } }, async () => '')
    expect(declare).toThrow('/v1/test/open is open and airgapOnly')
  })

  it('an airgapOnly route cannot be declared with bypass', () => {
    const { app } = createEdge('airgap')
    const config = { access: 'admin', airgapOnly: true, bypass: () => true } as const
    expect(() => app.get('/v1/test/side', { config }, async () => '')).toThrow('has bypass and airgapOnly')
  })
})

describe('the mode', () => {
  let airgap: TestEdge
  let connected: TestEdge
  beforeAll(async () => {
    airgap = await createTestEdge()
    connected = await createTestEdge({ host: airgap.host, mode: 'connected' })
  })
  afterAll(async () => {
    await connected.stop()
    await airgap.stop()
  })

  it('the mode does not affect other routes', async () => {
    const routes = airgap.routes.routes.filter(({ airgapOnly }) => !airgapOnly)
    expect(routes.length).toBeGreaterThan(15)
    const answers = async (edge: TestEdge) => {
      const tokens: (string | undefined)[] = [undefined]
      for (const name of ['alice', 'bob']) tokens.push((await edge.login(name)).access)
      const [, admin] = tokens
      const found: string[] = []
      for (const { method, url } of routes) {
        for (const token of tokens) {
          // A logout would end the session for the remaining routes.
          if (url.endsWith('/logout') && token !== undefined) continue
          for (const payload of token === admin ? [undefined, { username: 5 }] : [undefined]) {
            const { statusCode, body } = await edge.app.inject({
              method: method as Method,
              url: url.replace(/:[A-Za-z]+/g, 'some-id'),
              headers: { ...(token === undefined ? {} : { authorization: token }), 'x-request-id': 'same' },
              ...(payload === undefined || method === 'GET' || method === 'HEAD' ? {} : { payload }),
            })
            // Each edge has uids of its own.
            const shape =
              statusCode < 300 ? '' : body.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
            found.push(
              `${method} ${url} ${tokens.indexOf(token)} ${payload !== undefined}: ${statusCode} ${shape}`,
            )
          }
        }
      }
      return found
    }
    expect(await answers(connected)).toEqual(await answers(airgap))
  })

  it('the settings name the mode', async () => {
    const { access } = await connected.login('bob')
    const reply = await connected.get('/v1/edge-mgmt/settings', access)
    expect(reply.json()).toMatchObject({ installationMode: 'connected', managementMode: 'central' })
  })
})
