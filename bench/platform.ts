import { linkGround } from '../test/support/linked-host.ts'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { migrations } from '../src/edgehostd/migrations.ts'
import { openDatabase } from '../src/store/database.ts'
import { createUplink } from '../src/uplink/room.ts'
import { hostBody } from '../test/support/host-body.ts'
import { createTurningClock, hourMs } from '../test/support/turning-clock.ts'
import {
  type Measure,
  quantile,
  ratioFigure,
  readCpuMs,
  readPeakMiB,
  readRssMiB,
  single,
  spread,
} from './figure.ts'
import { factsOf, type HostLoad, requireAll, startHostLoad, uidOf } from './hosts.ts'
import { type Client, createClient, findPort, readUnitFlags, type Rig, type ServerProcess } from './rig.ts'

interface StartOptions {
  /** More flags of the runtime. */
  readonly flags?: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
}

/** A platform with hosts, and the process of these hosts. */
export interface PlatformRig {
  /** Starts the platform with the flags of its unit. All starts share one state folder. */
  start(options?: StartOptions): Promise<ServerProcess>
  /** Starts bare Fastify that writes heartbeats as the platform does, with its certificate. @param keepAliveMs for idle connections */
  startBare(keepAliveMs: number): Promise<ServerProcess>
  readonly hosts: HostLoad
  /** The private key of all its hosts, PEM. */
  readonly hostKey: string
  /** Its certificate, a PEM file. */
  readonly certificate: string
  /** Its state folder. */
  readonly state: string
  /** Its socket for root. */
  readonly socketPath: string
  /** The token of an administrator who has just signed in. */
  signIn(server: ServerProcess): Promise<string>
  client(server: ServerProcess): Client
}

const root = join(import.meta.dirname, '..')
const emailId = 'bench@plant.example'
const password = 'a long password'

/** @param count number of its hosts, which are registered */
export async function createPlatformRig(rig: Rig, name: string, count: number): Promise<PlatformRig> {
  const entry = join(dirname(rig.entry), 'edgeplatformd.cjs')
  const flags = readUnitFlags(join(root, 'systemd', 'edgeplatformd.service'))
  const folder = join(rig.folder, name)
  const state = join(folder, 'state')
  mkdirSync(state, { mode: 0o700, recursive: true })
  const [certificate, key] = ['certificate.pem', 'key.pem'].map((file) => join(state, 'tls', file)) as [
    string,
    string,
  ]
  const socketPath = join(folder, 'socket')
  const ca = () => readFileSync(certificate, 'utf8')
  let bares = 0

  async function start({ flags: more = [], environment = {} }: StartOptions = {}): Promise<ServerProcess> {
    const port = await findPort()
    const words = [
      ...['config', join(root, 'systemd', 'platform-config.yaml')],
      ...['state.directory', state, 'api.address', '127.0.0.1', 'api.port', String(port)],
      ...['api.socket.path', socketPath],
    ]
    const settings = words.flatMap((word, index) =>
      index % 2 === 0 ? [`--${word}=${words[index + 1]}`] : [],
    )
    return rig.start({
      command: [process.execPath, ...flags, ...more, entry, ...settings],
      environment,
      port,
      certificate,
      path: '/v1/health/ping',
      log: join(folder, 'platform.log'),
      core: rig.cores?.server,
    })
  }

  /** As root of the machine. */
  async function ask(method: string, path: string, body?: object): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    request({ socketPath, method, path, headers: { 'content-type': 'application/json' } }, (reply) => {
      text(reply).then((content) => {
        if ((reply.statusCode ?? 0) >= 300) reject(new Error(`${method} ${path}: ${content}`))
        else resolve(content === '' ? undefined : JSON.parse(content))
      }, reject)
    })
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
    return promise
  }

  // The first start makes key, certificate, database and the user.
  const first = await start()
  const { uid } = (await ask('POST', '/v1/users', { spec: { emailId, roles: ['admin'] } })) as { uid: string }
  const user = (await ask('GET', `/v1/users/${uid}`)) as { status: { activationLink: string } }
  await ask('PATCH', new URL(user.status.activationLink).pathname, { password })
  await first.stop()
  const pair = generateKeyPairSync('ed25519')
  const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64url')
  insertHosts(join(state, 'edgeplatform.db'), count, publicKey)
  const privateKey = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  const hosts = await startHostLoad({ certificate, privateKey, count }, rig.cores?.load)

  return {
    start,
    hosts,
    certificate,
    state,
    socketPath,
    hostKey: privateKey,
    async startBare(keepAliveMs) {
      const port = await findPort()
      const database = join(folder, `bare-${(bares += 1)}.db`)
      const program = join(root, 'bench', 'bare-platform.mjs')
      return rig.start({
        command: [process.execPath, program, String(port), key, certificate, database, String(keepAliveMs)],
        port,
        certificate,
        path: '/v1/health/ping',
        log: join(folder, 'bare.log'),
        core: rig.cores?.server,
      })
    },
    async signIn({ port }) {
      const client = createClient({ port, ca: ca() })
      const { status, body } = await client.send('POST', '/v1/auth/authenticate', {
        body: { emailId, password },
      })
      client.close()
      if (status !== 200) throw new Error(`the sign-in answers ${status}: ${body.toString()}`)
      return (JSON.parse(body.toString()) as { Authorization: string }).Authorization
    },
    client: ({ port }) => createClient({ port, ca: ca() }),
  }
}

