import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  type Measure,
  measurePair,
  pairedRatios,
  ratioFigure,
  readCpuMs,
  readRssMiB,
  type Remarks,
  single,
  spread,
} from './figure.ts'
import { logIn, pinned, type Rig, type ServerProcess } from './rig.ts'

const readPath = '/v1/edge-mgmt/edgehosts/current'
const connections = 32

interface Slice extends LoadResult {
  /** Of the server, user and system time. */
  readonly cpuUsPerRequest: number
}

/**
 * `GET …/edgehosts/current` with a token, against bare Fastify that sends the same bytes from a constant buffer. The two
 * alternate in slices of one run, so that both meet the same conditions.
 */
export const measureReads: Measure = async (rig) => {
  const { rounds, seconds } = rig.isQuick ? { rounds: 3, seconds: 1 } : { rounds: 9, seconds: 2 }
  const generator = await findLoadGenerator()
  const core = rig.cores?.server
  const daemon = await rig.startDaemon({ core })
  const client = rig.client(daemon)
  const token = await logIn(client, rig.accounts.good)
  const { body, status } = await client.send('GET', readPath, { token })
  client.close()
  if (status !== 200) throw new Error(`${readPath} answers ${status}`)
  const bare = await rig.startBare({ core, body })

  const slice = async ({ pid, port }: { pid: number; port: number }): Promise<Slice> => {
    const before = readCpuMs(pid)
    const url = `https://127.0.0.1:${port}${readPath}`
    const result = await generator.run({ url, token, connections, seconds, core: rig.cores?.load })
    return { ...result, cpuUsPerRequest: ((readCpuMs(pid) - before) * 1_000) / result.requests }
  }
  // The code of both is hot before the first round counts.
  await slice(bare)
  await slice(daemon)
  const own: Slice[] = []
  const base: Slice[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`reads: round ${round + 1} of ${rounds}`)
    const pair = await measurePair(
      round,
      () => slice(bare),
      () => slice(daemon),
    )
    base.push(pair.base)
    own.push(pair.own)
  }
  await Promise.all([daemon.stop(), bare.stop()])

  const how = `${generator.name}, ${connections} connections, ${rounds} pairs of ${seconds} s, ${body.length} bytes`
  const ratio = (name: string, of: (slice: Slice) => number, remarks?: Remarks) =>
    ratioFigure(name, own.map(of), base.map(of), remarks)
  return [
    ratio('reads: requests/s ÷ bare Fastify', (each) => each.perSecond, {
      target: '≥ 0.55',
      note: how,
    }),
    ratio('reads: CPU a request ÷ bare Fastify', (each) => each.cpuUsPerRequest),
    ratio('reads: p99 ÷ bare Fastify', (each) => each.p99Ms),
    { name: 'reads: requests/s', value: spread(own.map((each) => each.perSecond)), unit: 'req/s' },
    { name: 'reads: CPU a request', value: spread(own.map((each) => each.cpuUsPerRequest)), unit: 'us' },
    {
      name: 'reads: CPU a request, bare',
      value: spread(base.map((each) => each.cpuUsPerRequest)),
      unit: 'us',
    },
    { name: 'reads: p99', value: spread(own.map((each) => each.p99Ms)), unit: 'ms' },
  ]
}

/** Result of one run of a load generator. */
interface LoadResult {
  readonly requests: number
  readonly perSecond: number
  readonly p99Ms: number
}

interface LoadOrder {
  readonly url: string
  readonly token: string
  readonly connections: number
  readonly seconds: number
  readonly core: number | undefined
  /** Command in front of the generator, for example one that enters a namespace. */
  readonly enter?: readonly string[]
}

/** Puts load on a server from a process of its own. */
interface LoadGenerator {
  readonly name: 'wrk' | 'autocannon'
  /** @throws Error when a reply was not 200 */
  run(order: LoadOrder): Promise<LoadResult>
}

const execute = promisify(execFile)
const root = join(import.meta.dirname, '..')

