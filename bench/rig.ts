import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { Agent, request } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** How thorough a run is. */
interface Pace {
  readonly isQuick: boolean
  /** Megabytes of the uploads of content, if they are not those of the figure. */
  readonly megabytes: number | undefined
  /** Shows the progress to the user; it is no part of the results. */
  readonly say: (message: string) => void
}

/** What every figure is measured with. `dispose` removes all of it. */
export interface Rig extends Pace {
  readonly accounts: Accounts
  /** The pamtester that the daemon runs. */
  readonly pamtester: string
  /** Processors for the server and for the load; nothing where there is only one. */
  readonly cores: { readonly server: number; readonly load: number } | undefined
  /** Temporary folder for the files of this run. */
  readonly folder: string
  /** V8's flags as the unit gives them. */
  readonly flags: readonly string[]
  /** The program that is measured: the bundle. */
  readonly entry: string
  /** Starts the daemon with the shipped configuration. All starts share one state folder. */
  startDaemon(options?: {
    readonly core?: number | undefined
    readonly settings?: Settings
    /** Another build of the daemon. */
    readonly entry?: string
    /** More flags of the runtime. */
    readonly flags?: readonly string[]
    readonly environment?: NodeJS.ProcessEnv
  }): Promise<ServerProcess>
  /** Starts bare Fastify with the daemon's certificate. */
  startBare(options?: { readonly core?: number | undefined; readonly body?: Buffer }): Promise<ServerProcess>
  /** Starts any other server, which ends with the rig at the latest. */
  start(order: ServerOrder): Promise<ServerProcess>
  /** A client of a server with the daemon's certificate. */
  client(server: ServerProcess): Client
  /** Certificate that clients trust, a PEM file. */
  readonly certificate: string
  dispose(): Promise<void>
}

/** The daemon's settings by their names. */
export type Settings = Readonly<Record<string, string | number>>

interface RigOptions extends Pace {
  /** The program that is measured: the bundle. */
  readonly entry: string
}

const root = join(import.meta.dirname, '..')

