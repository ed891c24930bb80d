import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  rmSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestTls } from 'node:https'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLocalServer, type LocalServer } from '../../../src/api/connection/local-server.ts'
import { listen } from '../../../src/api/connection/listen.ts'
import { StartError } from '../../../src/errors/start-error.ts'
import { auditsPath } from '../../support/audits.ts'
import { captureLog, generous } from '../../support/https-server.ts'
import {
  createTestEdge,
  currentPath,
  loginPath,
  logoutPath,
  renewalPath,
  resetPath,
  sessionsPath,
  type LoginReply,
  type TestEdge,
} from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

const isRoot = process.getuid?.() === 0

let folder: string
let path: string
const undo: (() => unknown)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-local-'))
  path = join(folder, 'run', 'edgehostd.sock')
})
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
  rmSync(folder, { recursive: true, force: true })
})

const makeLocal = (at = path) => createLocalServer({ path: at, timeouts: generous, log: captureLog().log })

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

function ask(
  method: string,
  url: string,
  { body, headers = {}, at = path }: { body?: unknown; headers?: Record<string, string>; at?: string } = {},
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = request(
    { socketPath: at, method, path: url, agent: false, headers: { ...type, ...headers } },
    (reply) => {
      let text = ''
      // A stream of events ends only with its session.
      if (reply.headers['content-type'] === 'text/event-stream') reply.once('data', () => sent.destroy())
      reply.on('data', (chunk: Buffer) => (text += chunk.toString()))
      reply.on('close', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text }))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text }))
    },
  )
  sent.on('error', reject)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}

const limits = {
  enabled: true,
  ...{ requestsPerSecond: 1, burst: 2 },
  login: { requestsPerSecond: 1, burst: 2 },
  blobs: { requestsPerSecond: 1, burst: 2 },
  ...{ resources: [], trackedKeys: 100 },
}

/** A whole edge on the local socket and on a TCP port of the loopback. */
async function startEdge(options: Parameters<typeof createTestEdge>[0] = {}) {
  const edge = await createTestEdge({ socket: path, rateLimits: limits, ...options })
  undo.push(() => edge.stop())
  const { port } = await edge.daemon.rooms.api.listen(0)
  return { edge, port }
}

const actors = (edge: TestEdge) =>
  edge.database.sql
    .prepare('SELECT actor FROM audit')
    .all()
    .map(({ actor }) => actor)

describe('the socket', () => {
  it('only its owner can read and write the local socket, from its first moment', async () => {
    const local = makeLocal()
    const before = process.umask(0)
    undo.push(
      () => process.umask(before),
      () => local.close(),
    )
    const listening = local.listen((_request, reply) => reply.end('here'))
    await waitFor(() => expect(existsSync(path)).toBe(true), { interval: 1 })
    expect(lstatSync(path).mode & 0o7777).toBe(0o600)
    await listening
    expect(lstatSync(path).mode & 0o7777).toBe(0o600)
    expect(process.umask(0)).toBe(0)
    expect((await ask('GET', '/')).text).toBe('here')
  })

  it('the local socket is created with its folder, for its owner alone', async () => {
    const local = makeLocal()
    await local.listen(() => undefined)
    expect(statSync(join(folder, 'run')).mode & 0o777).toBe(0o700)
    await local.close()
  })

  it('the local socket is removed at the close', async () => {
    const local = makeLocal()
    await local.listen(() => undefined)
    await local.close()
    expect(existsSync(path)).toBe(false)
  })

  it('without a path there is no local socket', async () => {
    const local = makeLocal('')
    await local.listen(() => undefined)
    await local.close()
  })

  it('the local socket replaces that of a killed daemon', async () => {
    rmSync(join(folder, 'run'), { recursive: true, force: true })
    const script = `const s=require('node:http').createServer();process.umask(0o177);
      require('node:fs').mkdirSync(${JSON.stringify(join(folder, 'run'))});
      s.listen({path:${JSON.stringify(path)}},()=>console.log('up'))`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(lstatSync(path).isSocket()).toBe(true)

    const local = makeLocal()
    undo.push(() => local.close())
    await local.listen((_request, reply) => reply.end('new'))
    expect((await ask('GET', '/')).text).toBe('new')
  })

  it('the socket of another running process is kept, and the error names that process', async () => {
    const first = makeLocal()
    undo.push(() => first.close())
    await first.listen((_request, reply) => reply.end('first'))
    const refused = await makeLocal()
      .listen(() => undefined)
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StartError)
    expect((refused as Error).message).toBe(
      `another process listens on ${path}: find it with ss -lxp src ${path} and end it, or set api.socket.path`,
    )
    expect((await ask('GET', '/')).text).toBe('first')
  })

  it('the local socket does not replace a file', async () => {
    const file = join(folder, 'notes')
    writeFileSync(file, 'mine')
    await expect(makeLocal(file).listen(() => undefined)).rejects.toThrow(
      `${file} exists and is not a socket: see ls -l ${file}`,
    )
    expect(statSync(file).size).toBe(4)
  })

  it('the error for a folder that cannot be created names the reason and the commands', async () => {
    const at = join(folder, 'no', 'where', 'edgehostd.sock')
    await expect(makeLocal(at).listen(() => undefined)).rejects.toThrow(
      `the local socket ${at} cannot be created (ENOENT): see namei -l ${join(folder, 'no', 'where')}`,
    )
  })

  it.skipIf(!isRoot)('the kernel refuses the local socket to another user', async () => {
    const local = makeLocal(join(folder, 'edgehostd.sock'))
    undo.push(() => local.close())
    await local.listen((_request, reply) => reply.end('open'))
    // The folder is open to every user here: the mode of the socket itself refuses.
    chmodSync(folder, 0o755)
    const script = `require('node:net').connect(${JSON.stringify(join(folder, 'edgehostd.sock'))})
      .on('connect',()=>{console.log('in');process.exit()}).on('error',(e)=>console.log(e.code))`
    const output = async (args: string[]) => {
      const child = spawn('setpriv', [...args, process.execPath, '-e', script])
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()))
      await once(child, 'close')
      return text.trim()
    }
    expect(await output(['--reuid=65534', '--regid=65534', '--clear-groups'])).toBe('EACCES')
    expect(await output(['--reuid=0'])).toBe('in')
  })
})

