import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pinned } from './server-process.ts'

/** Result of one run of a load generator. */
export interface LoadResult {
  readonly requests: number
  readonly perSecond: number
  readonly p99Ms: number
}

export interface LoadOrder {
  readonly url: string
  readonly token: string
  readonly connections: number
  readonly seconds: number
  readonly core: number | undefined
  /** Command in front of the generator, for example one that enters a namespace. */
  readonly enter?: readonly string[]
}

/** Puts load on a server from a process of its own. */
export interface LoadGenerator {
  readonly name: 'wrk' | 'autocannon'
  /** @throws Error when a reply was not 200 */
  run(order: LoadOrder): Promise<LoadResult>
}

const execute = promisify(execFile)
const root = join(import.meta.dirname, '..')

/** wrk where it is installed, since it takes little processor time from the server. Otherwise autocannon. */
export async function findLoadGenerator(): Promise<LoadGenerator> {
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
export function parseWrk(text: string): LoadResult {
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
export function parseAutocannon(text: string): LoadResult {
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
