import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SystemEntry } from '../../src/audit/own-entries.ts'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { causeOfError, causeOfReply } from '../../src/uplink/cause.ts'
import type { Answer, Call } from '../../src/uplink/client.ts'
import type { FetchOrder, Fetched } from '../../src/uplink/fetch.ts'
import { createUplink, type LinkedCluster, type UplinkGround } from '../../src/uplink/room.ts'
import { captureLog } from './https-server.ts'
import { hostBody } from './host-body.ts'
import { openDatabase } from './open-database.ts'
import type { createTestPlatform } from './test-platform.ts'
import { createTurningClock, type TurningClock } from './turning-clock.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>

// A month of events does not wait for a disk.
export const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export interface LinkedHostOptions {
  /** A state folder that outlives the host; by default one of its own. */
  readonly stateDirectory?: string
  readonly hostId?: string
  readonly name?: string
  /** Its registration token; put down before the start. */
  readonly token?: string
  readonly clock?: TurningClock
  /** The room of the cluster; by default there is none. */
  readonly cluster?: LinkedCluster
}

/** A call that a host has made, and what became of it. */
export interface SeenCall {
  readonly method: string
  readonly path: string
  readonly status?: number
}

interface LinkGroundOptions extends Pick<
  UplinkGround,
  'stateDirectory' | 'database' | 'stopping' | 'clock' | 'log'
> {
  readonly name: string
  readonly platform: UplinkGround['config']['platform']
  readonly record?: UplinkGround['record']
}

/** The ground of a link whose secret is known. */
export const linkGround = ({ name, platform, ...rest }: LinkGroundOptions): UplinkGround => ({
  config: { platform, host: { mode: 'connected', name } },
  version: '1.2.3',
  secrets: createSecrets(Buffer.alloc(32)),
  record: () => undefined,
  ...rest,
})

/**
 * The link of a host to a test platform, as the daemon builds it: its files and database are real, its time passes only while a test lets it, and
 * its calls reach the platform by `inject`.
 */