describe('a request over the socket', () => {
  it('a request on the local socket is that of root, an administrator, without a token', async () => {
    await startEdge()
    expect(JSON.parse((await ask('GET', currentPath)).text)).toMatchObject({
      userName: 'root',
      role: 'admin',
    })
    expect((await ask('GET', auditsPath)).status).toBe(200)
  })

  it('a request on the local socket has no rate limit, but one over TCP has', async () => {
    const { edge } = await startEdge()
    for (let i = 0; i < 20; i++) {
      const reply = await ask('GET', sessionsPath)
      expect(reply.status).toBe(200)
      expect(reply.headers).not.toHaveProperty('ratelimit')
    }
    for (let i = 0; i < 20; i++) expect((await ask('GET', '/v1/nowhere')).status).toBe(404)
    for (let i = 0; i < 20; i++) expect((await ask('GET', '/v1/%zz')).status).toBe(400)
    const overTcp = [1, 2, 3].map(() => edge.get(sessionsPath))
    expect((await Promise.all(overTcp)).map(({ statusCode }) => statusCode)).toContain(429)
  })

  it('a request is local only by the server that accepted it, and not by anything that is sent', async () => {
    const { edge, port } = await startEdge()
    const spoof = { 'x-forwarded-for': 'local', forwarded: 'for=local', 'x-real-ip': 'local', host: path }
    const ca = readFileSync(join(edge.stateDirectory, 'tls', 'certificate.pem'))
    const asked = requestTls({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      path: currentPath,
      headers: spoof,
      ca,
    })
    const [reply] = (await once(asked.end(), 'response')) as [IncomingMessage]
    expect(reply.statusCode).toBe(401)
    reply.destroy()
    // A TCP connection that was reset has no address either, like those of the local socket.
    for (let i = 0; i < 20; i++) {
      const raw = connect({ port, host: '127.0.0.1' })
      const socket = connectTls({ socket: raw, servername: 'localhost', ca })
      await once(socket, 'secureConnect')
      await new Promise((sent) => socket.write(`POST ${logoutPath} HTTP/1.1\r\nHost: x\r\n\r\n`, sent))
      raw.resetAndDestroy()
    }
    await ask('GET', '/v1/ping')
    expect(actors(edge)).not.toContain('root')
  })

  it('a token on the local socket is ignored', async () => {
    const { edge } = await startEdge()
    const { access } = await edge.login('bob')
    for (const authorization of [access, 'garbage']) {
      const reply = await ask('GET', currentPath, { headers: { authorization } })
      expect(JSON.parse(reply.text)).toMatchObject({ userName: 'root', role: 'admin' })
    }
  })

  it('a request on the local socket is audited as root, at the address local', async () => {
    const { edge } = await startEdge()
    const { access } = await edge.login('bob')
    const uid = edge.sessions.authenticate(access)?.sessionUid
    const reply = await ask('DELETE', `${sessionsPath}/${uid}`)
    expect(reply.status).toBe(204)
    const audits = await ask('GET', `${auditsPath}?filters=metadata.uid=${String(reply.headers.audituid)}`)
    expect(JSON.parse(audits.text)).toMatchObject({
      items: [{ spec: { actor: { actorType: 'user', uid: 'root', role: 'admin', address: 'local' } } }],
    })
    expect(edge.sessions.authenticate(access)).toBeUndefined()
  })

  it('a request on the local socket about its own session is refused with NoSession', async () => {
    await startEdge()
    for (const [url, body] of [
      [logoutPath, undefined],
      [resetPath, { oldPassword: 'root pass', newPassword: 'another pass' }],
    ] as const) {
      const reply = await ask('POST', url, { body })
      expect(reply.status, url).toBe(400)
      expect(JSON.parse(reply.text), url).toMatchObject({ code: 'NoSession' })
    }
    const renewal = await ask('POST', renewalPath, { body: {} })
    expect(renewal.status).toBe(400)
  })

  it('a login over the local socket is possible, and PAM gets it as local', async () => {
    const { edge } = await startEdge()
    const reply = await ask('POST', loginPath, { body: { username: 'bob', password: 'bob pass' } })
    expect(reply.status).toBe(200)
    expect(edge.pamCalls().at(-1)?.args.join(' ')).not.toContain('rhost')
    const { Token } = JSON.parse(reply.text) as LoginReply
    expect(edge.sessions.list().map(({ userName, address }) => [userName, address])).toEqual([
      ['bob', 'local'],
    ])
    expect((await edge.get(currentPath, Token.Authorization)).statusCode).toBe(200)
  })

  it('bytes on the local socket that are not HTTP get the error body', async () => {
    await startEdge()
    const socket = connect({ path })
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.write('nonsense\r\n\r\n')
    await once(socket, 'close')
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).toContain('"code":"BadRequest"')
  })
})

