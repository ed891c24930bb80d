import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { addAudit, type AuditedRequest } from '../../../src/api/audit-hook.ts'
import type { Compared } from '../../../src/base/described-change.ts'

/** An app with one route that changes a value, and the messages of its records. */
async function createApp(view: () => Compared, work: (readBefore: () => void) => Promise<void>) {
  const app = Fastify({ logger: false })
  app.decorateRequest('caller', null)
  app.decorateRequest('peer')
  app.addHook('onRequest', async (request) => {
    request.peer = { address: '192.0.2.1' } as never
  })
  const ended: { message: string; status: number; begun: string | undefined }[] = []
  addAudit(app, {
    admit: () => true,
    begin: () => 'intent',
    end: async ({ message }: AuditedRequest, status, begun) => {
      ended.push({ message, status, begun })
      return 'uid'
    },
  })
  app.put('/value', {
    config: { audit: { action: 'update', kind: 'value', changes: view } },
    schema: { summary: 'Change' },
    handler: async (request, reply) => {
      await work(request.readBefore)
      return reply.code(204).send(null)
    },
  })
  return { put: () => app.inject({ method: 'PUT', url: '/value' }), ended }
}

const damaged = () => {
  throw new SyntaxError('Unexpected end of JSON input')
}

it.each([
  ['before it', (count: number) => count === 1],
  ['after it', (count: number) => count === 2],
  ['before and after it', () => true],
])(
  'a change whose resource cannot be read %s is made, answered and recorded as such',
  async (_when, isDamaged) => {
    let [reads, value] = [0, 1]
    const view = () => (isDamaged((reads += 1)) ? damaged() : { value })
    const { put, ended } = await createApp(view, async () => void (value = 2))
    expect((await put()).statusCode).toBe(204)
    expect(value).toBe(2)
    expect(ended).toEqual([{ message: 'Change, what changed cannot be read', status: 204, begun: 'intent' }])
  },
)

it('the record of a change that waited for its turn has only what this one changed', async () => {
  let value = 1
  const { put, ended } = await createApp(
    () => ({ value }),
    async (readBefore) => {
      // Another change was made while this one waited.
      value = 2
      readBefore()
      value = 3
    },
  )
  await put()
  expect(ended[0]?.message).toBe('Change, value: 2 -> 3')
})