/** wrk where it is installed, since it takes little processor time from the server. Otherwise autocannon. */
async function findLoadGenerator(): Promise<LoadGenerator> {
  // wrk ends with exit code 1 here; only a missing program is ENOENT.
  const hasWrk = await execute('wrk', ['--version']).then(
    () => true,
    (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT',
  )
  return hasWrk ? { name: 'wrk', run: runWrk } : { name: 'autocannon', run: runAutocannon }
}

async function runWrk(order: LoadOrder): Promise<LoadResult> {
  const { connections, seconds, token, url } = order
  const args = [`-t1`, `-c${connections}`, `-d${seconds}s`, '--latency', '-H', `Authorization: ${token}`, url]
  const output = await start(order, ['wrk', ...args])
  return parseWrk(output)
}

/** Parses the output of wrk 4. */
function parseWrk(text: string): LoadResult {
  const failures = /^\s*(Non-2xx.*|Socket errors:.*)$/m.exec(text)?.[1]
  if (failures !== undefined) throw new Error(`the load failed: ${failures}`)
  const [, requests] = /(\d+) requests in /.exec(text) ?? []
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? []
  const [, p99, unit] = /\b99%\s+([\d.]+)(us|ms|s)/.exec(text) ?? []
  if (requests === undefined || perSecond === undefined || p99 === undefined) {
    throw new Error(`the output of wrk is not that of version 4: ${text}`)
  }
  const factor = unit === 'us' ? 0.001 : unit === 's' ? 1_000 : 1
  return { requests: Number(requests), perSecond: Number(perSecond), p99Ms: Number(p99) * factor }
}

async function runAutocannon(order: LoadOrder): Promise<LoadResult> {
  const { connections, seconds, token, url } = order
  const program = join(root, 'node_modules', 'autocannon', 'autocannon.js')
  const args = [
    '-c',
    String(connections),
    '-d',
    String(seconds),
    '-H',
    `authorization=${token}`,
    '-j',
    '-n',
    url,
  ]
  const output = await start(order, [process.execPath, program, ...args])
  return parseAutocannon(output)
}

/** Parses the output of `autocannon --json`. */
function parseAutocannon(text: string): LoadResult {
  const result = JSON.parse(text) as {
    requests: { total: number }
    latency: { p99: number }
    duration: number
    errors: number
    non2xx: number
  }
  if (result.errors + result.non2xx > 0) {
    throw new Error(`the load failed: ${result.errors} errors, ${result.non2xx} other replies`)
  }
  const { total } = result.requests
  return { requests: total, perSecond: total / result.duration, p99Ms: result.latency.p99 }
}

async function start(order: LoadOrder, command: readonly [string, ...string[]]): Promise<string> {
  const { core, seconds, enter = [] } = order
  const [first = '', ...rest] = [...enter, ...command]
  const [program, ...args] = pinned([first, ...rest], core)
  const { stdout } = await execute(program, args, { timeout: (seconds + 10) * 1_000 })
  return stdout
}

/**
 * Time from the start of the process to the first 200 over HTTPS, with the bundle, a primed compile cache, the flags of
 * the unit and existing state, against bare Fastify from node_modules. Then the memory of both at rest.
 */
export const measureStart: Measure = async (rig) => {
  const rounds = rig.isQuick ? 3 : 15
  const own: number[] = []
  const base: number[] = []
  const startOnce = async (start: () => Promise<ServerProcess>) => {
    const server = await start()
    await server.stop()
    return server.startMs
  }
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`start: round ${round + 1} of ${rounds}`)
    const pair = await measurePair(
      round,
      () => startOnce(rig.startBare),
      () => startOnce(rig.startDaemon),
    )
    base.push(pair.base)
    own.push(pair.own)
  }
  const memory = await measureMemory(rig)
  return [
    ratioFigure('start to first 200 ÷ bare Fastify', own, base, {
      target: '≤ 1.10',
      note: `${rounds} pairs`,
    }),
    { name: 'start to first 200', value: spread(own), unit: 'ms' },
    { name: 'start to first 200, bare', value: spread(base), unit: 'ms' },
    {
      name: 'idle RSS ÷ bare Fastify',
      value: spread(pairedRatios(memory.own, memory.base)),
      unit: '',
      target: '≤ 1.30',
      note: `${memory.own.length} pairs, ${memory.idleSec} s after the start`,
    },
    { name: 'idle RSS', value: spread(memory.own), unit: 'MiB' },
    { name: 'idle RSS, bare', value: spread(memory.base), unit: 'MiB' },
  ]
}

async function measureMemory(rig: Rig) {
  const rounds = rig.isQuick ? 1 : 3
  // Longer than the interval of the most frequent job, so that each has run once.
  const idleSec = rig.isQuick ? 3 : 12
  const own: number[] = []
  const base: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`idle RSS: round ${round + 1} of ${rounds}`)
    const bare = await rig.startBare()
    const daemon = await rig.startDaemon()
    await sleep(idleSec * 1_000)
    own.push(readRssMiB(daemon.pid))
    base.push(readRssMiB(bare.pid))
    await Promise.all([daemon.stop(), bare.stop()])
  }
  return { own, base, idleSec }
}

/** Run time of edgehostctl, for commands that contact no host, against `node -e 0`. */
export const measureCtlStart: Measure = async (rig) => {
  const program = join(import.meta.dirname, '..', 'dist', 'edgehostctl.cjs')
  const rounds = rig.isQuick ? 5 : 40
  const lines = { bare: ['-e', '0'], version: [program, 'version'], help: [program, 'help'] }
  const times: Record<keyof typeof lines, number[]> = { bare: [], version: [], help: [] }
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`ctl-start: round ${round + 1} of ${rounds}`)
    const names = Object.keys(lines) as (keyof typeof lines)[]
    for (const name of round % 2 === 0 ? names : names.reverse()) times[name].push(runOnce(lines[name]))
  }
  const remarks = { target: '≤ 1.30', note: `${rounds} rounds` }
  return [
    ratioFigure('edgehostctl version ÷ node -e 0', times.version, times.bare, remarks),
    ratioFigure('edgehostctl help ÷ node -e 0', times.help, times.bare, remarks),
    { name: 'node -e 0', value: spread(times.bare), unit: 'ms' },
  ]
}

function runOnce(args: readonly string[]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr.toString()}`)
  return performance.now() - start
}

/** Processor time of the daemon and its children without requests, with one session. */
export const measureIdle: Measure = async (rig) => {
  const seconds = rig.isQuick ? 30 : 300
  const daemon = await rig.startDaemon()
  const client = rig.client(daemon)
  await logIn(client, rig.accounts.good)
  client.close()
  // The work that follows a start does not count: garbage collection, and the inventory, which is first read a minute later.
  await sleep(rig.isQuick ? 10_000 : 90_000)
  rig.say(`idle: ${seconds} s`)
  const startedAt = performance.now()
  const before = readCpuMs(daemon.pid, { children: true })
  await sleep(seconds * 1_000)
  const used = readCpuMs(daemon.pid, { children: true }) - before
  const percent = (used / (performance.now() - startedAt)) * 100
  await daemon.stop()
  return [
    {
      name: 'idle CPU of a core',
      value: single(percent),
      unit: '%',
      target: '≤ 0.2 %',
      note: `${used} ms in ${seconds} s, children included`,
    },
  ]
}
