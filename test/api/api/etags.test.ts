import { beforeEach, expect, it } from 'vitest'
import { etagOfReply } from '../../../src/api/etag.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { sessionsPath, type TestEdge, useEdges } from '../../support/test-edge.ts'

let edge: TestEdge
let ms = 0
let token = ''
useEdges(
  (each) => {
    edge = each
  },
  { monotonic: () => performance.now() + ms },
)
beforeEach(async () => {
  token = (await edge.login('alice')).access
})

const host = '/v1/edge-mgmt/edgehosts/current'
const ask = (url: string, etag?: string) =>
  edge.app.inject({
    method: 'GET',
    url,
    headers: { authorization: token, ...(etag === undefined ? {} : { 'if-none-match': etag }) },
  })
const tagOf = async (url: string) => {
  const reply = await ask(url)
  expect(reply.statusCode, `${url}: ${reply.body}`).toBe(200)
  return String(reply.headers.etag)
}

it('what pages poll has a tag, which is good until something changes, also over seconds in which the clock runs', async () => {
  plantCluster(edge)
  for (const url of [
    '/v1/edge-mgmt/cluster/details',
    '/v1/edge-mgmt/cluster/details?kubeconfig=false',
    '/v1/edge-mgmt/cluster/events',
    '/v1/edge-mgmt/cluster/revisions',
    '/v1/edge-mgmt/content/bundles',
    '/v1/edge-mgmt/content/uploads',
    '/v1/edge-mgmt/content/usage',
    '/v1/edge-mgmt/events/lifecycle',
    '/v1/edge-mgmt/network/changes',
    '/v1/edge-mgmt/network/interfaces',
    '/v1/edge-mgmt/platform',
    `${host}/attention`,
    `${host}/status`,
    sessionsPath,
  ]) {
    const etag = await tagOf(url)
    expect(etag, url).toMatch(/^(W\/)?"[\w-]{22}"$/)
    ms += 20
    const again = await ask(url, etag)
    expect([again.statusCode, again.body, again.headers.etag], url).toEqual([304, '', etag])
    expect((await ask(url, `"x", ${etag}`)).statusCode, url).toBe(304)
    expect((await ask(url, '"x"')).statusCode, url).toBe(200)
  }
})

it('a change has another tag', async () => {
  const etag = await tagOf(sessionsPath)
  await edge.login('bob')
  const changed = await ask(sessionsPath, etag)
  expect(changed.statusCode).toBe(200)
  expect(changed.headers.etag).not.toBe(etag)
  expect(changed.json()).toMatchObject({ listmeta: { count: 2 } })
})

it('refusals have no tag, and If-None-Match gets nobody past the guard', async () => {
  const etag = await tagOf(sessionsPath)
  const refused = await edge.app.inject({
    method: 'GET',
    url: sessionsPath,
    headers: { 'if-none-match': `${etag}, *` },
  })
  expect(refused.statusCode).toBe(401)
  const missing = await ask('/v1/edge-mgmt/cluster/details', '*')
  expect([missing.statusCode, missing.headers.etag]).toEqual([404, undefined])
})

it('each read of JSON for users has a tag of its own or of its bytes', async () => {
  const reads = edge.routes.routes.filter(
    ({ method, access, takesTicket }) => method === 'GET' && access !== 'open' && !takesTicket,
  )
  const without: string[] = []
  for (const { url } of reads) {
    const reply = await ask(url.replace(/:\w+/g, 'some-id'))
    const isJson = String(reply.headers['content-type']).startsWith('application/json')
    if (reply.statusCode === 200 && isJson && reply.headers.etag === undefined) without.push(url)
  }
  expect(without).toEqual([])
})

it('fields that move by themselves count in their first two digits; a text in their place does not', () => {
  const of = (uptimeSeconds: number, at = 'a') =>
    etagOfReply(JSON.stringify({ uptimeSeconds, lastProbeTime: at, other: 1 }))
  expect(of(5_401)).toBe(of(5_402))
  expect(of(5_401, 'a')).toBe(of(5_401, 'b'))
  expect(of(5_401)).not.toBe(of(5_501))
  expect(of(1)).toMatch(/^W\//)
  const text = (value: string) => etagOfReply(JSON.stringify({ text: value }))
  expect(text('"uptimeSeconds":5401')).not.toBe(text('"uptimeSeconds":5402'))
  expect(text('x')).not.toMatch(/^W\//)
})