/** @throws Error that names what is missing; then nothing is left behind */
export async function createRig({ entry, isQuick, megabytes, say }: RigOptions): Promise<Rig> {
  const pamtester = find('pamtester')
  const flags = readUnitFlags(join(root, 'systemd', 'edgehostd.service'))
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-bench-'))
  const started: Promise<ServerProcess>[] = []
  const undo = [() => rmSync(folder, { recursive: true, force: true })]
  const dispose = async () => {
    // A server that is still starting is waited for, so that it does not outlive this process. A second stop does nothing.
    await Promise.allSettled(started.map(async (server) => (await server).stop()))
    for (const step of undo.splice(0).reverse()) step()
  }

  const track = (server: Promise<ServerProcess>): Promise<ServerProcess> => {
    started.push(server)
    return server
  }

  try {
    const accounts = makeAccounts(join(root, 'systemd', 'edgehostd.pam'))
    undo.push(() => accounts.remove())
    const state = join(folder, 'state')
    const certificate = join(state, 'tls', 'certificate.pem')
    const caches = join(folder, 'cache')
    for (const each of [state, caches]) mkdirSync(each, { mode: 0o700 })
    // As the unit's CacheDirectory.
    const environment = { CACHE_DIRECTORY: caches }
    const fixed = settingsOf(state, accounts.service, pamtester)

    const rig: Rig = {
      isQuick,
      megabytes,
      say,
      entry,
      accounts,
      pamtester,
      certificate,
      cores: availableParallelism() > 1 && find('taskset') !== '' ? { server: 0, load: 1 } : undefined,
      folder,
      flags,
      async startDaemon({ core, settings = {}, ...more } = {}) {
        const port = await findPort()
        const all = Object.entries({ ...fixed, ...settings, 'api.port': port })
        const words = all.map(([name, value]) => `--${name}=${value}`)
        const program = [...flags, ...(more.flags ?? []), more.entry ?? entry]
        const order = {
          command: [process.execPath, ...program, ...words] as const,
          environment: { ...environment, ...more.environment },
          log: join(folder, 'daemon.log'),
        }
        return track(startServer({ ...order, port, certificate, path: '/v1/ping', core }))
      },
      async startBare({ core, body } = {}) {
        const port = await findPort()
        const bodyFile = join(folder, 'body')
        if (body) writeFileSync(bodyFile, body)
        const material = [join(state, 'tls', 'key.pem'), certificate, ...(body ? [bodyFile] : [])]
        return track(
          startServer({
            command: [process.execPath, join(root, 'bench', 'bare-server.mjs'), String(port), ...material],
            port,
            certificate,
            path: '/v1/ping',
            log: join(folder, 'bare.log'),
            core,
          }),
        )
      },
      start: (order) => track(startServer(order)),
      client: ({ port }) => createClient({ port, ca: readFileSync(certificate, 'utf8') }),
      dispose,
    }
    // As the package does when it is installed.
    execFileSync(process.execPath, [...flags, entry, '--prime-cache'], { env: environment, stdio: 'pipe' })
    // The first start makes key, certificate and database.
    const first = await rig.startDaemon()
    await first.stop()
    return rig
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Logs in and gives the access token. */
export async function logIn(client: Client, { userName: username, password }: Account): Promise<string> {
  const reply = await client.send('POST', '/v1/users/default/login', { body: { username, password } })
  if (reply.status !== 200) throw new Error(`the login answers ${reply.status}: ${reply.body.toString()}`)
  return (JSON.parse(reply.body.toString()) as { Token: { Authorization: string } }).Token.Authorization
}

/** Flags beside the shipped configuration: a state folder of its own, and limits that no request reaches. */
function settingsOf(directory: string, service: string, program: string): Settings {
  const never = 1_000_000
  return {
    config: join(root, 'systemd', 'config.yaml'),
    'state.directory': directory,
    'api.address': '127.0.0.1',
    'api.socket.path': '',
    'host.console.issueFile': '',
    'auth.pam.service': service,
    'auth.pam.program': program,
    'auth.guard.delayAfterFailures': never,
    'auth.guard.lockAfterFailures': never,
    'auth.guard.addressLockAfterFailures': never,
    'auth.guard.userFailuresPerHour': never,
    'api.rateLimits.requestsPerSecond': 100_000,
    'api.rateLimits.login.requestsPerSecond': 100_000,
  }
}

/** V8's flags as a unit gives them. */
export function readUnitFlags(unit: string): string[] {
  const [, command] = /^ExecStart=(.+)$/m.exec(readFileSync(unit, 'utf8')) ?? []
  if (command === undefined) throw new Error(`${unit} has no ExecStart`)
  const [, ...words] = command.split(/\s+/)
  return words.slice(
    0,
    words.findIndex((word) => !word.startsWith('-')),
  )
}

/** Absolute path of a program. */
function find(program: string): string {
  try {
    return execFileSync('which', [program], { encoding: 'utf8' }).trim()
  } catch (error) {
    throw new Error(`${program} is not installed`, { cause: error })
  }
}

export interface Account {
  readonly userName: string
  readonly password: string
}

/** Real accounts and a PAM service of this run's own. */
interface Accounts {
  /** Name of the file in /etc/pam.d. */
  readonly service: string
  /** May log in. */
  readonly good: Account
  /** Its password is right, but `passwd -l` has locked it. */
  readonly locked: Account
  remove(): void
}

/**
 * Makes the accounts and the PAM service; the caller removes them, also after a failure. Needs root.
 * @param serviceFile the PAM file of the package; it includes the rules of this machine, such as the failure delay
 */
function makeAccounts(serviceFile: string): Accounts {
  const service = `edgehostd-bench-${process.pid}`
  const made: string[] = []
  const remove = () => {
    // --force: the account is removed even when a process still runs in it.
    for (const name of made.splice(0)) run('userdel', ['--force', name])
    rmSync(`/etc/pam.d/${service}`, { force: true })
  }
  const make = (kind: string): Account => {
    const account = {
      userName: `ehbench${process.pid}${kind}`,
      password: randomBytes(12).toString('base64url'),
    }
    run('useradd', ['--no-create-home', '--shell', '/bin/sh', account.userName])
    made.push(account.userName)
    run('chpasswd', [], `${account.userName}:${account.password}\n`)
    return account
  }
  try {
    copyFileSync(serviceFile, `/etc/pam.d/${service}`)
    const good = make('a')
    const locked = make('b')
    run('passwd', ['--lock', '--quiet', locked.userName])
    return { service, good, locked, remove }
  } catch (error) {
    remove()
    throw error
  }
}

function run(program: string, args: readonly string[], input = ''): void {
  execFileSync(program, args, { input, stdio: ['pipe', 'pipe', 'pipe'] })
}

export interface Reply {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Buffer
  /** From the call to the last byte of the reply. */
  readonly durationMs: number
}

interface RequestOptions {
  readonly token?: string
  /** Sent as JSON. */
  readonly body?: unknown
}

/** One client of a server on the loopback: one connection, kept alive. */
export interface Client {
  /** @throws Error when there is no reply */
  send(method: 'GET' | 'POST' | 'DELETE', path: string, options?: RequestOptions): Promise<Reply>
  close(): void
}

interface ClientOptions {
  readonly port: number
  /** PEM. */
  readonly ca: string
}

const timeoutMs = 30_000

export function createClient({ port, ca }: ClientOptions): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, servername: 'localhost' })
  return {
    send(method, path, { token, body } = {}) {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const headers = {
        ...(token === undefined ? {} : { authorization: token }),
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      }
      return new Promise((resolve, reject) => {
        const startedAt = performance.now()
        const sent = request({ host: '127.0.0.1', port, method, path, headers, agent, timeout: timeoutMs })
        sent.on('response', (reply) => {
          const chunks: Buffer[] = []
          reply.on('data', (chunk: Buffer) => chunks.push(chunk))
          reply.on('error', reject)
          reply.on('end', () =>
            resolve({
              status: reply.statusCode ?? 0,
              headers: reply.headers,
              body: Buffer.concat(chunks),
              durationMs: performance.now() - startedAt,
            }),
          )
        })
        sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no reply in ${timeoutMs} ms`)))
        sent.on('error', reject)
        sent.end(text)
      })
    },
    close: () => agent.destroy(),
  }
}

/** A server that runs in a process of its own. */
export interface ServerProcess {
  readonly pid: number
  readonly port: number
  /** From the start of the process to the end of the first 200. */
  readonly startMs: number
  /** File with its standard output and standard error. */
  readonly log: string
  /** Asks it to end and waits until it has. */
  stop(): Promise<void>
}

interface ServerOrder {
  /** Program and arguments. */
  readonly command: readonly [string, ...string[]]
  readonly port: number
  /** File of the certificate that its clients trust; read when the server listens. */
  readonly certificate: string
  /** Path of a request that is answered with 200 as soon as the server listens. */
  readonly path: string
  /** File for its standard output and standard error. */
  readonly log: string
  readonly environment?: NodeJS.ProcessEnv
  /** The only processor that it may use; undefined for all. */
  readonly core?: number | undefined
}

const startLimitMs = 20_000
const stopLimitMs = 15_000

/** @throws Error when the server ends or does not answer in time; then its process has ended */
export async function startServer(order: ServerOrder): Promise<ServerProcess> {
  const { port, path, log } = order
  const [program, ...args] = pinned(order.command, order.core)
  const output = openSync(log, 'a')
  const startedAt = performance.now()
  const child = spawn(program, args, {
    stdio: ['ignore', output, output],
    env: { PATH: process.env.PATH, ...order.environment },
  })
  closeSync(output)
  const exited = once(child, 'exit')
  const { pid } = child
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const stop = async () => {
    if (!hasEnded()) child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs)
    await exited
    clearTimeout(timer)
  }
  try {
    if (pid === undefined) throw new Error(`${program} could not be started`)
    while (!(await accepts(port))) {
      if (hasEnded()) throw new Error(`${order.command.join(' ')} has ended; see ${log}:\n${tail(log)}`)
      if (performance.now() - startedAt > startLimitMs)
        throw new Error(`${program} does not listen; see ${log}`)
      await sleep(1)
    }
    const client = createClient({ port, ca: readFileSync(order.certificate, 'utf8') })
    const { status } = await client.send('GET', path)
    const startMs = performance.now() - startedAt
    client.close()
    if (status !== 200) throw new Error(`${path} answers ${status}`)
    return { pid, port, startMs, log, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A free port of the loopback. */
export async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The command, limited to the given processor if there is one. taskset(1) becomes the program, so the process id is the same. */
export function pinned(
  command: readonly [string, ...string[]],
  core: number | undefined,
): readonly [string, ...string[]] {
  return core === undefined ? command : ['taskset', '--cpu-list', String(core), ...command]
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

const tail = (file: string) => readFileSync(file, 'utf8').slice(-2_000)
