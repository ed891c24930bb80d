import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestEdge, loginPath, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
beforeAll(async () => {
  edge = await createTestEdge()
})
afterAll(() => edge.stop())

const own = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)

const ask = async (id: string | string[], url = '/v1/nothing') => {
  const reply = await edge.app.inject({ url, headers: { 'x-request-id': id as string } })
  return [reply.headers['x-request-id'], reply.json<Partial<ErrorReply>>().ref]
}

describe('the request id', () => {
  it.each(['a', 'build-42_step.7', '0af7651916cd43dd8448eb211c80319c', 'x'.repeat(64)])(
    'the request id is the one that the client sent: %s',
    async (id) => {
      expect(await ask(id)).toEqual([id, id])
      expect(await ask(id, '/v1/ping')).toEqual([id, undefined])
      expect(await ask(id, '/v1/%zz')).toEqual([id, id])
    },
  )

  it.each<[string, string | string[]]>([
    ['empty', ''],
    ['too long', 'x'.repeat(65)],
    ['two', ['one', 'other']],
    ['a backslash', 'a\\b'],
    ['a quote', 'a"b'],
    ['a space', 'a b'],
    ['markup', '<script>'],
    ['of another script', '\u00e4'],
  ])('the request id is a new one if that of the client is %s', async (_what, id) => {
    const [header, ref] = await ask(id)
    expect(header).toEqual(own)
    expect(ref).toBe(header)
  })

  it('the request id is in every log line of the request', async () => {
    const reply = await edge.tryLogin('alice', 'wrong', { headers: { 'x-request-id': 'find-me' } })
    expect(reply.json<ErrorReply>().ref).toBe('find-me')
    const told = edge.lines.filter(({ ref }) => ref === 'find-me')
    expect(told.length).toBeGreaterThan(1)
    expect(told).toContainEqual(expect.objectContaining({ msg: 'request', path: loginPath, status: 401 }))
  })
})
