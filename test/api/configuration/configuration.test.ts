import { expect, it, onTestFinished } from 'vitest'
import { createTestEdge, type ErrorReply } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/edgehosts/current/configurations'

async function start(mode: 'airgap' | 'connected' = 'airgap') {
  const edge = await createTestEdge({ mode })
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  const put = (payload: unknown, query = '', token = access) =>
    edge.app.inject({
      method: 'PUT',
      url: path + query,
      headers: { authorization: token },
      payload: payload as object,
    })
  return { edge, access, put }
}

it.each(['airgap', 'connected'] as const)(
  'a proxy is set, shown with a mask, and removed, in mode %s',
  async (mode) => {
    const { edge, access, put } = await start(mode)
    const reply = await put({ httpsProxy: 'http://edge:right%20canary@proxy.example:3128' })
    expect(reply.statusCode).toBe(202)
    expect(reply.headers.location).toBe(`${path}/status`)
    const { uid } = reply.json<{ uid: string }>()
    const shown = await edge.get(path, access)
    expect(shown.json()).toEqual({ httpsProxy: 'http://edge:********@proxy.example:3128' })
    expect((await edge.get(`${path}/status`, access)).json()).toMatchObject({ uid })
    const again = await put(shown.json())
    expect(again.json()).toMatchObject({ message: 'the configuration is so already' })
    expect((await put({})).statusCode).toBe(202)
    expect((await edge.get(path, access)).json()).toEqual({})
    // Neither the trail nor the journal has the password.
    const audits = await edge.get('/v1/edge-mgmt/edgehosts/current/audits', access)
    expect(audits.body).toContain('httpsProxy: none -> http://edge:********@proxy.example:3128')
    expect(audits.body + JSON.stringify(edge.lines)).not.toContain('canary')
  },
)

it.each([
  [{ httpsProxy: 'proxy:3128' }, 'httpsProxy'],
  [{ httpProxy: 'http://p:1\nX=y' }, 'httpProxy'],
  [{ noProxy: 'a"b' }, 'noProxy'],
  [{ caCerts: ['x'] }, 'caCerts[0]'],
  [{ httpProxy: 5 }, 'httpProxy'],
  [{ caCerts: 'x' }, 'caCerts'],
])('%j is refused and names %s, also in a dry run', async (body, field) => {
  const { edge, access, put } = await start()
  for (const query of ['', '?dryRun=true']) {
    const reply = await put(body, query)
    expect(reply.statusCode).toBe(400)
    expect(reply.json<ErrorReply>().message).toContain(field)
  }
  expect((await edge.get(path, access)).json()).toEqual({})
})

it('a viewer reads and does not change it', async () => {
  const { edge, put } = await start()
  const { access } = await edge.login('bob')
  expect((await edge.get(path, access)).statusCode).toBe(200)
  expect((await put({}, '', access)).statusCode).toBe(403)
})
