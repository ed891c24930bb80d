import { fastify, type FastifyReply } from 'fastify'
import { describe, expect, it } from 'vitest'
import { addRequestCounts } from '../../../src/api/server.ts'

describe('requests that meet no route', () => {
  it('a million paths without a route are counted in one row', () => {
    const counts = addRequestCounts(fastify())
    const reply = { elapsedTime: 1 } as FastifyReply
    for (let index = 0; index < 1_000_000; index += 1) counts.countUnrouted(404, reply)
    const [row, ...more] = counts.figures()
    expect(more).toEqual([])
    expect(row).toMatchObject({ method: 'other', route: 'none', statuses: new Map([[404, 1_000_000]]) })
    expect(row?.durations.counts).toHaveLength(15)
  })
})

describe('requests of a route', async () => {
  const app = fastify()
  const counts = addRequestCounts(app)
  app.route({ method: ['GET', 'PUT'], url: '/things/:uid', handler: async () => ({}) })
  await app.ready()

  it('requests are counted in a row for each method, whatever the path parameter', async () => {
    for (let index = 0; index < 100; index += 1) await app.inject(`/things/${index}`)
    await app.inject({ method: 'PUT', url: '/things/5' })
    await app.inject({ method: 'HEAD', url: '/things/5' })
    const rows = counts.figures().map(({ method, route, statuses }) => [method, route, statuses.get(200)])
    expect(rows).toEqual([
      ['GET', '/things/:uid', 100],
      ['PUT', '/things/:uid', 1],
      ['HEAD', '/things/:uid', 1],
    ])
  })

  it('routes without requests are not shown', () => {
    expect(addRequestCounts(fastify()).figures()).toEqual([])
  })
})
