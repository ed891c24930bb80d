import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync, readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from './client.ts'

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

export interface ServerOrder {
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
