import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import type { Inventory } from '../../../src/inventory/schemas.ts'
import { playedInventory } from '../../support/played-inventory.ts'
import { createTestEdge, type ErrorReply, type TestEdgeOptions } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/edgehosts/current/inventory'
const rack = readFileSync(join(import.meta.dirname, '../../fixtures/inventory/rack-server.json'), 'utf8')

async function start(options: TestEdgeOptions = {}) {
  const played = playedInventory()
  const edge = await createTestEdge({ inventoryProgram: played.program, ...options })
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  const get = (url = path, headers: Record<string, string> = {}) =>
    edge.app.inject({ method: 'GET', url, headers: { authorization: access, ...headers } })
  return { edge, played, get }
}

it('administrators get the stored inventory without a second reading', async () => {
  const { edge, played, get } = await start()
  const reply = await get()
  expect(reply.statusCode, reply.body).toBe(200)
  const { readTimestamp, ...hardware } = reply.json<Inventory>()
  expect(hardware).toEqual(JSON.parse(rack))
  expect(readTimestamp).toBe(new Date(Date.parse(readTimestamp)).toISOString())
  expect((await get()).body).toBe(reply.body)
  expect(played.starts()).toBe(1)
  const { access } = await edge.login('bob')
  expect((await edge.get(path, access)).json<ErrorReply>()).toMatchObject({ code: 'Forbidden' })
  expect((await edge.get(path)).statusCode).toBe(401)
})

it('the ETag of the inventory is answered with 304 until a reading differs', async () => {
  const { played, get } = await start()
  const { headers } = await get()
  const held = { 'if-none-match': String(headers.etag) }
  const same = await get(path, held)
  expect(same.statusCode).toBe(304)
  expect(same.body).toBe('')
  played.say(rack.replace('7QX4B93', '8QX4B93'))
  const changed = await get(`${path}?refresh=true`, held)
  expect(changed.statusCode).toBe(200)
  expect(changed.json<Inventory>().system?.serial).toBe('8QX4B93')
  expect(played.starts()).toBe(2)
})

it('requests during a reading share the next one', async () => {
  const { played, get } = await start()
  const replies = await Promise.all(Array.from({ length: 6 }, () => get(`${path}?refresh=true`)))
  expect(replies.map(({ statusCode }) => statusCode)).toEqual(Array(6).fill(200))
  // The reading that runs may have begun before the last of these requests.
  expect(played.starts()).toBe(2)
})

it('without a reading the reply is the reason; when a later reading fails, the last one is kept with a condition', async () => {
  const { played, get } = await start()
  played.fail()
  const none = await get()
  expect(none.statusCode).toBe(503)
  expect(none.json<ErrorReply>()).toMatchObject({
    code: 'NotReady',
    message: expect.stringMatching(/^the inventory cannot be read: .+/) as string,
  })
  played.say(rack)
  expect((await get()).statusCode).toBe(200)
  played.say('{"half')
  const kept = (await get(`${path}?refresh=true`)).json<Inventory>()
  expect(kept.system?.serial).toBe('7QX4B93')
  expect(kept.conditions?.at(-1)).toMatchObject({ type: 'inventory', reason: 'CannotBeRead' })
})

it('the inventory is there after a restart without a new reading', async () => {
  const stateDirectory = mkdtempSync(join(tmpdir(), 'edgehostd-kept-'))
  onTestFinished(() => rmSync(stateDirectory, { recursive: true }))
  const played = playedInventory()
  const bodies: string[] = []
  for (const turn of [1, 2]) {
    const edge = await createTestEdge({ inventoryProgram: played.program, stateDirectory })
    const { access } = await edge.login('alice')
    bodies.push((await edge.get(path, access)).body)
    await edge.stop()
    expect(played.starts(), `after start ${turn}`).toBe(1)
  }
  expect(bodies[1]).toBe(bodies[0])
})

it.each([
  ['no JSON', '{broken'],
  ['of another form', '{}'],
  ['with a part of another form', rack.replace('"disks": [', '"disks": [{}, ')],
])('the inventory is read again where the stored one is %s', async (_, text) => {
  const stateDirectory = mkdtempSync(join(tmpdir(), 'edgehostd-kept-'))
  onTestFinished(() => rmSync(stateDirectory, { recursive: true }))
  const played = playedInventory()
  const answer = async () => {
    const edge = await createTestEdge({ inventoryProgram: played.program, stateDirectory })
    const { access } = await edge.login('alice')
    expect((await edge.get('/v1/edge-mgmt/edgehosts/current', access)).statusCode).toBe(200)
    const reply = await edge.get(path, access)
    await edge.stop()
    return reply
  }
  await answer()
  const database = new DatabaseSync(join(stateDirectory, 'edgehostd.db'))
  expect(database.prepare('UPDATE inventory SET hardware = ?').run(text).changes).toBe(1)
  database.close()
  const reply = await answer()
  expect(reply.statusCode, reply.body).toBe(200)
  expect(reply.json<Inventory>().system?.serial).toBe('7QX4B93')
  expect(played.starts()).toBe(2)
})

it('output of the program in another form is refused, and no text of it repeated', async () => {
  const { played, get } = await start()
  for (const text of ['null', '{"disks": "7QX4B93"}', '{"serial": 7QX4B93']) {
    played.say(text)
    const reply = await get()
    expect(reply.json<ErrorReply>()).toMatchObject({ code: 'NotReady' })
    expect(reply.body).not.toContain('7QX4B93')
  }
})

it('a reading counts although a tool outlives the program, which systemd takes for a failure', async () => {
  const { played, get } = await start()
  appendFileSync(played.program, '\nprocess.exitCode = 1')
  const reply = await get()
  expect(reply.json<Inventory>().system?.serial).toBe('7QX4B93')
})