/** Hosts of the tenant that have registered and logged in before. */
export function insertHosts(file: string, count: number, publicKey: string): void {
  const sql = new DatabaseSync(file)
  const insert = sql.prepare(
    `INSERT INTO edge_host (uid, project_uid, host_uid, name, labels, annotations, public_key, reported, generation, is_used, is_twice,
      is_next_accepted, created_at, modified_at) VALUES (?, '', ?, ?, '{}', '{}', ?, ?, 1, 1, 0, 0, ?, ?)`,
  )
  sql.exec('BEGIN')
  for (let index = 0; index < count; index += 1) {
    const { device, service, host } = factsOf(index, 0).spec
    const reported = JSON.stringify({ device, service, ...host })
    const at = 1_700_000_000_000 + index
    insert.run(uidOf(index), `edge-${index}`, `host-${index}`, publicKey, reported, at, at)
  }
  sql.exec('COMMIT')
  sql.close()
}

interface Period {
  /** Processor time of the server for each reply, user and system, microseconds. */
  readonly cpuOfReplyUs: number
  /** Processors that the server uses. */
  readonly cores: number
}

/**
 * Hosts from as many addresses, a new TLS connection and a heartbeat each in a period, and the facts of one of a hundred, against bare Fastify
 * with the same commit a second. The pages of a user are measured in a period of their own.
 */
export const measurePlatformHeartbeats: Measure = async (rig) => {
  const { count, periodMs, rounds } = rig.isQuick
    ? { count: 1_000, periodMs: 6_000, rounds: 2 }
    : { count: 10_000, periodMs: 60_000, rounds: 3 }
  rig.say(`platform-heartbeats: making ${count} hosts`)
  const platform = await createPlatformRig(rig, 'heartbeats', count)
  const { hosts } = platform
  const own = await platform.start()
  const bare = await platform.startBare(5_000)
  rig.say(`platform-heartbeats: ${count} hosts log in`)
  await hosts.run('logIn', { port: own.port, atOnce: 20 })

  let change = 0
  let failed = 0
  const period = async ({ pid, port }: ServerProcess, part = 1): Promise<Period> => {
    change += 1
    const before = readCpuMs(pid)
    const order = { port, hostCount: Math.ceil(count * part), periodMs: periodMs * part, change }
    const { durationMs, outcomes } = await hosts.run('beatOnce', order)
    const cpuMs = readCpuMs(pid) - before
    const accepted = outcomes['204'] ?? 0
    failed += sum(Object.values(outcomes)) - accepted
    return { cpuOfReplyUs: (cpuMs * 1_000) / accepted, cores: cpuMs / durationMs }
  }
  const base: Period[] = []
  const used: Period[] = []
  // The code of both is hot before the first period counts.
  for (const server of [bare, own]) await period(server, 0.2)
  failed = 0
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-heartbeats: round ${round + 1} of ${rounds}`)
    if (round % 2 === 0) base.push(await period(bare))
    used.push(await period(own))
    if (round % 2 === 1) base.push(await period(bare))
  }

  rig.say('platform-heartbeats: pages of a user')
  const token = await platform.signIn(own)
  const client = platform.client(own)
  const pages: number[] = []
  const over = new AbortController()
  const load = period(own).finally(() => over.abort())
  while (!over.signal.aborted) {
    const { status, durationMs } = await client.send('GET', '/v1/edgehosts', { token })
    if (status !== 200) throw new Error(`the list of hosts answers ${status}`)
    pages.push(durationMs)
    // Below the rate of one address.
    await sleep(120)
  }
  await load
  client.close()
  const peakMiB = readPeakMiB(own.pid)
  await Promise.all([own.stop(), bare.stop(), hosts.stop()])

  const lost = failed === 0 ? '' : `; ${failed} calls were not answered`
  const how = `${count} hosts in ${periodMs / 1_000} s, a new TLS connection each, ${rounds} pairs of periods${lost}`
  const share = (periods: readonly Period[]) => spread(periods.map(({ cores }) => cores * 100))
  const cost = (periods: readonly Period[]) => periods.map(({ cpuOfReplyUs }) => cpuOfReplyUs)
  return [
    ratioFigure('platform heartbeats: CPU ÷ bare Fastify', cost(used), cost(base), {
      target: '≤ 2',
      note: how,
    }),
    { name: 'platform heartbeats: CPU, of a core', value: share(used), unit: '%' },
    { name: 'platform heartbeats: CPU of bare Fastify, of a core', value: share(base), unit: '%' },
    { name: 'platform heartbeats: peak memory', value: single(peakMiB), unit: 'MiB', target: '≤ 400 MiB' },
    {
      name: 'platform heartbeats: p99 of a page of hosts meanwhile',
      value: single(quantile(pages, 0.99)),
      unit: 'ms',
      target: '≤ 50 ms',
      note: `${pages.length} pages of 50, p50 ${quantile(pages, 0.5).toFixed(1)} ms`,
    },
  ]
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Memory of the connections that hosts keep open from one heartbeat to the next, against bare Fastify that keeps as many. */
export const measurePlatformConnections: Measure = async (rig) => {
  const { count, idleMs, rounds } = rig.isQuick
    ? { count: 500, idleMs: 5_000, rounds: 1 }
    : { count: 2_000, idleMs: 61_000, rounds: 3 }
  const platform = await createPlatformRig(rig, 'connections', count)
  const { hosts } = platform

  /** Resident memory of a kept connection, KiB. */
  async function measure(
    { pid, port, stop }: ServerProcess,
    prepare: () => Promise<unknown>,
  ): Promise<number> {
    await prepare()
    // The code is hot and the heap has grown by requests alone.
    await hosts.run('beatOnce', { port, periodMs: 10_000 })
    const before = readRssMiB(pid)
    requireAll(await hosts.run('beatKept', { port }), '204')
    await sleep(idleMs)
    requireAll(await hosts.run('beatKept', { port }), '204 again')
    const after = readRssMiB(pid)
    await hosts.run('close', { port })
    await stop()
    return ((after - before) * 1_024) / count
  }

  const own: number[] = []
  const base: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-connections: round ${round + 1} of ${rounds}`)
    const bare = await platform.startBare(150_000)
    base.push(await measure(bare, async () => undefined))
    const server = await platform.start()
    const logIn = () => hosts.run('logIn', { port: server.port, atOnce: 20 })
    own.push(await measure(server, logIn))
  }
  await hosts.stop()
  const note = `${count} connections, idle for ${idleMs / 1_000} s and used again, ${rounds} rounds`
  return [
    {
      name: 'platform connections: memory of each',
      value: spread(own),
      unit: 'KiB',
      target: '≤ 100 KiB',
      note,
    },
    { name: 'platform connections: memory of each, bare Fastify', value: spread(base), unit: 'KiB' },
    ratioFigure('platform connections: memory ÷ bare Fastify', own, base),
  ]
}

