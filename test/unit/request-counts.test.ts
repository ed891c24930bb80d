import { fastify, type FastifyInstance, type onResponseHookHandler } from 'fastify'
import { describe, expect, it } from 'vitest'
import { addRequestCounts } from '../../src/api/request-counts.ts'

/** What the counts hang on a server: what is called when a route is added, and after each reply. */
function recordHooks() {
  const hooks: { onRoute?: (route: object) => void; onResponse?: onResponseHookHandler } = {}
  const app = { addHook: (name: string, hook: never) => Object.assign(hooks, { [name]: hook }) }
  const counts = addRequestCounts(app as unknown as FastifyInstance)
  const answer = (request: object, statusCode: number, elapsedTime = 1) =>
    hooks.onResponse?.call(
      {} as never,
      request as never,
      { statusCode, elapsedTime } as never,
      () => undefined,
    )
  return { counts, answer }
}

describe('requests that meet no route', () => {
  it('are one row, a million paths and methods of them', () => {
    const { counts, answer } = recordHooks()
    for (let index = 0; index < 1_000_000; index += 1)
      answer({ is404: true, url: `/${index}`, method: `M${index}` }, 404)
    const [row, ...more] = counts.figures()
    expect(more).toEqual([])
    expect(row).toMatchObject({ method: 'other', route: 'none', statuses: new Map([[404, 1_000_000]]) })
    expect(row?.durations.counts).toHaveLength(15)
  })

  it('and no hook count too', () => {
    const { counts } = recordHooks()
    counts.countUnrouted(400)
    expect(counts.figures()).toMatchObject([{ route: 'none', statuses: new Map([[400, 1]]) }])
  })
})

describe('requests of a route', async () => {
  const app = fastify()
  const counts = addRequestCounts(app)
  app.route({ method: ['GET', 'PUT'], url: '/things/:uid', handler: async () => ({}) })
  await app.ready()

  it('are a row for each method, whatever the parameter is', async () => {
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

  it('that nobody asked for are not shown', () => {
    expect(addRequestCounts(fastify()).figures()).toEqual([])
  })
})
