import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAccounts, type Account, type Accounts } from './accounts.ts'
import { createClient, type Client } from './client.ts'
import { findPort, startServer, type ServerOrder, type ServerProcess } from './server-process.ts'

/** How thorough a run is. */
export interface Pace {
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

export interface RigOptions extends Pace {
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
      ...{ isQuick, megabytes, say, entry },
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