/** Hosts that lost the platform and come back at the same moment: each logs in and sends a heartbeat. */
export const measurePlatformLogins: Measure = async (rig) => {
  const { count, rounds } = rig.isQuick ? { count: 200, rounds: 1 } : { count: 2_000, rounds: 3 }
  const platform = await createPlatformRig(rig, 'logins', count)
  const durations: number[] = []
  const peaks: number[] = []
  const ends = new Map<string, number>()
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-logins: round ${round + 1} of ${rounds}`)
    const server = await platform.start()
    const { durationMs, outcomes } = await platform.hosts.run('comeBack', { port: server.port })
    durations.push(durationMs / 1_000)
    peaks.push(readPeakMiB(server.pid))
    for (const [end, times] of Object.entries(outcomes)) ends.set(end, (ends.get(end) ?? 0) + times)
    await platform.hosts.run('close', { port: server.port })
    await server.stop()
  }
  await platform.hosts.stop()
  return [
    {
      name: `platform logins: ${count} hosts back at once, the last one`,
      value: spread(durations),
      unit: 's',
      target: '≤ 120 s',
      note: `${rounds} rounds, tries ${[...ends].map(([end, times]) => `${times} × ${end}`).join(', ')}`,
    },
    { name: 'platform logins: peak memory', value: single(Math.max(...peaks)), unit: 'MiB' },
  ]
}

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
  const ground = linkGround({
    name: 'edge-0',
    platform: {
      url: `https://127.0.0.1:${counted.port}`,
      fingerprint: new X509Certificate(readFileSync(platform.certificate)).fingerprint256,
    },
    stateDirectory,
    database,
    stopping: stop.signal,
    clock,
    log,
  })
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
      value: single((seconds / 3_600) * 100),
      unit: '%',
      target: '≤ 0.1 %',
      note: `${seconds.toFixed(2)} s, ${note}`,
    },
    {
      name: 'connected host: bytes of an hour, both ways, TLS included',
      value: single(bytes() / 1_024),
      unit: 'KiB',
      target: '≤ 195 KiB (200 KB)',
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
