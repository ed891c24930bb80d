import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig, parseCommandLine } from '../../src/edgehostd/declarations.ts'
import { createDaemon, type Daemon } from '../../src/edgehostd/root.ts'
import { StateInUse } from '../../src/store/state-lock.ts'
import { listeningPort, captureLog, makeMaterial, openTcp, openTls } from '../support/https-server.ts'
import { waitFor } from '../support/wait-for.ts'

let folder: string
let running: Daemon[]
let captured: ReturnType<typeof captureLog>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-daemon-'))
  running = []
  captured = captureLog()
})
afterEach(async () => {
  for (const daemon of running) await daemon.stop()
  await rm(folder, { recursive: true })
})

async function create(...flags: string[]): Promise<Daemon> {
  const commandLine = parseCommandLine([`--state.directory=${folder}`, '--api.address=127.0.0.1', ...flags])
  const { config } = await loadConfig({
    commandLine,
    environment: {},
    defaultFile: join(folder, 'none.yaml'),
  })
  // Whichever is free.
  const api = { ...config.api, port: 0 }
  return createDaemon({
    config: { ...config, api },
    log: captured.log,
    version: '1.2.3',
    buildDate: Date.UTC(2026, 0, 1),
  })
}
async function start(...flags: string[]) {
  const daemon = await create(...flags)
  running.push(daemon)
  await daemon.start()
  return daemon
}
async function stop(daemon: Daemon) {
  running.splice(running.indexOf(daemon), 1)
  await daemon.stop()
}
/** Stops the daemon; says whether it waited for the ten seconds that requests in flight get. */
async function stopWaits(daemon: Daemon): Promise<boolean> {
  const begin = globalThis.setTimeout
  let [deadlines, isOver] = [0, false]
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run: () => void, ms?: number) => {
    if (ms !== drainMs) return begin(run, ms)
    deadlines += 1
    return begin(() => {
      isOver = true
      run()
    }, ms)
  })
  await stop(daemon)
  spy.mockRestore()
  // Other parts may have the same limit: none of them is reached.
  expect(deadlines).toBeGreaterThan(0)
  return isOver
}
const drainMs = 10_000
const records = () => captured.lines.filter(({ kind }) => kind === 'audit')
const made = () =>
  records().map(({ action, resource, msg }) => [action, (resource as { kind: string }).kind, msg].join(' '))
const heads = () => captured.lines.filter(({ kind }) => kind === 'audit-head')

describe('a start', () => {
  it('a start removes what a killed daemon has left of questions to kubeadm and of files that it replaced', async () => {
    const cluster = join(folder, 'cluster')
    await mkdir(join(cluster, '.ask-3S6f3s'), { recursive: true })
    await writeFile(join(cluster, '.ask-3S6f3s', 'given.yaml'), 'secret: 1')
    await writeFile(join(cluster, '.host.json.7470644c9d440170.tmp'), 'half')
    await writeFile(join(cluster, 'host.json'), '{}')
    await start()
    expect((await readdir(cluster)).filter((name) => /ask|host/.test(name))).toEqual(['host.json'])
  })

  it('a start is recorded with all that it makes; the next one makes nothing', async () => {
    await stop(await start())
    const first = made()
    for (const what of [
      'create secret',
      'create key',
      'create certificate',
      'create edgehost',
      'action daemon',
    ])
      expect(first.filter((line) => line.startsWith(what)).length, what).toBe(
        what === 'action daemon' ? 2 : 1,
      )
    captured.lines.length = 0
    await stop(await start())
    expect(made()).toEqual(['action daemon Start version 1.2.3 in mode airgap', 'action daemon Stop'])
  })

  it('a start and a stop write the head of the trail to the journal', async () => {
    const daemon = await start()
    const newest = records().at(-1)
    expect(heads()).toEqual([expect.objectContaining({ seq: newest?.seq, hash: newest?.hash })])
    await stop(daemon)
    expect(heads()).toHaveLength(2)
    expect(heads()[1]).toMatchObject({ seq: records().at(-1)?.seq, hash: records().at(-1)?.hash })
  })

  it('a start ends sessions of deleted local accounts before it listens, and asks NSS for others afterwards', async () => {
    await stop(await start())
    const database = new DatabaseSync(join(folder, 'edgehostd.db'))
    const put = database.prepare(
      `INSERT INTO session (uid, user_name, role, account_source, role_source, address, created_at, renewed_at,
        expires_at, account_mark, refresh_hash, generation)
        VALUES (?, 'no-such-user', 'admin', ?, 'local', '::1', ?, ?, ?, '', '', 0)`,
    )
    const now = Date.now()
    put.run('of a file', 'local', now, now, now + 3_600_000)
    put.run('of a directory', 'directory', now, now, now + 3_600_000)
    database.close()
    captured.lines.length = 0
    await start()
    const said = () =>
      captured.lines.flatMap(({ msg, session }) =>
        msg === 'listening' ? [msg] : typeof session === 'string' ? [session] : [],
      )
    await waitFor(() => expect(said()).toEqual(['of a file', 'listening', 'of a directory']), {
      timeout: 60_000,
    })
  })

  it('a start without the required mount of the content ends with 66 and says what to do', async () => {
    const content = join(folder, 'content')
    const refusal = await start('--content.requireMount=true').catch((error: unknown) => error)
    expect(refusal).toMatchObject({
      exitCode: 66,
      message: `content.requireMount: no file system is mounted at ${content}; see findmnt ${content}, mount the disk and start the daemon again with systemctl start edgehostd`,
    })
  })

  it('a second daemon is refused, and the first one keeps running', async () => {
    const daemon = await start()
    await expect(create()).rejects.toThrow(StateInUse)
    await stop(daemon)
    await start()
  })

  it('a start with a damaged secret logs that all users have to log in again', async () => {
    await stop(await start())
    await writeFile(join(folder, 'secret'), '')
    captured.lines.length = 0
    await stop(await start())
    expect(captured.lines).toContainEqual(
      expect.objectContaining({
        ...{ level: 40, file: join(folder, 'secret') },
        msg: expect.stringContaining('log in again'),
      }),
    )
  })

  it('a start with the secret of another state answers, says so once, and records it; the own one put back too', async () => {
    await stop(await start())
    const file = join(folder, 'secret')
    const own = await readFile(file)
    for (const secret of [randomBytes(32), own]) {
      await writeFile(file, secret)
      captured.lines.length = 0
      await stop(await start())
      expect(made()).toContain(
        'update secret Start with another secret than the last time; it was replaced while the daemon did not run',
      )
      const warnings = () =>
        captured.lines.filter(
          ({ level, msg }) => level === 40 && String(msg).includes('another one than at the last'),
        )
      expect(warnings()).toEqual([expect.objectContaining({ file })])
      captured.lines.length = 0
      await stop(await start())
      expect([made().filter((line) => line.includes('secret')), warnings()]).toEqual([[], []])
    }
  })

  it('a start with a damaged database records that first, in the new trail', async () => {
    await stop(await start())
    await writeFile(join(folder, 'edgehostd.db'), 'no database at all '.repeat(1_000))
    captured.lines.length = 0
    const daemon = await start()
    const [aside = ''] = (await readdir(folder)).filter((name) => name.startsWith('edgehostd.db.corrupt-'))
    expect(records()[0]).toMatchObject({
      ...{ seq: 1, action: 'create', actor: 'edgehostd', outcome: 'failed' },
      msg: `Begin a new trail, since the database was damaged; the old one is kept as ${join(folder, aside)}`,
    })
    await stop(daemon)
    const database = new DatabaseSync(join(folder, 'edgehostd.db'), { readOnly: true })
    expect(database.prepare('SELECT message FROM audit WHERE seq = 1').get()?.message).toContain(aside)
    database.close()
  })
})

