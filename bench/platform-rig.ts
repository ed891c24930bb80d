import { generateKeyPairSync } from 'node:crypto'
import { request } from 'node:http'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { DatabaseSync } from 'node:sqlite'
import { createClient, type Client } from './client.ts'
import { factsOf, uidOf } from './platform-hosts.ts'
import { startHostLoad, type HostLoad } from './platform-load.ts'
import { readUnitFlags, type Rig } from './rig.ts'
import { findPort, type ServerProcess } from './server-process.ts'

export interface StartOptions {
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
      ...{ port, certificate, path: '/v1/health/ping', log: join(folder, 'platform.log') },
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
    ...{ start, hosts, certificate, state, socketPath, hostKey: privateKey },
    async startBare(keepAliveMs) {
      const port = await findPort()
      const database = join(folder, `bare-${(bares += 1)}.db`)
      const program = join(root, 'bench', 'bare-platform.mjs')
      return rig.start({
        command: [process.execPath, program, String(port), key, certificate, database, String(keepAliveMs)],
        ...{ port, certificate, path: '/v1/health/ping', log: join(folder, 'bare.log') },
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