export async function startLinkedHost(platform: TestPlatform, options: LinkedHostOptions = {}) {
  const stateDirectory = options.stateDirectory ?? (await mkdtemp(join(memory, 'linked-host-')))
  const clock = options.clock ?? createTurningClock()
  const { log, lines } = captureLog()
  const database = openDatabase(join(stateDirectory, 'edgehostd.db'), log)
  const stop = new AbortController()
  const tokenFile = join(stateDirectory, 'platform/registration-token')
  const entries: SystemEntry[] = []
  const calls: SeenCall[] = []
  const body = await hostBody()
  let facts = JSON.parse(body) as EdgeHostInfo
  let reachable = platform
  /** What happens to the calls, for example a cut of the network. */
  let network: (call: Call, pass: () => Promise<Answer>) => Promise<Answer> = (_, pass) => pass()

  async function pass(call: Call): Promise<Answer> {
    const reply = await reachable.app.inject({
      ...{ method: call.method, url: call.path },
      headers: call.token === undefined ? {} : { authorization: call.token },
      ...(call.body === undefined ? {} : { payload: call.body as object }),
    })
    const parsed: unknown = reply.body === '' || reply.body === 'null' ? undefined : reply.json()
    const cause = causeOfReply(reply.statusCode, parsed)
    const { 'retry-after': retryAfter, 'edgehost-wanted': wanted } = reply.headers
    calls.push({ method: call.method, path: call.path, status: reply.statusCode })
    return {
      ...{ status: reply.statusCode, body: parsed },
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(typeof wanted === 'string' ? { wanted } : {}),
      ...(cause ? { cause } : {}),
    }
  }

  /** The pause that the link is in. */
  let resting: { readonly endsAt: number; readonly end: () => void } | undefined
  let onRest: () => void = () => undefined
  const pause = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const end = () => {
        resting = undefined
        resolve()
      }
      if (signal.aborted) {
        end()
        return
      }
      signal.addEventListener('abort', end, { once: true })
      resting = { endsAt: clock.monotonic() + ms, end }
      onRest()
    })
  const rest = () =>
    resting
      ? Promise.resolve()
      : new Promise<void>((resolve) => {
          onRest = resolve
        })

  if (options.token !== undefined) {
    await mkdir(join(stateDirectory, 'platform'), { recursive: true, mode: 0o700 })
    await writeFile(tokenFile, `${options.token}\n`, { mode: 0o600 })
  }
  const ground = linkGround({
    name: options.name ?? 'press-1',
    platform: { url: 'https://platform.example', registrationTokenFile: tokenFile },
    stateDirectory,
    database,
    record: (entry) => entries.push(entry),
    stopping: stop.signal,
    clock,
    log,
  })
  const uplink = await createUplink(ground, {
    hostId: options.hostId ?? 'edge-1',
    pause,
    host: {
      current: () => ({ body: JSON.stringify(facts), etag: JSON.stringify(facts) }),
      firstReading: () => Promise.resolve(),
      hostName: () => options.name ?? 'press-1',
      refresh: () => Promise.resolve(),
    },
    limits: { definitionBytes: 10_000_000, reserveBytes: 0 },
    fetch: { fetch: (order, signal, use) => fetchFrom(reachable, order, use, signal) },
    client: {
      call: (call) => network(call, () => pass(call)),
      reconnect: () => undefined,
      close: () => undefined,
    },
  })
  if (options.cluster) uplink.attachCluster(options.cluster)
  uplink.background?.()

  /** Lets the time pass to the end of the pause. */
  async function step(): Promise<number> {
    await rest()
    // Whole milliseconds, as the clocks of machines have.
    const ms = Math.ceil(Math.max(0, resting!.endsAt - clock.monotonic()))
    clock.turn(ms)
    // The platform lives in the same time.
    if (reachable.clock !== clock) reachable.clock.turn(ms)
    resting!.end()
    return ms
  }

  return {
    ...{ uplink, clock, lines, entries, calls, stateDirectory, tokenFile },
    link: uplink.link,
    step,
    /** Returns when the link rests. */
    rest,
    /** Lets the time pass until the condition holds at a rest, for at most so many milliseconds. */
    async until(holds: () => boolean, mostMs = 3_600_000) {
      for (let passed = 0; ;) {
        await rest()
        if (holds()) return
        if (passed > mostMs) throw new Error(`did not come: ${JSON.stringify(uplink.link())}`)
        passed += await step()
      }
    },
    change: (next: (facts: EdgeHostInfo) => EdgeHostInfo) => void (facts = next(facts)),
    fail: (...names: readonly string[]) =>
      uplink.attachChecks(names.map((name) => ({ name, kind: 'ready', holds: () => false }))),
    use: (next: TestPlatform) => void (reachable = next),
    through: (next: typeof network) => void (network = next),
    cut: () =>
      void (network = () =>
        Promise.resolve({
          cause: causeOfError(
            Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' }),
            { url: 'https://platform.example' },
            clock.now(),
          ),
        })),
    mend: () => void (network = (_, passOn) => passOn()),
    registration: async () =>
      JSON.parse(await readFile(join(stateDirectory, 'platform/registration.json'), 'utf8')) as {
        readonly edgeHostUid: string
        readonly generation: number
      },
    /** As a power cut: nothing more is written, and the folder stays. */
    async end() {
      stop.abort()
      await uplink.stop?.()
      database.close()
    },
    async close() {
      stop.abort()
      await uplink.stop?.()
      database.close()
      await rm(stateDirectory, { recursive: true, force: true })
    },
  }
}

/** A download by `inject`. */
async function fetchFrom<T>(
  { app }: TestPlatform,
  { path, token, headers }: FetchOrder,
  use: (reply: Fetched) => Promise<T>,
  signal: AbortSignal,
) {
  const reply = await app.inject({
    method: 'GET',
    url: path,
    headers: { authorization: token, ...headers },
    signal,
  })
  const { statusCode: status } = reply
  if (status !== 200 && status !== 206)
    return {
      status,
      cause: causeOfReply(status, reply.json<unknown>()) ?? { kind: 'platform' as const, message: '' },
    }
  const lines = Object.entries(reply.headers).map(([name, value]) => [name, String(value)])
  return {
    done: await use({
      status,
      headers: Object.fromEntries(lines) as Fetched['headers'],
      body: onePiece(reply.rawPayload),
    }),
  }
}

async function* onePiece(bytes: Buffer) {
  yield bytes
}
