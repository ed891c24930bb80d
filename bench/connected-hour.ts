import { mkdirSync, writeFileSync, readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { openDatabase } from '../src/store/database.ts'
import { migrations } from '../src/edgehostd/migrations.ts'
import { createSecrets } from '../src/secrets/secrets.ts'
import { createUplink } from '../src/uplink/room.ts'
import { hostBody } from '../test/support/host-body.ts'
import { createTurningClock, hourMs } from '../test/support/turning-clock.ts'
import type { Measure } from './figure.ts'
import { single } from './numbers.ts'
import { uidOf } from './platform-hosts.ts'
import { createPlatformRig } from './platform-rig.ts'

/**
 * What an hour of a connected host without events costs: all calls of an hour over one kept TLS connection to a platform, one after the other,
 * since only the time between them is left out.
 */
export const measureConnectedHour: Measure = async (rig) => {
  const platform = await createPlatformRig(rig, 'hour', 1)
  const server = await platform.start()
  const counted = await startCounter(server.port)
  const stateDirectory = join(rig.folder, 'hour-host')
  mkdirSync(join(stateDirectory, 'platform'), { recursive: true })
  writeFileSync(join(stateDirectory, 'platform', 'host-key.pem'), platform.hostKey, { mode: 0o600 })
  const registration = { edgeHostUid: uidOf(0), projectUid: '', hostId: 'edge-0', generation: 1 }
  writeFileSync(join(stateDirectory, 'platform', 'registration.json'), JSON.stringify(registration))
  const log = pino({ level: 'silent' })
  const database = openDatabase(join(stateDirectory, 'edgehostd.db'), log, migrations)
  const stop = new AbortController()
  const clock = createTurningClock()
  const body = await hostBody()
  const over = Promise.withResolvers<undefined>()
  let turns = 0
  const ground = {
    config: {
      platform: {
        url: `https://127.0.0.1:${counted.port}`,
        fingerprint: new X509Certificate(readFileSync(platform.certificate)).fingerprint256,
      },
      host: { mode: 'connected', name: 'edge-0' },
    },
    version: '1.2.3',
    stateDirectory,
    secrets: createSecrets(Buffer.alloc(32)),
    database,
    record: () => undefined,
    stopping: stop.signal,
    clock,
    log,
  } as const
  const uplink = await createUplink(ground, {
    hostId: 'edge-0',
    host: {
      current: () => ({ body, etag: 'unchanged' }),
      firstReading: () => Promise.resolve(),
      hostName: () => 'edge-0',
      refresh: () => Promise.resolve(),
    },
    limits: { definitionBytes: 0, reserveBytes: 0 },
    pause(ms) {
      clock.turn(Math.ceil(ms))
      turns += 1
      // No more than the platform lets an address send in a second.
      if (clock.monotonic() - startedAt < hourMs) return sleep(200)
      over.resolve(undefined)
      return new Promise(() => undefined)
    },
  })
  const startedAt = clock.monotonic()
  rig.say('connected-hour: the calls of an hour')
  const before = process.cpuUsage()
  uplink.background?.()
  await over.promise
  const { user, system } = process.cpuUsage(before)
  const { bytes, connections } = counted
  const state = uplink.consoleLine()
  counted.close()
  database.close()
  await platform.hosts.stop()
  await server.stop()
  const seconds = (user + system) / 1_000_000
  const note = `${turns} turns, ${connections()} connection, ${state ?? ''}`
  return [
    {
      name: 'connected host: CPU of an hour, of a core',
      ...{ value: single((seconds / 3_600) * 100), unit: '%', target: '≤ 0.1 %' },
      note: `${seconds.toFixed(2)} s, ${note}`,
    },
    {
      name: 'connected host: bytes of an hour, both ways, TLS included',
      ...{ value: single(bytes() / 1_024), unit: 'KiB', target: '≤ 195 KiB (200 KB)' },
      note,
    },
  ]
}

/** Counts what passes to a port, both ways, above TCP. */
async function startCounter(port: number) {
  let bytes = 0
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    const target = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.on('data', (part: Buffer) => (bytes += part.length))
      from.pipe(to)
      from.on('error', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    bytes: () => bytes,
    connections: () => connections,
    close: () => void server.close(),
  }
}
