import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createBus, type BusObject } from '../../../src/system/bus/bus.ts'
import { BusFailed } from '../../../src/system/bus/failure.ts'
import { messageLength } from '../../../src/system/bus/message.ts'

const driver: BusObject = {
  service: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
}
const timeoutMs = 5_000

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-bus-'))
})
afterAll(() => rm(folder, { recursive: true }))

const program = '/usr/bin/dbus-daemon'
const needs = existsSync(program) ? undefined : 'needs the package dbus'

describe.skipIf(needs)(`a bus of dbus-daemon${needs ? ` (${needs})` : ''}`, () => {
  let daemon: ChildProcess
  let socket: string
  let started: string

  beforeAll(async () => {
    socket = join(folder, 'bus')
    started = join(folder, 'started')
    const configuration = join(folder, 'bus.conf')
    await writeFile(
      join(folder, 'org.example.Sleeper.service'),
      `[D-BUS Service]\nName=org.example.Sleeper\nExec=/usr/bin/touch ${started}\n`,
    )
    await writeFile(
      configuration,
      `<busconfig><type>session</type><listen>unix:path=${socket}</listen><auth>EXTERNAL</auth>
<servicedir>${folder}</servicedir><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`,
    )
    daemon = spawn(program, ['--nofork', '--print-address', `--config-file=${configuration}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    // It prints its address once it listens.
    await once(daemon.stdout!, 'data')
  })
  afterAll(async () => {
    daemon.kill()
    await once(daemon, 'exit')
  })

  it('tells its properties, all and one', async () => {
    const bus = createBus(socket)
    const all = await bus.getAll(driver, timeoutMs)
    expect(all.get('Interfaces')?.signature).toBe('as')
    expect(all.get('Interfaces')?.value).toContain('org.freedesktop.DBus.Monitoring')
    expect(await bus.get(driver, 'Interfaces', 'as', timeoutMs)).toEqual(all.get('Interfaces')?.value)
  })

  it('refuses what is not there, each in one line', async () => {
    const bus = createBus(socket)
    const nobody = { ...driver, service: 'org.example.Nobody' }
    await expect(bus.getAll(nobody, timeoutMs)).rejects.toMatchObject({
      message: expect.stringMatching(
        /^org\.example\.Nobody: refused \(org\.freedesktop\.DBus\.Error\.\w+: .+\)$/,
      ),
      reason: 'refused',
      errorName: 'org.freedesktop.DBus.Error.NameHasNoOwner',
    })
    await expect(bus.get(driver, 'Nothing', 's', timeoutMs)).rejects.toMatchObject({
      errorName: 'org.freedesktop.DBus.Error.UnknownProperty',
    })
  })

  it('takes another type than was asked for as malformed', async () => {
    await expect(createBus(socket).get(driver, 'Interfaces', 's', timeoutMs)).rejects.toThrow(
      'org.freedesktop.DBus: malformed (Interfaces is not of type s)',
    )
  })

  it('starts no service that is asked', async () => {
    const sleeper = { ...driver, service: 'org.example.Sleeper' }
    const bus = createBus(socket)
    await expect(bus.getAll(sleeper, timeoutMs)).rejects.toBeInstanceOf(BusFailed)
    // What comes after is answered after it.
    await bus.getAll(driver, timeoutMs)
    expect(existsSync(started)).toBe(false)
  })

  it('has many questions at once on one connection, and none when they are answered', async () => {
    const proxied = await serve((client) => {
      const upstream = connect(socket)
      client.pipe(upstream).pipe(client)
    })
    const bus = createBus(proxied.path)
    const questions = Array.from({ length: 50 }, () => bus.getAll(driver, timeoutMs))
    const answers = await Promise.all(questions)
    expect(new Set(answers.map((answer) => answer.size)).size).toBe(1)
    await bus.get(driver, 'Interfaces', 'as', timeoutMs)
    expect(proxied.clients).toHaveLength(1)
    await proxied.allClosed()
    await bus.getAll(driver, timeoutMs)
    expect(proxied.clients).toHaveLength(2)
  })
})

type OnClient = (client: Socket, index: number) => void

/** Something that listens on a Unix socket for as long as the test runs. */
async function serve(onClient: OnClient) {
  const path = join(folder, `server-${Math.random()}`)
  const clients: Socket[] = []
  const server = createServer((client) => {
    client.on('error', () => undefined)
    onClient(client, clients.push(client) - 1)
  })
  server.listen(path)
  await once(server, 'listening')
  onTestFinished(() => {
    for (const client of clients) client.destroy()
    server.close()
  })
  const allClosed = () =>
    Promise.all(clients.filter(({ destroyed }) => !destroyed).map((client) => once(client, 'close')))
  return { path, clients, allClosed }
}

/** A bus that lets everybody in and leaves each call after Hello to `answer`. */
function speaking(answer: (client: Socket, serial: number, index: number) => void): OnClient {
  return (client: Socket, index: number) => {
    let received: Buffer = Buffer.alloc(0)
    let hasBegun = false
    client.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (!hasBegun && /^\0AUTH EXTERNAL (?:3\d)+\r\n$/.test(received.toString('latin1'))) {
        received = Buffer.alloc(0)
        client.write('OK 1234deadbeef\r\n')
      }
      if (!hasBegun && received.toString('latin1').startsWith('BEGIN\r\n')) {
        hasBegun = true
        received = received.subarray(7)
      }
      while (hasBegun) {
        const length = messageLength(received)
        if (length === undefined || received.length < length) return
        const serial = received.readUInt32LE(8)
        received = received.subarray(length)
        if (serial > 1) answer(client, serial, index)
      }
    })
  }
}

/** A reply of a variant that holds a text, in big-endian order. */
function reply(serial: number, text: string, type = 's'): Buffer {
  const body = Buffer.concat([
    Buffer.from(`\x01${type}\0\0\0\0\0`),
    Buffer.from([text.length]),
    Buffer.from(`${text}\0`),
  ])
  const header = Buffer.from('4202010100000000000000090000000f0501750000000000' + '0801670001760000', 'hex')
  header.writeUInt32BE(body.length, 4)
  header.writeUInt32BE(serial, 20)
  return Buffer.concat([header, body])
}

describe('a bus that is none', () => {
  const ask = (path: string, timeoutMs: number) => createBus(path).get(driver, 'Text', 's', timeoutMs)
  const failure = (path: string, timeoutMs = 5_000) =>
    ask(path, timeoutMs).then(
      () => 'an answer',
      (error: unknown) =>
        error instanceof BusFailed ? error.message.replace(/^org\.freedesktop\.DBus: /, '') : error,
    )

  it('is not reached where there is no socket', async () => {
    expect(await failure(join(folder, 'nothing'))).toBe('not-reached (ENOENT)')
    const file = join(folder, 'file')
    await writeFile(file, '')
    expect(await failure(file)).toBe('not-reached (ECONNREFUSED)')
  })

  it.each<[string, OnClient]>([
    ['says nothing', () => undefined],
    ['lets us in and says nothing', speaking(() => undefined)],
    ['answers others', speaking((client, serial) => client.write(reply(serial + 1, 'foo')))],
    ['begins an answer', speaking((client, serial) => client.write(reply(serial, 'foo').subarray(0, 40)))],
  ])('is waited for in vain, and let go, when it %s', async (_, onClient) => {
    const { path, allClosed } = await serve((client, index) => {
      client.resume()
      onClient(client, index)
    })
    expect(await failure(path, 50)).toBe('timed-out (50 ms)')
    await allClosed()
  })

  it.each<[string, string, OnClient]>([
    ['hangs up', 'not-reached (the bus has hung up)', (client) => client.end()],
    ['hangs up on a question', 'not-reached (the bus has hung up)', speaking((client) => client.end())],
    [
      'knows us not',
      'refused (the bus does not let us in)',
      (client) => client.write('REJECTED EXTERNAL\r\n'),
    ],
    [
      'is no bus',
      'refused (the bus does not let us in)',
      (client) => client.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    ],
    ['never ends its line', 'malformed (no answer to AUTH)', (client) => client.write('OK'.repeat(600))],
    [
      'sends garbage',
      'malformed (no message of D-Bus)',
      speaking((client) => client.write('garbage '.repeat(9))),
    ],
    [
      'sends too much',
      'too-large (16777264 bytes)',
      speaking((client) => client.write(Buffer.from('6c02010100000001010000001f000000', 'hex'))),
    ],
    [
      'sends more than it says',
      'malformed (a body of another length)',
      speaking((client, serial) => client.write(reply(serial, 'foo', 'g'))),
    ],
  ])('is an error in one line, and let go, when it %s', async (_, message, onClient) => {
    const { path, allClosed } = await serve((client, index) => {
      client.resume()
      onClient(client, index)
    })
    expect(await failure(path)).toBe(message)
    await allClosed()
  })

  it('may speak in big-endian order, byte by byte, with other messages between', async () => {
    const { path } = await serve(
      speaking((client, serial) => {
        const signal = reply(serial, 'no')
        signal[1] = 4
        for (const byte of Buffer.concat([signal, reply(serial + 9, 'nor this'), reply(serial, 'foo')])) {
          client.write(Buffer.of(byte))
        }
      }),
    )
    expect(await ask(path, 5_000)).toBe('foo')
  })

  it('spoils one question by a malformed answer, not the others', async () => {
    const { path } = await serve(
      speaking((client, serial) => client.write(serial === 2 ? reply(2, 'foo', 'g') : reply(serial, 'bar'))),
    )
    const bus = createBus(path)
    const questions = [1, 2].map(() => bus.get(driver, 'Text', 's', 5_000))
    expect(await Promise.allSettled(questions)).toMatchObject([
      { status: 'rejected' },
      { status: 'fulfilled', value: 'bar' },
    ])
  })

  it('is left for a new connection once it has let a question hang', async () => {
    const { path, clients } = await serve(
      speaking((client, serial, index) => {
        if (index > 0) client.write(reply(serial, 'foo'))
      }),
    )
    const bus = createBus(path)
    const slow = bus.get(driver, 'Text', 's', 5_000).catch((error: unknown) => error)
    await expect(bus.get(driver, 'Text', 's', 50)).rejects.toThrow('timed-out')
    expect(await bus.get(driver, 'Text', 's', 5_000)).toBe('foo')
    expect(clients).toHaveLength(2)
    clients[0]!.destroy()
    expect(await slow).toBeInstanceOf(BusFailed)
  })
})
