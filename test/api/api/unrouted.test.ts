import { afterAll, expect, it } from 'vitest'
import { isMutating } from '../../../src/api/audit-hook.ts'
import {
  createTestEdge,
  loginPath,
  sessionsPath,
  type ErrorReply,
  type TestEdge,
} from '../../support/test-edge.ts'

const plenty = { requestsPerSecond: 1_000, burst: 5 }
const one = { requestsPerSecond: 1, burst: 1 }

const json = { 'content-type': 'application/json' }
const bodies = {
  none: {},
  broken: { headers: json, payload: '{broken' },
  large: { headers: json, payload: JSON.stringify({ username: 'x'.repeat(70_000), password: 'x' }) },
  text: { headers: { 'content-type': 'text/plain' }, payload: 'text' },
}

const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD', 'OPTIONS'] as const

const paths: readonly (readonly [path: string, statuses: readonly number[]])[] = [
  ['/v1/nothing', [404]],
  ['/v1/ping', [200, 405]],
  ['/v1/%zz', [400]],
  [`${sessionsPath}/${'x'.repeat(300)}`, [414, 405]],
  [`${sessionsPath}/no-uid`, [401, 405]],
  [loginPath, [400, 405, 413, 415]],
]

const cases = paths.flatMap(([path, statuses]) =>
  methods.flatMap((method) =>
    (Object.keys(bodies) as (keyof typeof bodies)[])
      .filter((body) => body === 'none' || isMutating(method))
      .flatMap((body) => [false, true].map((isOver) => ({ method, path, body, isOver, statuses }))),
  ),
)

const edges = new Map<boolean, TestEdge>()
let edge: TestEdge
let clients = 0
/** One edge for each rate, which the cases share: each has a client of its own, at a minute of its own. */
async function open(isOver: boolean): Promise<void> {
  const rate = isOver ? one : plenty
  edge =
    edges.get(isOver) ??
    (await createTestEdge({
      rateLimits: { ...rate, enabled: true, login: rate, blobs: rate, resources: [], trackedKeys: 1_000 },
    }))
  edges.set(isOver, edge)
  edge.clock.turn(60_000)
  edge.lines.length = 0
  clients += 1
}
afterAll(async () => {
  for (const each of edges.values()) await each.stop()
})

/** Asks from another address than the one that reads the trail. */
const ask = (method: string, url: string, body: keyof typeof bodies = 'none') =>
  edge.app.inject({
    ...bodies[body],
    method: method as 'GET',
    url,
    remoteAddress: `198.51.${Math.floor(clients / 250)}.${1 + (clients % 250)}`,
  })

function recorded(): { uid: string; status: number | null }[] {
  edge.audit.flush()
  return edge.database.sql.prepare('SELECT uid, status FROM audit').all() as never
}

it.each(cases)(
  '$method $path with body $body, over the rate: $isOver',
  async ({ method, path, body, statuses, isOver }) => {
    await open(isOver)
    if (isOver) await ask(method, path, body)
    const reply = await ask(method, path, body)
    const isLimited = !(path === '/v1/ping' && ['GET', 'HEAD'].includes(method))
    expect(isOver && isLimited ? [429] : statuses).toContain(reply.statusCode)
    expect(reply.headers.allow !== undefined).toBe(reply.statusCode === 405)
    const uid = reply.headers.audituid
    if (isMutating(method)) expect(recorded()).toContainEqual({ uid, status: reply.statusCode })
    else expect(uid).toBeUndefined()
  },
)

it('a path without a route is refused before its body is read', async () => {
  await open(false)
  const put = await ask('PUT', '/v1/ping', 'broken')
  expect([put.statusCode, put.json<ErrorReply>().code]).toEqual([405, 'MethodNotAllowed'])
  expect(String(put.headers.allow).split(', ').sort()).toEqual(['GET', 'HEAD'])
  expect((await ask('POST', '/v1/nothing', 'large')).statusCode).toBe(404)
})

it('a path is the same in every spelling', async () => {
  await open(false)
  for (const path of ['/v1/%70ing', '/v1/ping?x=1', '/v1/ping#x', '/v1/p%69ng?%zz']) {
    expect((await ask('PUT', path)).statusCode, path).toBe(405)
  }
  expect((await ask('PUT', '/v1%2fping')).statusCode).toBe(404)
})

it.each([
  '/v1/secret-word%zz',
  `${sessionsPath}/secret-word${'x'.repeat(300)}`,
  '/v1/secret-word?secret-word',
])('no text of a path without a route is replied or logged: %s', async (path) => {
  await open(false)
  const reply = await ask('DELETE', path)
  expect(reply.statusCode).toBeGreaterThanOrEqual(400)
  expect(reply.body).not.toContain('secret-word')
  expect(JSON.stringify(edge.lines)).not.toContain('secret-word')
})
