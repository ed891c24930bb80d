import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer } from 'node:https'
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
} from 'node:net'
import { X509Certificate } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { generateKey, signCertificate } from '../../../src/certificate/certificate.ts'
import { checkPlatform, type ChecksOptions } from '../../../src/connect/checks.ts'
import { passingHostKey } from '../../../src/uplink/host-key.ts'

// Platforms that cannot be reached, or are none; those that answer are in connect.test.ts.

const dayMs = 86_400_000
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function material(at: { readonly now?: number; readonly buildDate?: number } = {}) {
  const { now = Date.now(), buildDate = now - dayMs } = at
  const key = generateKey()
  const cert = await signCertificate({ key, names: { hostName: 'box', addresses: [] }, now, buildDate })
  return { key: key.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
}

async function listen(server: Server | TcpServer, address = '127.0.0.1'): Promise<number> {
  server.listen(0, address)
  await once(server, 'listening')
  ends.push(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** A platform that only greets, and counts its requests. */
async function platform(pair?: Awaited<ReturnType<typeof material>>, handler?: RequestListener) {
  const used = pair ?? (await material())
  const greet: RequestListener = (_, reply) => void reply.end('{"msg":"pong"}')
  const counts = { requests: 0 }
  const server = createServer(used, (request, reply) => {
    counts.requests += 1
    ;(handler ?? greet)(request, reply)
  })
  const port = await listen(server)
  const fingerprint = new X509Certificate(used.cert).fingerprint256
  return { url: `https://127.0.0.1:${port}`, ca: used.cert, fingerprint, counts }
}

/** A proxy that lets through, or that answers CONNECT with this line. */
async function proxy(answer?: string): Promise<string> {
  const server = createHttpServer()
  server.on('connect', ({ url = '' }, socket) => {
    socket.on('error', () => undefined)
    if (answer !== undefined) return void socket.end(`HTTP/1.1 ${answer}\r\n\r\n`)
    const way = connect(Number(url.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      way.pipe(socket).pipe(way)
    })
    way.on('error', () => socket.destroy())
    ends.push(() => way.destroy())
  })
  return `http://127.0.0.1:${await listen(server)}`
}

/** What the checks said, and how they ended. */
async function check(
  options: Pick<ChecksOptions, 'url' | 'ca' | 'fingerprint' | 'proxy' | 'hostWay' | 'timeoutMs'>,
) {
  const passed: string[] = []
  const error = await checkPlatform({
    ...{ timeoutMs: 5_000, now: () => Date.now(), ...options },
    tell: (name) => void passed.push(name),
    registration: {
      metadata: { name: 'press-3' },
      spec: {
        host: {
          ...{ hostUid: 'press-3', hostAddress: '', hostAuthToken: 'token' },
          hostIdentity: { mode: 'signature', publicKey: passingHostKey().publicKey },
        },
      },
    },
  }).then(
    () => undefined,
    (reason: unknown) => reason as Error,
  )
  expect(error?.message).toMatch(/Nothing was changed$/)
  // The names of settings are those of the daemon.
  expect(error?.message).not.toMatch(/platform\.(caFile|fingerprint|proxy|url)/)
  return { passed, message: error?.message ?? '' }
}

it('a name that another host has gives way to the id, as when the host registers', async () => {
  const names: string[] = []
  const { url, ca } = await platform(undefined, (request, reply) => {
    let text = ''
    request.on('data', (part) => (text += String(part)))
    request.on('end', () => {
      if (request.url === '/v1/health/ping') return void reply.end('{"msg":"pong"}')
      expect([request.method, request.url]).toEqual(['POST', '/v1/edgehosts/register?dryRun=true'])
      const { metadata } = JSON.parse(text) as { metadata: { name: string } }
      names.push(metadata.name)
      if (metadata.name === 'hall')
        return void reply.writeHead(409).end('{"code":"HostNameExists","message":"taken"}')
      const project = { aclmeta: { projectUid: 'p' }, projectName: 'Halle Süd 1' }
      reply.end(JSON.stringify({ metadata: { ...metadata, uid: '' }, ...project }))
    })
  })
  const told: string[] = []
  const hostIdentity = { mode: 'signature', publicKey: passingHostKey().publicKey } as const
  await checkPlatform({
    ...{ url, ca, now: () => Date.now(), tell: (_, text) => void told.push(text) },
    registration: {
      metadata: { name: 'hall' },
      spec: { host: { hostUid: 'press-3', hostAddress: '', hostAuthToken: 'token', hostIdentity } },
    },
  })
  expect(names).toEqual(['hall', 'press-3'])
  expect(told.at(-1)).toBe('is accepted; this host will be press-3, in the project Halle Süd 1')
})

describe('the checks end at', () => {
  it.each([
    '',
    '[]',
    '{}',
    '{"metadata":null,"aclmeta":{"projectUid":""}}',
    '{"metadata":{"uid":"","name":"a"}}',
    '{"metadata":{"uid":{},"name":"a"},"aclmeta":{"projectUid":""}}',
    '{"metadata":{"uid":"","name":"a"},"aclmeta":{"projectUid":["p"]}}',
  ])('a platform that says nothing of a host, though it accepts it: %s', async (text) => {
    const { url, ca } = await platform(undefined, ({ url: path }, reply) => {
      reply.end(path === '/v1/health/ping' ? '{"msg":"pong"}' : text)
    })
    const { passed, message } = await check({ url, ca })
    expect(passed).toEqual(['name', 'route', 'TLS', 'clock'])
    expect(message).toContain('not as a platform does')
  })

  it('a name that does not exist', async () => {
    const { passed, message } = await check({ url: 'https://no-such-platform.invalid' })
    expect([passed, message]).toEqual([
      [],
      expect.stringContaining('no-such-platform.invalid cannot be resolved'),
    ])
  })

  it('a closed port, after the name', async () => {
    const free = createTcpServer()
    const port = await listen(free)
    free.close()
    await once(free, 'close')
    const { passed, message } = await check({ url: `https://localhost:${port}` })
    expect([passed, message]).toEqual([['name'], expect.stringMatching(/ECONNREFUSED.*--proxy/)])
  })

  it('a server that accepts connections and says nothing', async () => {
    const silent = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      ends.push(() => socket.destroy())
    })
    const url = `https://127.0.0.1:${await listen(silent)}`
    const { passed, message } = await check({ url, timeoutMs: 200 })
    expect([passed, message]).toEqual([['name', 'route'], expect.stringContaining('did not answer in time')])
  })

  it('a server without TLS, and one that is no platform', async () => {
    const plain = await check({ url: `https://127.0.0.1:${await listen(createHttpServer())}` })
    expect([plain.passed, plain.message]).toEqual([
      ['name', 'route'],
      expect.stringContaining('does not speak TLS'),
    ])
    for (const handler of [
      (_, reply) => void reply.writeHead(404).end('{"code":"NotFound","message":"no"}'),
      (_, reply) => void reply.end('{"msg":"hello"}'),
      (_, reply) => void reply.end('<html>'),
    ] satisfies RequestListener[]) {
      const { url, ca } = await platform(undefined, handler)
      const { message } = await check({ url, ca })
      expect(message).toMatch(/not as a platform does.*the URL/)
    }
  })

  it('an issuer that is not known, with the fingerprint to compare; nothing was sent', async () => {
    const { url, fingerprint, counts } = await platform()
    const bySystem = await check({ url })
    expect(bySystem.passed).toEqual(['name', 'route'])
    expect(bySystem.message).toContain('this host does not know who issued the certificate')
    expect(bySystem.message).toContain(`If they match, add: --fingerprint ${fingerprint}`)
    expect(bySystem.message).toContain('sudo edgeplatformctl status')
    const byFile = await check({ url, ca: (await material()).cert })
    expect(byFile.message).toContain('the file of --ca-file does not say who issued')
    expect(counts.requests).toBe(0)
  })

  it('another certificate than the pinned one', async () => {
    const { url, fingerprint, counts } = await platform()
    const other = new X509Certificate((await material()).cert).fingerprint256
    const { passed, message } = await check({ url, fingerprint: other })
    expect(passed).toEqual(['name', 'route'])
    expect(message).toContain(`\n  ${fingerprint}\n`)
    expect(message).toContain(`--fingerprint is ${other}`)
    expect(counts.requests).toBe(0)
  })

  it('a certificate that has ended, one of the future, and one with another name', async () => {
    const old = await platform(await material({ now: Date.now() - 1_000 * dayMs }))
    expect((await check({ url: old.url, ca: old.ca })).message).toMatch(
      /has expired, and the clock of this host says \d{4}-/,
    )
    const future = await platform(await material({ buildDate: Date.now() + dayMs }))
    expect((await check({ url: future.url, ca: future.ca })).message).toMatch(
      /is not valid yet, .*check NTP, or set --fingerprint/,
    )
    const pair = await material()
    const port = await listen(createServer(pair), '127.0.0.2')
    const named = await check({ url: `https://127.0.0.2:${port}`, ca: pair.cert })
    expect([named.passed, named.message]).toEqual([
      ['name', 'route'],
      expect.stringContaining('does not name 127.0.0.2'),
    ])
  })

  it.each([
    ['407 Login', 'asks for a login'],
    ['403 No', /refused a connection .*status 403.*allow CONNECT to port/],
    ['502 Bad', /status 502/],
  ])('a proxy that answers %s', async (answer, problem) => {
    const { passed, message } = await check({ url: 'https://127.0.0.1:9', proxy: await proxy(answer) })
    expect([passed, message]).toEqual([['name'], expect.stringMatching(problem)])
  })

  it('the proxy of the host is gone through where none is given for the platform, and its login is in no message', async () => {
    const hostWay = {
      proxyFor: () => 'http://edge:canary@127.0.0.1:1',
      authorities: () => [],
    }
    const { message } = await check({ url: 'https://127.0.0.1:9', hostWay })
    expect(message).toMatch(/the proxy http:\/\/.*127\.0\.0\.1:1 cannot be reached/)
    expect(message).not.toContain('canary')
  })

  it('a proxy that cannot be reached', async () => {
    const closed = await check({ url: 'https://127.0.0.1:9', proxy: 'http://127.0.0.1:1' })
    expect(closed.message).toMatch(
      /the proxy http:\/\/127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\); check --proxy/,
    )
    const unknown = await check({ url: 'https://127.0.0.1:9', proxy: 'http://no-such-proxy.invalid:3128' })
    expect([unknown.passed, unknown.message]).toEqual([
      [],
      expect.stringMatching(/the proxy .*no-such-proxy.* cannot be reached \(E/),
    ])
  })

  it('a proxy that may open TLS, with the fingerprint that tells', async () => {
    const { url, fingerprint } = await platform()
    const { passed, message } = await check({ url, ca: (await material()).cert, proxy: await proxy() })
    expect(passed).toEqual(['name', 'route'])
    expect(message).toMatch(/the proxy may open TLS/)
    expect(message).toContain(`If they match, add: --fingerprint ${fingerprint}`)
  })
})
