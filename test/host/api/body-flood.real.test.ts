import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loginPath } from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

// All within the body limit of routes without a session; each byte takes six on the wire.
const chunks = 130_900
const connections = 24
const mebibytes = 1_048_576
const patience = { timeout: 40_000 }

let folder: string
let daemon: ChildProcess
let port: number
let sockets: TLSSocket[]
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-flood-'))
  sockets = []
  const unit = readFileSync(join(import.meta.dirname, '../../../systemd/edgehostd.service'), 'utf8')
  const flags = /^ExecStart=\S+ ((?:--\S+ )+)/m.exec(unit)?.[1]?.trim().split(' ') ?? []
  expect(flags.join(' ')).toContain('--max-old-space-size')
  const program = join(import.meta.dirname, '../../support/daemon-process.ts')
  const child = spawn(process.execPath, [...flags, program, folder], { stdio: ['pipe', 'pipe', 'ignore'] })
  daemon = child
  port = Number(String((await once(child.stdout, 'data'))[0]))
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  const ended = daemon.exitCode === null && daemon.signalCode === null && once(daemon, 'exit')
  daemon.kill('SIGKILL')
  await ended
  rmSync(folder, { recursive: true })
})

/** A connection from an address of its own. */
async function open(client: number): Promise<TLSSocket> {
  const local = { host: '127.0.0.1', port, localAddress: `127.0.9.${client}`, rejectUnauthorized: false }
  const socket = connect(local as never)
  socket.on('error', () => undefined)
  sockets.push(socket)
  await once(socket, 'secureConnect')
  socket.resume()
  return socket
}

async function ping(): Promise<string> {
  const socket = await open(250)
  let reply = ''
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString()))
  socket.write('GET /v1/ping HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n')
  await once(socket, 'close')
  return reply
}

const residentBytes = () =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]) * 1_024

it.each([
  ['a login', 'POST', loginPath],
  ['a path that is not there', 'POST', '/v1/nothing'],
  ['a read that wants no body', 'GET', '/v1/ping'],
])(
  '%s with a body of one-byte chunks that never ends leaves the daemon alive and small',
  async (...asked) => {
    const [, method, path] = asked
    const head = `${method} ${path} HTTP/1.1\r\nHost: box\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
    const clients = await Promise.all(Array.from({ length: connections }, (_, index) => open(index + 1)))
    const body = Buffer.from('1\r\n \r\n'.repeat(chunks))
    for (const client of clients) {
      client.write(head)
      client.write(body)
    }
    // An unfinished body ends its connection.
    const isThrough = ({ closed, writableLength }: TLSSocket) => closed || writableLength === 0
    await waitFor(() => expect(clients.every(isThrough)).toBe(true), patience)
    await waitFor(async () => expect(await ping()).toContain('pong'), patience)
    // A reply to the end of a body means that all of it was read.
    for (const client of clients) client.end('0\r\n\r\n')
    await waitFor(() => expect(clients.every(({ closed }) => closed)).toBe(true), patience)
    expect(daemon.signalCode).toBeNull()
    expect(residentBytes()).toBeLessThan(240 * mebibytes)
  },
)
