import { describe, expect, it } from 'vitest'
import {
  currentPath,
  logoutPath,
  renewalPath,
  resetPath,
  type ErrorReply,
  type TestEdge,
  useOneEdge,
} from '../../support/test-edge.ts'

let edge: TestEdge
useOneEdge((made) => (edge = made))

const host = 'host.example:5080'
const own = `https://${host}`

const foreign: [string, Record<string, string>][] = [
  ['no proof at all', {}],
  ['another origin', { origin: 'https://evil.example' }],
  ['the null origin of a sandboxed frame', { origin: 'null' }],
  ['an empty origin', { origin: '' }],
  ['its own name over http', { origin: `http://${host}` }],
  ['its own name at another port', { origin: 'https://host.example:8443' }],
  ['an origin that begins alike', { origin: `${own}.evil.example` }],
  ['a browser that says cross-site', { 'sec-fetch-site': 'cross-site' }],
  ['a browser that says same-site only', { 'sec-fetch-site': 'same-site' }],
  ['a browser that says cross-site, with a matching origin', { 'sec-fetch-site': 'cross-site', origin: own }],
  ['a referer alone', { referer: `${own}/` }],
]
const proofs: [string, Record<string, string>][] = [
  ['its own origin', { origin: own }],
  ['a browser that says same-origin', { 'sec-fetch-site': 'same-origin' }],
]

async function cookies() {
  const { access, refresh } = await edge.login('bob')
  return { access, refresh, cookie: `Authorization=${access}; RefreshToken=${refresh}` }
}

describe('a change that a cookie authenticates', () => {
  it.each(foreign)('a change with a cookie is refused with %s', async (_what, headers) => {
    const { cookie, access } = await cookies()
    for (const url of [logoutPath, renewalPath]) {
      const reply = await edge.app.inject({ method: 'POST', url, headers: { host, cookie, ...headers } })
      expect([reply.statusCode, reply.json<ErrorReply>().code], url).toEqual([403, 'CrossOrigin'])
      expect(reply.headers).not.toHaveProperty('set-cookie')
    }
    expect((await edge.get(currentPath, access)).statusCode).toBe(200)
    const uid = edge.sessions.authenticate(access)?.sessionUid
    expect(edge.sessions.list().find((each) => each.uid === uid)?.generation).toBe(0)
  })

  it.each(proofs)('a change with a cookie is made with %s', async (_what, headers) => {
    const { cookie } = await cookies()
    for (const url of [renewalPath, logoutPath]) {
      const reply = await edge.app.inject({ method: 'POST', url, headers: { host, cookie, ...headers } })
      expect(reply.statusCode, url).toBe(200)
    }
  })

  it('the end of a session by uid and a password change are refused without a proof of origin', async () => {
    const { cookie, access } = await cookies()
    const uid = edge.sessions.authenticate(access)?.sessionUid ?? ''
    const headers = { host, cookie, origin: 'https://evil.example' }
    const remove = await edge.app.inject({ method: 'DELETE', url: `/v1/users/sessions/${uid}`, headers })
    expect(remove.statusCode).toBe(403)
    const payload = { oldPassword: 'bob pass', newPassword: 'another pass' }
    const change = await edge.app.inject({ method: 'POST', url: resetPath, payload, headers })
    expect(change.statusCode).toBe(403)
    expect(edge.host.accounts.get('bob')?.password).toBe('bob pass')
  })
})

it('a read that a cookie authenticates needs no proof', async () => {
  const { cookie } = await cookies()
  const reply = await edge.app.inject({
    url: currentPath,
    headers: { host, cookie, origin: 'https://evil.example' },
  })
  expect(reply.statusCode).toBe(200)
  expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
})

it('a change that the header authenticates needs no proof', async () => {
  const { access } = await cookies()
  const headers = { host, authorization: access, origin: 'https://elsewhere.example' }
  expect((await edge.app.inject({ method: 'POST', url: logoutPath, headers })).statusCode).toBe(200)
})

it('a preflight of another site gets no permission', async () => {
  const reply = await edge.app.inject({
    method: 'OPTIONS',
    url: logoutPath,
    headers: { host, origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  expect(reply.statusCode).toBe(405)
  expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
})
