import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestEdge, loginPath, sessionsPath, type TestEdge } from '../../support/test-edge.ts'

const uid = '4bf5d3a1-0000-4000-8000-000000000001'

let edge: TestEdge
let token = ''
beforeAll(async () => {
  edge = await createTestEdge()
  token = (await edge.login('bob')).access
})
afterAll(() => edge.stop())

it.each([
  ['a path with its query', 'POST', `${loginPath}?password=word`, loginPath],
  ['a UUID', 'DELETE', `${sessionsPath}/${uid}`, `${sessionsPath}/${uid}`],
  ['another parameter', 'DELETE', `${sessionsPath}/word`, `${sessionsPath}/:uid`],
  ['a path that is not there', 'DELETE', '/v1/word', 'unknown'],
  ['a method that is not there', 'PUT', '/v1/ping?word', 'unknown'],
])('the log line of %s contains nothing else from the client', async (_what, method, url, path) => {
  for (const authorization of [token, 'none']) {
    edge.lines.length = 0
    await edge.app.inject({ method: method as 'POST', url, headers: { authorization } })
    expect(edge.lines.filter(({ msg }) => msg === 'request')).toEqual([
      expect.objectContaining({ method, path }),
    ])
    expect(JSON.stringify(edge.lines)).not.toContain('word=')
  }
})

it('a path parameter that is not a UUID is refused, and the field named', async () => {
  const url = `${sessionsPath}/word`
  const reply = await edge.app.inject({ method: 'DELETE', url, headers: { authorization: token } })
  expect(reply.statusCode).toBe(400)
  expect(reply.json()).toMatchObject({ code: 'BadRequest', details: { field: 'uid' } })
})
