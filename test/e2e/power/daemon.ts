import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'node:http'
import { eventually } from '../host/eventually.ts'
import { systemPath } from '../host/process.ts'

const program = join(import.meta.dirname, '../../../dist/main.cjs')

/** A reply of the daemon. */
export interface Answer {
  readonly status: number
  readonly text: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- replies of every shape
  readonly json: any
}

/** What is sent with a request; the body is sent at the pace of a network, in pieces. */
export interface Sending {
  readonly type: string
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** The real daemon, in namespaces of its own. */
export interface Daemon {
  /** Asks on its Unix socket, as root. @throws the error of the connection when the daemon is killed */
  ask(method: string, path: string, sending?: Sending): Promise<Answer>
  /** Kills it and its programs, as systemd does; resolves when all have ended. */
  kill(): Promise<void>
  /** Lines that it has logged at level error and above. */
  errors(): readonly string[]
  /** All that it has written. */
  log(): string
}

export interface DaemonOptions {
  /** A folder of the test, for what outlasts a power cut of no matter which disk. */
  readonly home: string
  readonly stateDirectory: string
  readonly contentDirectory: string
  /** Number of the boot that the daemon sees: `/proc/sys/kernel/random/boot_id` is mounted over. */
  readonly boot: number
}

// The mount is in the namespace of this process only. It becomes process 1 of its namespace, with which its children end.
const script = `mount --bind "$1" /proc/sys/kernel/random/boot_id; shift; exec "$@"`

/** Starts the daemon; resolves when it answers. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { home, stateDirectory, contentDirectory, boot } = options
  const socket = join(home, 'daemon.sock')
  const bootFile = join(home, 'boot_id')
  await writeFile(bootFile, `00000000-0000-4000-8000-${String(boot).padStart(12, '0')}\n`)
  const child = spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', 'unshare'],
      ...['--mount', '--propagation', 'slave', '--pid', '--fork', '--kill-child', '--mount-proc', '--net'],
      ...['bash', '--norc', '-euc', script, 'sh', bootFile, process.execPath, program],
      ...[`--state.directory=${stateDirectory}`, `--content.directory=${contentDirectory}`],
      ...[`--api.socket.path=${socket}`, '--api.rateLimits.enabled=false', '--host.console.issueFile='],
      ...['--content.reserve.percent=0', '--content.reserve.leastBytes=0'],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: systemPath } },
  )
  let written = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (written += text))
  const ended = once(child, 'close')
  const agent = new Agent({ keepAlive: true })

  async function kill(): Promise<void> {
    const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').catch(() => '')
    const [first] = children.split(' ').filter(Boolean)
    if (first !== undefined) process.kill(Number(first), 'SIGKILL')
    else child.kill('SIGKILL')
    await ended
    agent.destroy()
  }

  const ask = (method: string, path: string, sending?: Sending) => send(agent, socket, method, path, sending)
  try {
    // The socket of the last daemon may be there still.
    await eventually(() => {
      if (child.exitCode !== null) return
      if (!written.includes('"msg":"listening"')) throw new Error(`the daemon does not listen:\n${written}`)
    }, 60_000)
    if (child.exitCode !== null) throw new Error(`the daemon has ended:\n${written}`)
  } catch (error) {
    await kill()
    throw error
  }
  return {
    ask,
    kill,
    errors: () => written.split('\n').filter((line) => /"level":[56]0/.test(line)),
    log: () => written,
  }
}

// Some 100 MB a second.
const pieceBytes = 131_072
const pieceMs = 1

function send(
  agent: Agent,
  socketPath: string,
  method: string,
  path: string,
  sending: Sending | undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { type, body, headers = {} } = sending ?? {}
    const fields = body ? { 'content-type': type, 'content-length': String(body.length), ...headers } : {}
    const asked = request({ agent, socketPath, method, path, headers: fields }, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (more: string) => (text += more))
      reply.on('error', reject)
      reply.on('end', () => {
        if (!reply.complete) reject(new Error('the reply is incomplete'))
        else resolve({ status: reply.statusCode ?? 0, text, json: parse(text) })
      })
    })
    asked.on('error', reject)
    asked.setTimeout(30_000, () => asked.destroy(new Error(`${method} ${path}: no reply within 30 s`)))
    if (!body) return void asked.end()
    let at = 0
    const next = () => {
      if (asked.destroyed) return
      if (at >= body.length) return void asked.end()
      const piece = body.subarray(at, at + pieceBytes)
      at += piece.length
      asked.write(piece, () => void setTimeout(next, pieceMs))
    }
    next()
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
