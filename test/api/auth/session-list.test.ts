import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestEdge, sessionsPath, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

interface SessionList {
  items: Record<string, unknown>[]
  listmeta: { continue: string; count: number; limit: number; offset: number }
}

let edge: TestEdge
let token: string
beforeAll(async () => {
  edge = await createTestEdge()
  for (let count = 0; count < 4; count += 1) {
    await edge.login('bob', { remoteAddress: `192.0.2.${count}` })
    edge.clock.turn(1_000)
  }
  token = (await edge.login('alice')).access
})
afterAll(() => edge.stop())

const ask = (query: Record<string, string>) =>
  edge.get(`${sessionsPath}?${new URLSearchParams(query).toString()}`, token)
const list = async (query: Record<string, string>) => {
  const reply = await ask(query)
  expect(reply.statusCode, reply.body).toBe(200)
  return reply.json<SessionList>()
}

describe('the list of sessions', () => {
  it('the list of sessions is newest first, page by page, each session once', async () => {
    const addresses: unknown[] = []
    const figures: unknown[] = []
    let next = ''
    do {
      const { items, listmeta } = await list({ limit: '2', continue: next })
      addresses.push(...items.map(({ address }) => address))
      figures.push([listmeta.count, listmeta.limit, listmeta.offset])
      next = listmeta.continue
    } while (next)
    expect(addresses).toEqual(['127.0.0.1', '192.0.2.3', '192.0.2.2', '192.0.2.1', '192.0.2.0'])
    expect(figures).toEqual([
      [5, 2, 2],
      [5, 2, 4],
      [5, 1, 5],
    ])
  })

  it('the list of sessions accepts filters, an order and fields together', async () => {
    const { items, listmeta } = await list({
      filters: 'userName=bobANDaddress=192.0.2.3ORaddress=192.0.2.1',
      orderBy: 'address=1',
      fields: 'address,userName',
    })
    expect(items).toEqual([
      { address: '192.0.2.1', userName: 'bob' },
      { address: '192.0.2.3', userName: 'bob' },
    ])
    expect(listmeta).toMatchObject({ count: 2, limit: 2, continue: '' })
  })

  it('the list of sessions begins at an offset, and ignores it with a token', async () => {
    const first = await list({ limit: '1', offset: '1' })
    expect(first.items.map(({ address }) => address)).toEqual(['192.0.2.3'])
    const second = await list({ limit: '1', offset: '4', continue: first.listmeta.continue })
    expect(second.items.map(({ address }) => address)).toEqual(['192.0.2.2'])
    expect(second.listmeta.offset).toBe(3)
  })

  it('the list of sessions filters by a time as the item shows it', async () => {
    const { items } = await list({ limit: '1' })
    const creationTimestamp = String(items[0]?.creationTimestamp)
    const found = await list({ filters: `creationTimestamp=${creationTimestamp}` })
    expect(found.items).toEqual(items)
  })

  it('the list of sessions treats an empty parameter as not set', async () => {
    const empty = { limit: '', offset: '', continue: '', fields: '', filters: '', orderBy: '' }
    expect(await list(empty)).toEqual(await list({}))
  })

  it.each([
    ['limit', { limit: '0' }],
    ['limit', { limit: '51' }],
    ['limit', { limit: '-1' }],
    ['limit', { limit: '1.5' }],
    ['limit', { limit: 'ten' }],
    ['limit', { limit: '0x10' }],
    ['limit', { limit: '1e1' }],
    ['limit', { limit: ' 1' }],
    ['limit', { limit: '+1' }],
    ['limit', { limit: 'Infinity' }],
    ['offset', { offset: '-1' }],
    ['offset', { offset: '1e99' }],
    ['continue', { continue: 'garbage' }],
    ['continue', { continue: 'x'.repeat(5_000) }],
    ['filters', { filters: 'isCurrent=true' }],
    ['filters', { filters: 'creationTimestamp=2026-02-30T00:00:00Z' }],
    ['filters', { filters: 'x'.repeat(2_001) }],
    ['fields', { fields: 'uid,refreshHash' }],
    ['orderBy', { orderBy: 'refreshHash=1' }],
  ])('the list of sessions refuses a bad %s, naming it: %j', async (field, query) => {
    const reply = await ask(query)
    const { code, details, message } = reply.json<ErrorReply>()
    expect([reply.statusCode, code, details?.field]).toEqual([400, 'BadRequest', field])
    expect(message).toContain(field)
  })

  it('the list of sessions refuses a repeated parameter', async () => {
    for (const parameter of [
      'limit=1&limit=2',
      'filters=role=admin&filters=role=viewer',
      'continue=&continue=',
    ]) {
      expect((await edge.get(`${sessionsPath}?${parameter}`, token)).statusCode, parameter).toBe(400)
    }
  })

  it('the list of sessions refuses an altered continue token, and one of another query', async () => {
    const { listmeta } = await list({ limit: '1' })
    const altered = listmeta.continue.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))
    for (const query of [{ continue: altered }, { continue: listmeta.continue, filters: 'role=admin' }]) {
      const reply = await ask(query)
      expect([reply.statusCode, reply.json<ErrorReply>().details?.field]).toEqual([400, 'continue'])
    }
  })

  it('a viewer cannot count or find the sessions of others', async () => {
    const { access } = await edge.login('bob')
    const asked = await edge.get(`${sessionsPath}?filters=userName=alice`, access)
    expect(asked.json<SessionList>()).toMatchObject({ items: [], listmeta: { count: 0 } })
    // A continue token contains only the position; the user is taken from the request.
    const { listmeta } = await list({ limit: '1' })
    const next = await edge.get(`${sessionsPath}?continue=${listmeta.continue}`, access)
    expect(new Set(next.json<SessionList>().items.map(({ userName }) => userName))).toEqual(new Set(['bob']))
  })
})
