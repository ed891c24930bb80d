import { linkGround } from '../../support/linked-host.ts'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createUplink } from '../../../src/uplink/room.ts'
import { hostBody } from '../../support/host-body.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'
import { clusterUid, deliveryOf, playDownload } from '../../support/played-download.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

const registrationToken = 'REGISTRATION-0123456789'
const sessionToken = 'SESSION-0123456789'
const key = 'LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB'

/** A host and its platform over TLS; `refuse` may answer in place of the platform. The pauses of the link are short. */
async function start() {
  const delivery = deliveryOf()
  const platform = await playDownload(delivery)
  let generation = 0
  const played = {
    refuse: undefined as ((path: string, reply: ServerResponse) => boolean) | undefined,
    asked: [] as string[],
  }
  async function answer(request: IncomingMessage, reply: ServerResponse) {
    const { url = '' } = request
    const body = await json(request).catch(() => undefined)
    played.asked.push(url)
    if (played.refuse?.(url, reply) === true) return
    const say = (status: number, value: unknown) => reply.writeHead(status).end(JSON.stringify(value))
    if (url.endsWith('/register'))
      say(201, { metadata: { uid: 'h1', name: 'n' }, aclmeta: { projectUid: '', tenantUid: 'tenant-1' } })
    else if (url.endsWith('/login') && Object.hasOwn(body as object, 'edgeAuthToken'))
      say(200, {
        Authorization: sessionToken,
        generation: ++generation,
        hostChecksum: '',
        projectName: 'north',
      })
    else if (url.endsWith('/login')) say(401, { code: 'LoginChallenge', details: { nonce: 'n' } })
    else reply.writeHead(204, { 'edgehost-wanted': delivery.header }).end()
  }
  platform.others = (request, reply) => void answer(request, reply)

  const stateDirectory = await mkdtemp(join(tmpdir(), 'uplink-'))
  const [caFile, tokenFile] = [join(stateDirectory, 'ca.pem'), join(stateDirectory, 'token')]
  await writeFile(caFile, platform.ca)
  await writeFile(tokenFile, registrationToken)
  await mkdir(join(stateDirectory, 'platform'), { mode: 0o700 })
  const { log, lines } = captureLog()
  const database = openDatabase(join(stateDirectory, 'edgehostd.db'), log)
  const stop = new AbortController()
  const facts = await hostBody()
  const clock = createTurningClock()
  const ground = linkGround({
    name: 'press-1',
    platform: { url: platform.url, caFile, registrationTokenFile: tokenFile },
    stateDirectory,
    database,
    stopping: stop.signal,
    clock,
    log,
  })
  const uplink = await createUplink(ground, {
    hostId: 'edge-1',
    host: {
      current: () => ({ body: facts, etag: 'a' }),
      firstReading: () => Promise.resolve(),
      hostName: () => 'press-1',
      refresh: () => Promise.resolve(),
    },
    limits: { definitionBytes: 10_000_000, reserveBytes: 0 },
    async pause(ms) {
      clock.turn(Math.ceil(ms))
      await sleep(5)
    },
  })
  uplink.attachCluster({
    current: () => undefined,
    apply: async () => ({ kind: 'applied', revision: 1 }),
    report: async () => ({
      uid: clusterUid,
      state: 'Running',
      revision: 1,
      message: '',
      steps: [],
      conditions: [],
      packs: [],
      kubeconfig: `users:\n- user:\n    client-key-data: ${key}\n`,
    }),
  })
  uplink.background?.()
  let hasEnded = false
  const end = async () => {
    stop.abort()
    await uplink.stop?.()
    if (!hasEnded) database.close()
    hasEnded = true
  }
  onTestFinished(async () => {
    await end()
    await rm(stateDirectory, { recursive: true })
  })
  return { uplink, played, end, clock, link: uplink.link, log: () => JSON.stringify(lines) }
}

it.each<Readonly<Record<string, number>>>([
  { '/health': 403 },
  { '/health': 401, '/login': 403 },
  { '/bulk': 403 },
  { '/assets/kubeconfig': 403 },
])(
  'a refusal that repeats secrets of this host brings none into the API or the journal: %j',
  async (refused) => {
    const { uplink, played, link, log } = await start()
    const isTold = () => played.asked.some((path) => path.endsWith('/assets/kubeconfig'))
    played.refuse = (path, reply) => {
      const status = Object.entries(refused).find(([end]) => path.endsWith(end))?.[1]
      if (status === undefined || !isTold()) return false
      const message = `you sent ${registrationToken}, ${sessionToken} and ${key.slice(0, 40)}`
      reply.writeHead(status).end(JSON.stringify({ code: 'X', message }))
      return true
    }
    await expect.poll(isTold).toBe(true)
    expect(link()).toMatchObject({ projectName: 'north' })
    uplink.report({ severity: 'Normal', reason: 'Tried', message: '', component: 'test' })
    const masked = 'the platform answered 403: you sent (secret), (secret) and (secret)'
    await expect.poll(() => link().cause?.message).toBe(masked)
    await expect.poll(log).toContain(masked)
    expect(JSON.stringify(link()) + log()).not.toMatch(/REGISTRATION|SESSION|LS0tLS1C/)
  },
)

it('a stop does not wait for a platform that is silent', async () => {
  // No request ends by its time limit: a stop that waits for one would not end.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal)
  const { played, end } = await start()
  played.refuse = (path) => path.endsWith('/health')
  await expect.poll(() => played.asked.some((path) => path.endsWith('/health'))).toBe(true)
  await end()
  expect(played.asked.filter((path) => path.endsWith('/health'))).toHaveLength(1)
})

it('a link that connects anew sends a heartbeat at once, also where the one before gets no answer, and says since when', async () => {
  const { uplink, played, clock } = await start()
  const beats: number[] = []
  uplink.onBeat((connectedSince) => void beats.push(connectedSince))
  await expect.poll(() => uplink.link().isConnected).toBe(true)
  // A platform that does not answer on the connections of before.
  let isSilent = true
  const asked = () => played.asked.filter((path) => path.endsWith('/health')).length
  const before = asked()
  played.refuse = (path) => isSilent && path.endsWith('/health')
  await expect.poll(asked).toBeGreaterThan(before)
  const from = clock.monotonic()
  isSilent = false
  uplink.reconnect()
  await expect.poll(() => beats.some((since) => since >= from)).toBe(true)
  // The call that was cut off is no failure of the platform.
  expect(uplink.link()).toMatchObject({ isConnected: true })
  expect(uplink.link().cause).toBeUndefined()
})
