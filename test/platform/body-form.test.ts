import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playEdgeHost } from '../support/played-edge-host.ts'
import { createTestPlatform } from '../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Readonly<Record<string, string>>

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', 'a long password', ['admin'])
  admin = await platform.signIn('root@plant.example', 'a long password')
})
afterAll(() => platform.close())

async function send(method: 'POST' | 'PUT', url: string, payload: string, headers = admin) {
  const type = { 'content-type': 'application/json' }
  const reply = await platform.app.inject({ method, url, payload, headers: { ...headers, ...type } })
  return { status: reply.statusCode, text: reply.body }
}

describe('the form of a body', () => {
  it('is not so deep that it cannot be compared with what is there', async () => {
    const deep = '['.repeat(400_000) + ']'.repeat(400_000)
    const reply = await send('POST', '/v1/projects', `{"metadata":{"name":"deep"},"status":${deep}}`)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.text).toContain('128 levels')
  })

  it('has only whole characters: the pages of a list by what a host reports come to an end', async () => {
    const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: 'halves' } })
    for (const text of ['\\ud800', '\\udc00', '192.0.2.1']) {
      const host = playEdgeHost(platform)
      await host.register(token)
      await host.logIn()
      const facts = `{"spec":{"device":{},"host":{"hostAddress":"${text}"}}}`
      const reply = await send('PUT', `/v1/edgehosts/${host.uid}`, facts, { authorization: host.token })
      expect(reply.status).toBe(text.startsWith('\\') ? 400 : 204)
    }
    const seen: string[] = []
    let next = ''
    do {
      const url = `/v1/edgehosts?limit=1&orderBy=spec.host.hostAddress=-1&continue=${encodeURIComponent(next)}`
      const { items, listmeta } = (await platform.app.inject({ url, headers: admin })).json<{
        items: { metadata: { uid: string } }[]
        listmeta: { continue: string }
      }>()
      seen.push(...items.map(({ metadata }) => metadata.uid))
      next = listmeta.continue
    } while (next !== '' && seen.length < 10)
    expect(seen).toHaveLength(3)
    expect(new Set(seen).size).toBe(3)
  })

  it('has no misspelt field, also where a field of another object has that name', async () => {
    const { uid } = platform.rooms.hosts.tokens.create({ metadata: { name: 'labelled' } })
    const label = { metadata: { label: { hall: '3' } } }
    const reply = await send('PUT', `/v1/edgehosts/tokens/${uid}`, JSON.stringify(label))
    expect([reply.status, reply.text]).toEqual([
      400,
      expect.stringContaining('metadata.label is misspelt; write labels'),
    ])
  })
})
