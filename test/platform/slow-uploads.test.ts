import { readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openTls, type Client } from '../support/https-server.ts'
import {
  importProfile,
  packUpload,
  smallPack,
  smallProfile,
  tarOf,
  uploadPack,
} from '../support/platform-packs.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { waitFor } from '../support/wait-for.ts'

const password = 'a long password'
// What a slow body still lacks: at 20 kB/s it takes minutes, longer than a test.
const restBytes = 4_000_000
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let anna: Record<string, string>
let ben: Record<string, string>
let drips: NodeJS.Timeout[]

async function start(flags: readonly string[] = []) {
  platform = await createTestPlatform({ flags })
  await platform.start()
  for (const name of ['anna', 'ben']) await platform.addUser(`${name}@plant.example`, password, ['operator'])
  anna = await platform.signIn('anna@plant.example', password)
  ben = await platform.signIn('ben@plant.example', password)
}

beforeEach(() => {
  drips = []
})
afterEach(async () => {
  for (const drip of drips) clearInterval(drip)
  await platform.close()
})

interface SlowBody {
  readonly client: Client
  /** Sends all that is left. */
  finish(): void
  status(): Promise<number>
}

/** Begins a request over TLS whose body arrives at 20 kB/s. */
async function begin(path: string, headers: Record<string, string>, body: Buffer): Promise<SlowBody> {
  const { port } = platform.app.server.address() as AddressInfo
  const ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  const client = await openTls(port, ca)
  const fields = Object.entries({ host: 'localhost', ...headers, 'content-length': body.length })
  const lines = fields.map(([name, value]) => `${name}: ${value}`)
  client.socket.write([`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
  let sent = body.length - restBytes
  client.socket.write(body.subarray(0, sent))
  const timer = setInterval(() => {
    client.socket.write(body.subarray(sent, (sent += 1_000)))
    if (sent >= body.length) clearInterval(timer)
  }, 50)
  drips.push(timer)
  return {
    client,
    finish() {
      clearInterval(timer)
      client.socket.write(body.subarray(sent))
    },
    async status() {
      await waitFor(() => expect(client.received).toMatch(/^HTTP\/1\.1 \d{3}/), { timeout: 60_000 })
      return Number(client.received.slice(9, 12))
    },
  }
}

const profile = (name: string) => JSON.stringify(smallProfile(name))
const slowImport = (name: string, headers = anna) =>
  begin(
    '/v1/clusterprofiles/import',
    { ...headers, 'content-type': 'application/json' },
    // A text may end with spaces.
    Buffer.from(profile(name) + ' '.repeat(restBytes)),
  )
function slowPack(name: string, headers = anna) {
  const files = smallPack(name, '1.0.0', { 'charts/large.tgz': Buffer.alloc(restBytes + 100_000) })
  const { payload, headers: form } = packUpload(tarOf(files))
  return begin('/v1/packs', { ...headers, ...form }, payload)
}
/** What has arrived and is not examined yet. */
const arriving = () =>
  ['profiles', 'packs'].flatMap((room) => readdirSync(join(platform.stateDirectory, room, 'staging'))).length

describe('a body that arrives slowly', () => {
  it('it gives its place to an import or an upload that waits, of another user and of the same one, and goes on', async () => {
    await start()
    const slow = [
      await slowImport('slow-1'),
      await slowImport('slow-2'),
      await slowPack('slow-3'),
      await slowPack('slow-4'),
    ]
    await waitFor(() => expect(arriving()).toBe(4))
    expect((await importProfile(platform, profile('of-ben'), ben)).statusCode).toBe(201)
    expect((await importProfile(platform, profile('of-anna'), anna)).statusCode).toBe(201)
    expect((await uploadPack(platform, tarOf(smallPack('of-ben')), ben)).statusCode).toBe(201)
    expect((await uploadPack(platform, tarOf(smallPack('of-anna')), anna)).statusCode).toBe(201)
    expect(slow.map(({ client }) => client.received)).toEqual(['', '', '', ''])
    expect(slow.map(({ client }) => client.closed)).toEqual([false, false, false, false])
    for (const each of slow) each.finish()
    for (const each of slow) expect(await each.status()).toBe(201)
    expect(platform.lines.some(({ msg }) => String(msg).includes('waited for others and went on'))).toBe(true)
  })

  it('as many as a user may have keep no other user waiting; a further one of the user waits, and is refused with what to do', async () => {
    await start(['--platform.packs.maximumPerUser=3', '--platform.packs.waitSeconds=1'])
    const slow = [await slowImport('slow-1'), await slowImport('slow-2'), await slowPack('slow-3')]
    await waitFor(() => expect(arriving()).toBe(3))
    const refused = await importProfile(platform, profile('too-many'), anna)
    expect(refused.statusCode).toBe(503)
    expect(refused.headers['retry-after']).toBe('30')
    expect(refused.json()).toMatchObject({
      code: 'TooManyUploads',
      message:
        'no place for this upload of packs and cluster profiles: after 1 s 3 of your own are still not finished, or 128 of all users; wait until others are done, or cancel one, and send it again',
      details: { field: 'uploadFile', reason: 'TooManyUnfinished', waitedSeconds: 1, ofUser: 3, ofAll: 128 },
    })
    expect((await importProfile(platform, profile('of-ben'), ben)).statusCode).toBe(201)
    // One that waits begins when another one has ended.
    const waiting = importProfile(platform, profile('waits'), anna)
    slow[0]?.finish()
    expect((await waiting).statusCode).toBe(201)
    for (const each of slow) each.finish()
    for (const each of slow) expect(await each.status()).toBe(201)
  })
})
