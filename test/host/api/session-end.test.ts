import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { uploadPath } from '../../support/definition-upload.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import { examineProgram } from '../../support/programs.ts'
import { openTls, type Client } from '../../support/https-server.ts'
import { logoutPath, sessionsPath, type TestEdgeOptions } from '../../support/test-edge.ts'
import { form } from '../../support/upload-server.ts'
import { createWireEdge, type WireEdge } from '../../support/wire-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const waiting = { timeout: 60_000, interval: 5 }

let program: string
beforeAll(() => {
  program = examineProgram()
})
let wire: WireEdge
afterEach(() => wire.stop())

async function start(options: TestEdgeOptions = {}, connections = { maximum: 100, maximumPerAddress: 100 }) {
  wire = await createWireEdge({ examineProgram: program, ...options }, { connections })
  return wire.edge
}
const head = (method: string, path: string, token: string, ...fields: string[]) =>
  `${[`${method} ${path} HTTP/1.1`, 'Host: box', `Authorization: ${token}`, ...fields].join('\r\n')}\r\n\r\n`
const replied = (client: Client, status: number) =>
  waitFor(() => expect(client.received).toContain(`HTTP/1.1 ${status} `), waiting)
const closed = (client: Client) => waitFor(() => expect(client.closed).toBe(true), waiting)

/** Names in the folder of definitions, and in its staging folder. */
const onDisk = () => {
  const folder = join(wire.edge.stateDirectory, 'definitions')
  return [...readdirSync(folder), ...readdirSync(join(folder, 'staging'))].sort()
}
const lastRecord = () =>
  wire.edge.database.sql.prepare('SELECT status, actor FROM audit ORDER BY seq DESC LIMIT 1').get()

const { type, body } = form({ name: 'uploadFile', fileName: 'factory.tgz', content: definitionArchive() })

/** An upload of which so many bytes are sent. */
async function upload(token: string, bytes: number): Promise<Client> {
  const client = await openTls(wire.port, wire.cert)
  const fields = [`Content-Type: ${type}`, `Content-Length: ${body.length}`, 'Expect: 100-continue']
  client.socket.write(head('POST', uploadPath, token, ...fields))
  // Sent when the reading of the form begins.
  await replied(client, 100)
  client.socket.write(body.subarray(0, bytes))
  return client
}
const isUnderWay = () => waitFor(() => expect(onDisk()).toHaveLength(2), waiting)

async function expectRefused(client: Client): Promise<void> {
  await replied(client, 401)
  expect(client.received).toContain(
    '"code":"Unauthenticated","message":"the session of this request has ended',
  )
  await waitFor(() => expect(onDisk()).toEqual(['staging']), waiting)
  expect(wire.edge.database.sql.prepare('SELECT count(*) AS count FROM definition').get()).toEqual({
    count: 0,
  })
}

describe('an upload', () => {
  it('an upload gets 100 Continue once, also where its session ends', async () => {
    const edge = await start()
    const { access } = await edge.login('alice')
    const client = await upload(access, 600)
    await isUnderWay()
    await edge.post(logoutPath, {}, { headers: { authorization: access } })
    await replied(client, 401)
    expect(client.received.split('HTTP/1.1 100 ')).toHaveLength(2)
  })

  it('an upload whose session logs out midway gets 401 although no byte arrives any more, and leaves nothing', async () => {
    const edge = await start()
    const { access } = await edge.login('alice')
    const client = await upload(access, 600)
    await isUnderWay()
    expect((await edge.post(logoutPath, {}, { headers: { authorization: access } })).statusCode).toBe(200)
    await expectRefused(client)
    expect(edge.sessions.list()).toEqual([])
    await waitFor(() => expect(lastRecord()).toMatchObject({ status: 401 }), waiting)
    await closed(client)
  })

  it('an upload whose session another administrator ends gets 401, and the session of that administrator continues', async () => {
    const edge = await start()
    const [uploader, other] = [await edge.login('alice'), await edge.login('alice')]
    const [{ uid } = { uid: '' }] = edge.sessions.list()
    const client = await upload(uploader.access, 600)
    await isUnderWay()
    const url = `${sessionsPath}/${uid}`
    const reply = await edge.app.inject({
      method: 'DELETE',
      url,
      headers: { authorization: other.access },
    })
    expect(reply.statusCode).toBe(204)
    await expectRefused(client)
    expect(edge.sessions.list()).toHaveLength(1)
  })

  it('an upload ends when its account is locked', async () => {
    const edge = await start()
    const { access } = await edge.login('alice')
    const client = await upload(access, 600)
    await isUnderWay()
    edge.host.accounts.get('alice')!.state = 'locked'
    await edge.host.write()
    await edge.watch.check()
    await expectRefused(client)
  })

  it('an upload ends when its user loses the role of administrator', async () => {
    const edge = await start()
    const { access, refresh } = await edge.login('alice')
    const client = await upload(access, 600)
    await isUnderWay()
    const account = edge.host.accounts.get('alice')!
    edge.host.accounts.set('alice', { ...account, groups: [] })
    await edge.host.write()
    await edge.post('/v1/users/default/token/renewal', { refreshToken: refresh })
    await expectRefused(client)
  })

  it('a complete upload ends with its session while it is checked', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'edgehostd-slow-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const slow = join(folder, 'examine.cjs')
    // The examination does not end.
    writeFileSync(slow, 'setInterval(() => undefined, 1000)')
    const edge = await start({ examineProgram: slow })
    const { access } = await edge.login('alice')
    const client = await upload(access, body.length)
    await isUnderWay()
    const [session] = edge.sessions.list()
    edge.sessions.end([session!], 'test')
    await expectRefused(client)
  })

  it('an upload continues when another session of the same user ends', async () => {
    const edge = await start()
    const { access } = await edge.login('alice')
    const other = await edge.login('alice')
    const client = await upload(access, 600)
    await isUnderWay()
    await edge.post(logoutPath, {}, { headers: { authorization: other.access } })
    client.socket.write(body.subarray(600))
    await replied(client, 201)
  })
})