describe('the close', () => {
  async function startWaiting() {
    const local = makeLocal()
    const held = Promise.withResolvers<() => void>()
    await local.listen((_request, reply) => held.resolve(() => reply.end('late')))
    return { local, held: held.promise }
  }

  it('the close of the local socket waits for requests in flight, and ends idle connections', async () => {
    const { local, held } = await startWaiting()
    const idle = connect({ path })
    await once(idle, 'connect')
    const reply = ask('GET', '/')
    const answer = await held
    let isClosed = false
    const closing = local.close().then(() => (isClosed = true))
    await expect(ask('GET', '/')).rejects.toThrow(/ENOENT|ECONNREFUSED/)
    expect(isClosed).toBe(false)
    answer()
    expect((await reply).text).toBe('late')
    await closing
    expect(existsSync(path)).toBe(false)
    idle.destroy()
  })

  it('the close of the local socket does not wait for a client that keeps its connection', async () => {
    const { local, held } = await startWaiting()
    const client = connect({ path })
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const answer = await held
    const ended = once(client.resume(), 'close')
    const closing = local.close()
    answer()
    await closing
    await ended
  })

  it('closeConnections ends all open connections of the local socket', async () => {
    const { local, held } = await startWaiting()
    const reply = ask('GET', '/').catch((error: unknown) => error)
    await held
    const closing = local.close()
    local.closeConnections()
    await closing
    expect(await reply).toBeInstanceOf(Error)
  })
})

describe('a port that cannot be had', () => {
  it('an occupied port is a start error with the command that finds the owner, and leaves no socket behind', async () => {
    const other = createServer()
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    undo.push(() => other.close())
    const { port } = other.address() as AddressInfo
    const local = makeLocal()
    const edge = await createTestEdge()
    undo.push(() => edge.stop())
    const refused = listen(edge.app, { address: '127.0.0.1', port, inherited: 0, local })
    await expect(refused).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: another process listens there: ` +
        `find it with ss -ltnp 'sport = :${port}' and end it, or set api.port`,
    )
    await expect(refused).rejects.toBeInstanceOf(StartError)
    expect(existsSync(path)).toBe(false)
  })

  it('an address that this host does not have is a start error that names it', async () => {
    const local: LocalServer = makeLocal('')
    const edge = await createTestEdge()
    undo.push(() => edge.stop())
    await expect(
      listen(edge.app, { address: '192.0.2.77', port: 5080, inherited: 0, local }),
    ).rejects.toThrow(
      'cannot listen on 192.0.2.77:5080: this host does not have the address: see ip -brief address, and correct api.address',
    )
  })
})