it('a stop does not wait for a connection without a request', async () => {
  const daemon = await start()
  const port = listeningPort(captured)
  const ca = await readFile(join(folder, 'tls', 'certificate.pem'), 'utf8')
  const clients = [await openTcp(port), await openTls(port, ca), await openTls(port, ca)]
  clients[2]?.socket.write('GET /v1/ping HTTP/1.1\r\n')
  expect(await stopWaits(daemon)).toBe(false)
  await waitFor(() => expect(clients.map(({ closed }) => closed)).toEqual([true, true, true]))
})

it('a stop answers a request that waits for the first reading of the host', async () => {
  const socketPath = join(folder, 'api.sock')
  const daemon = await start(`--api.socket.path=${socketPath}`)
  const arrived = new Promise<unknown>((resolve) => subscribe('http.server.request.start', resolve))
  const reply = new Promise<IncomingMessage>((resolve, reject) => {
    get({ socketPath, path: '/v1/edge-mgmt/edgehosts/current', agent: false }, resolve).on('error', reject)
  })
  await arrived
  await stop(daemon)
  expect((await reply).statusCode).toBe(200)
})

it('a stop refuses a body that does not arrive, and does not wait for it', async () => {
  const daemon = await start()
  const port = listeningPort(captured)
  const ca = await readFile(join(folder, 'tls', 'certificate.pem'), 'utf8')
  const client = await openTls(port, ca)
  client.socket.write(
    'POST /v1/users/default/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{"username":',
  )
  await waitFor(() => expect(client.socket.bytesWritten).toBeGreaterThan(0))
  expect(await stopWaits(daemon)).toBe(false)
  expect(client.received).toMatch(
    /^HTTP\/1\.1 503 [\s\S]*"message":"the daemon stops; send the request again"/,
  )
})

it('a reload whose certificate cannot be used is recorded', async () => {
  const { cert, key } = await makeMaterial()
  const [certificateFile, keyFile] = [join(folder, 'own.pem'), join(folder, 'own.key')]
  await Promise.all([writeFile(certificateFile, cert), writeFile(keyFile, key)])
  const daemon = await start(`--api.tls.certificateFile=${certificateFile}`, `--api.tls.keyFile=${keyFile}`)
  await writeFile(certificateFile, 'no certificate')
  await daemon.reload()
  expect(records().at(-1)).toMatchObject({ action: 'action', outcome: 'failed', actor: 'edgehostd' })
  expect(records().at(-1)?.msg).toContain(`the new one cannot be used: ${certificateFile}`)
})