describe('a request', () => {
  it('a request whose session ends while its body arrives gets 401', async () => {
    const edge = await start()
    const { access } = await edge.login('bob')
    const client = await openTls(wire.port, wire.cert)
    const json = 'Content-Type: application/json'
    const length = 'Content-Length: 1000'
    client.socket.write(head('POST', logoutPath, access, json, length, 'Expect: 100-continue'))
    // Sent when the reading of the body begins.
    await replied(client, 100)
    client.socket.write('{"a":')
    await edge.post(logoutPath, {}, { headers: { authorization: access } })
    await replied(client, 401)
    await closed(client)
  })

  it('a request that ends its own session gets its reply, and its connection stays open', async () => {
    const edge = await start({ longRequestMs: 0 })
    const { access } = await edge.login('bob')
    const client = await openTls(wire.port, wire.cert)
    client.socket.write(head('POST', logoutPath, access, 'Content-Length: 0'))
    await replied(client, 200)
    client.received = ''
    client.socket.write(head('GET', '/v1/users/current', access))
    await replied(client, 401)
    expect(client.closed).toBe(false)
    client.socket.destroy()
  })
})

describe('a reply', () => {
  const size = 40_000_000
  const hostBody = JSON.stringify({ text: 'x'.repeat(size) })
  const current = '/v1/edge-mgmt/edgehosts/current'

  async function slowReader(token: string): Promise<Client> {
    const client = await openTls(wire.port, wire.cert)
    client.socket.write(head('GET', current, token))
    await replied(client, 200)
    client.socket.pause()
    return client
  }
  const isCut = (client: Client) => expect(client.received.length).toBeLessThan(size)

  it('a reply older than the limit is cut off when its session ends', async () => {
    const edge = await start({ hostBody, longRequestMs: 0 })
    const { access } = await edge.login('bob')
    const client = await slowReader(access)
    await edge.post(logoutPath, {}, { headers: { authorization: access } })
    client.socket.resume()
    await closed(client)
    isCut(client)
  })

  it('a reply younger than the limit is cut off when it reaches it', async () => {
    const edge = await start({ hostBody, longRequestMs: 500 })
    const { access } = await edge.login('bob')
    const client = await slowReader(access)
    await edge.post(logoutPath, {}, { headers: { authorization: access } })
    expect(client.closed).toBe(false)
    await waitFor(async () => expect(await connectionsOf()).toBe(0), waiting)
    client.socket.resume()
    await closed(client)
    isCut(client)
  })
  const connectionsOf = () =>
    new Promise<number>((resolve) => wire.edge.app.server.getConnections((_error, count) => resolve(count)))

  it('a reply younger than a minute is completed', async () => {
    const edge = await start({ hostBody })
    const { access } = await edge.login('bob')
    const client = await slowReader(access)
    await edge.post(logoutPath, {}, { headers: { authorization: access } })
    client.socket.resume()
    await waitFor(() => expect(client.received.length).toBeGreaterThan(size), waiting)
    client.socket.destroy()
  })
})

it('after a logout a connection counts as one without a login again, and may be closed for others', async () => {
  const edge = await start({}, { maximum: 10, maximumPerAddress: 3 })
  const { access } = await edge.login('bob')
  const client = await openTls(wire.port, wire.cert)
  client.socket.write(head('GET', '/v1/users/current', access))
  await replied(client, 200)
  for (let count = 0; count < 4; count += 1) await openTls(wire.port, wire.cert)
  expect(client.closed).toBe(false)
  client.received = ''
  client.socket.write(head('POST', logoutPath, access, 'Content-Length: 0'))
  await replied(client, 200)
  // It has been idle for the shortest time: the three others of its address are closed first.
  for (let count = 0; count < 4; count += 1) await openTls(wire.port, wire.cert)
  await closed(client)
})
