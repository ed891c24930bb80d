import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { causeOfReply } from '../../../src/uplink/cause.ts'
import type { Call } from '../../../src/uplink/client.ts'
import { memory, startLinkedHost, type LinkedHostOptions } from '../../support/linked-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { hourMs, minuteMs } from '../../support/turning-clock.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let made = 0
const ends: (() => Promise<void>)[] = []
beforeAll(async () => {
  platform = await createTestPlatform()
})
afterAll(() => platform.close())
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function start(options: LinkedHostOptions = {}) {
  const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: `hostile ${(made += 1)}` } })
  const host = await startLinkedHost(platform, { hostId: `hostile-${made}`, token, ...options })
  ends.push(() => host.close())
  return host
}

const kindOf = ({ path, body }: Call) => {
  if (path.includes('/register')) return 'registration'
  if (path.includes('/login')) return Object.hasOwn(body as object, 'edgeAuthToken') ? 'proof' : 'challenge'
  if (path.includes('/events/')) return 'events'
  return path.endsWith('/health') ? 'heartbeat' : 'facts'
}
const answer = (status: number, body?: object) => {
  const cause = causeOfReply(status, body)
  return Promise.resolve({ status, ...(body ? { body } : {}), ...(cause ? { cause } : {}) })
}

describe('a reply that no platform gives', () => {
  const uid = '01890000-0000-7000-8000-000000000001'
  it.each([
    ['registration', undefined],
    ['registration', { metadata: null, aclmeta: null }],
    ['registration', { metadata: { uid: { a: 1 } }, aclmeta: { projectUid: '' } }],
    ['registration', { metadata: { uid: '../users' }, aclmeta: { projectUid: '' } }],
    ['registration', { metadata: { uid: 'a'.repeat(5_000) }, aclmeta: { projectUid: '' } }],
    ['registration', { metadata: { uid }, aclmeta: { projectUid: 'p'.repeat(5_000) } }],
    ['registration', { metadata: { uid }, aclmeta: { projectUid: [] } }],
    ['proof', undefined],
    ['proof', { Authorization: 'a', generation: 'abc' }],
    ['proof', { Authorization: 'a', generation: -1 }],
    ['proof', { Authorization: 'a', generation: 0 }],
    ['proof', { Authorization: 'a', generation: 1.5 }],
    ['proof', { Authorization: 'a', generation: 2 ** 60 }],
    ['proof', { Authorization: {}, generation: 1 }],
    ['proof', { Authorization: 'a\r\nb: c', generation: 1 }],
    ['proof', { Authorization: 'a'.repeat(100_000), generation: 1 }],
  ])('to a %s is not taken: %#', async (kind, body) => {
    const host = await start()
    host.through((call, pass) => (kindOf(call) === kind ? answer(200, body) : pass()))
    await host.rest()
    await host.rest()
    expect(host.link()).toMatchObject({ isConnected: false, cause: { kind: 'foreign' } })
    host.mend()
    await host.until(() => host.link().isConnected)
    expect(await host.registration()).toMatchObject({ generation: expect.any(Number) as number })
    expect(
      Buffer.byteLength(await readFile(join(host.stateDirectory, 'platform/registration.json'))),
    ).toBeLessThan(1_024)
  })

  it('with a nonce of a megabyte is not signed', async () => {
    const host = await start()
    const proofs: Call[] = []
    host.through((call, pass) => {
      if (kindOf(call) === 'proof') proofs.push(call)
      return kindOf(call) === 'challenge'
        ? answer(401, { code: 'LoginChallenge', details: { nonce: 'n'.repeat(1_000_000) } })
        : pass()
    })
    await host.rest()
    expect(host.link().isConnected).toBe(false)
    expect(proofs).toEqual([])
  })
})

describe('a platform that does not take events', () => {
  it('since it has no time is asked less and less, and gets heartbeats', async () => {
    const host = await start()
    await host.until(() => host.link().isConnected)
    const asked: string[] = []
    host.through((call, pass) => {
      asked.push(kindOf(call))
      return kindOf(call) === 'events' ? answer(503, { message: 'no time' }) : pass()
    })
    host.uplink.report({ severity: 'Normal', reason: 'Tried', message: '', component: 'test' })
    const from = host.clock.monotonic()
    await host.until(() => host.clock.monotonic() - from >= hourMs, 2 * hourMs)
    const count = (kind: string) => asked.filter((one) => one === kind).length
    expect(count('events')).toBeLessThan(150)
    expect(count('heartbeat')).toBeGreaterThan(55)
    host.mend()
    await host.until(() => host.link().events.waiting === 0)
  })

  it('since they are refused makes few lines', async () => {
    const host = await start()
    await host.until(() => host.link().isConnected)
    host.cut()
    await host.until(() => !host.link().isConnected)
    for (let number = 0; number < 500; number++)
      host.uplink.report({ severity: 'Normal', reason: 'Tried', message: `${number}`, component: 'test' })
    host.through((call, pass) => (kindOf(call) === 'events' ? answer(413, {}) : pass()))
    await host.until(() => host.link().events.waiting === 0)
    expect(host.lines.filter((line) => JSON.stringify(line).includes('refused event')).length).toBe(1)
  })

  it('but slowly gets a heartbeat each minute meanwhile', async () => {
    const host = await start()
    await host.until(() => host.link().isConnected)
    host.cut()
    await host.until(() => !host.link().isConnected)
    for (let number = 0; number < 3_000; number++)
      host.uplink.report({ severity: 'Warning', reason: 'Tried', message: `${number}`, component: 'test' })
    const beats: number[] = []
    host.through((call, pass) => {
      if (kindOf(call) === 'heartbeat') beats.push(host.clock.monotonic())
      if (kindOf(call) === 'events') {
        host.clock.turn(15_000)
        return answer(201, {})
      }
      return pass()
    })
    await host.until(() => host.link().events.waiting === 0)
    const gaps = beats.slice(1).map((at, index) => at - beats[index]!)
    expect(gaps.length).toBeGreaterThan(5)
    expect(Math.max(...gaps)).toBeLessThan(2 * minuteMs)
  })
})

describe('a host whose state folder cannot be used', () => {
  it('continues when the cause has passed', async () => {
    const stateDirectory = await mkdtemp(join(memory, 'linked-host-'))
    // As on a disk that is full when the host starts for the first time.
    await writeFile(join(stateDirectory, 'platform'), '')
    const host = await start({ stateDirectory, token: undefined as never })
    await host.rest()
    expect(host.link()).toMatchObject({ isConnected: false, cause: { kind: 'settings' } })
    const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: 'late' } })
    await rm(join(stateDirectory, 'platform'))
    await mkdir(join(stateDirectory, 'platform'), { mode: 0o700 })
    await writeFile(host.tokenFile, token, { mode: 0o600 })
    await host.until(() => host.link().isConnected)
    expect(host.link().cause).toBeUndefined()
  })
})

describe('what fails on the host itself', () => {
  it('of its disk is a cause that passes', async () => {
    const stateDirectory = await mkdtemp(join(memory, 'unwritable-'))
    const inTheWay = join(stateDirectory, 'platform/registration.json')
    await mkdir(inTheWay, { recursive: true })
    const host = await start({ stateDirectory })
    await host.until(() => host.link().cause !== undefined)
    expect(host.link()).toMatchObject({
      registrationStatus: 'pending',
      cause: { kind: 'storage', message: expect.stringContaining('registration.json is not a') as string },
    })
    await rm(inTheWay, { recursive: true })
    await host.until(() => host.link().isConnected)
  })

  it('of its program is said as that, with its stack in the journal, and does not end the link', async () => {
    const host = await start()
    host.through(() => {
      throw new TypeError('no such thing')
    })
    await host.until(() => host.link().cause !== undefined)
    expect(host.link().cause).toEqual({
      ...{ kind: 'defect', message: 'no such thing; the journal has more: journalctl -u edgehostd' },
    })
    expect(host.lines.map((line) => JSON.stringify(line)).join()).toContain('hostile-platform.test.ts')
    host.mend()
    await host.until(() => host.link().isConnected)
  })
})
