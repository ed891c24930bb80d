import { X509Certificate } from 'node:crypto'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer } from 'node:https'
import { once } from 'node:events'
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
} from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { generateKey, signCertificate } from '../../../src/certificate/certificate.ts'
import { createPlatformClient, type PlatformClientOptions } from '../../../src/uplink/client.ts'

const dayMs = 86_400_000
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function material(now = Date.now(), buildDate = now - dayMs, key = generateKey()) {
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

const well: RequestListener = (_, reply) =>
  void reply.setHeader('content-type', 'application/json').end('{"hello":"host"}')

async function platform(handler: RequestListener = well, pair?: Awaited<ReturnType<typeof material>>) {
  const used = pair ?? (await material())
  const server = createServer(used, handler)
  const port = await listen(server)
  return { server, port, ca: used.cert, fingerprint: new X509Certificate(used.cert).fingerprint256 }
}

function clientOf(options: Omit<PlatformClientOptions, 'now'>) {
  const client = createPlatformClient({ now: () => Date.now(), timeoutMs: 5_000, ...options })
  ends.push(client.close)
  return { ...client, get: (path = '/v1/ping') => client.call({ method: 'GET', path }) }
}

async function proxy(answer?: string) {
  const asked: string[] = []
  const server = createHttpServer()
  server.on('connect', ({ url = '' }, socket) => {
    asked.push(url)
    socket.on('error', () => undefined)
    if (answer !== undefined) return void socket.end(answer)
    const way = connect(Number(url.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      way.pipe(socket).pipe(way)
    })
    way.on('error', () => socket.destroy())
    ends.push(() => way.destroy())
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, asked }
}

describe('a call of the platform', () => {
  it('uses one connection for calls one after the other, and sends token and body', async () => {
    const seen: unknown[] = []
    const { server, port, ca } = await platform((request, reply) => {
      let text = ''
      request.on('data', (part) => (text += String(part)))
      request.on('end', () => {
        seen.push([request.method, request.url, request.headers.authorization, text])
        well(request, reply)
      })
    })
    let connections = 0
    server.on('secureConnection', () => connections++)
    const client = clientOf({ url: `https://127.0.0.1:${port}`, ca })
    const body = { state: 'healthy' }
    const answer = await client.call({ method: 'PATCH', path: '/v1/x', token: 'abc', body })
    expect(answer).toMatchObject({ status: 200, body: { hello: 'host' } })
    expect(answer.cause).toBeUndefined()
    await client.get()
    expect(seen[0]).toEqual(['PATCH', '/v1/x', 'abc', '{"state":"healthy"}'])
    expect(connections).toBe(1)
  })

  it('makes each call on a new connection after it was told to connect anew, and ends the calls of before', async () => {
    let isSilent = false
    const { server, port, ca } = await platform((request, reply) => {
      if (request.url === '/v1/silent') isSilent = true
      else well(request, reply)
    })
    let connections = 0
    server.on('secureConnection', () => connections++)
    const client = clientOf({ url: `https://127.0.0.1:${port}`, ca })
    await client.get()
    expect(connections).toBe(1)
    const silent = client.get('/v1/silent')
    await expect.poll(() => isSilent).toBe(true)
    client.reconnect()
    expect((await silent).cause).toBeDefined()
    expect(await client.get()).toMatchObject({ status: 200 })
    expect(await client.get()).toMatchObject({ status: 200 })
    expect(connections).toBe(2)
  })

  it('repeats a call when the platform has closed the kept connection', async () => {
    let served = 0
    const { port, ca } = await platform((request, reply) => {
      if (++served === 2) request.socket.destroy()
      else well(request, reply)
    })
    const client = clientOf({ url: `https://127.0.0.1:${port}`, ca })
    await client.get()
    expect(await client.get()).toMatchObject({ status: 200 })
    expect(served).toBe(3)
  })

  it('accepts a pinned certificate whatever its name and time, and no other', async () => {
    const old = await material(Date.now() - 1_000 * dayMs)
    const { port, fingerprint } = await platform(well, old)
    const url = `https://127.0.0.1:${port}`
    expect(await clientOf({ url, fingerprint }).get()).toMatchObject({ status: 200 })
    const other = fingerprint.startsWith('00') ? `11${fingerprint.slice(2)}` : `00${fingerprint.slice(2)}`
    const { cause } = await clientOf({ url, fingerprint: other }).get()
    expect(cause?.kind).toBe('fingerprint')
    expect(cause?.message).toContain(fingerprint)
  })

  it('accepts a certificate that was renewed with the key of a trusted one, where its name and times are right', async () => {
    const key = generateKey()
    const before = await material(Date.now() - 826 * dayMs, Date.now() - 827 * dayMs, key)
    const answered = async (pair: Awaited<ReturnType<typeof material>>, host = '127.0.0.1') => {
      const port = await listen(createServer(pair, well), host)
      const { status, cause } = await clientOf({ url: `https://${host}:${port}`, ca: before.cert }).get()
      return status ?? cause?.kind
    }
    const now = Date.now()
    expect(await answered(await material(now, now - dayMs, key))).toBe(200)
    expect(await answered(await material())).toBe('certificateIssuer')
    expect(await answered(await material(now, now + dayMs, key))).toMatch(/certificate|clock/)
    expect(await answered(before)).toBe('certificateExpired')
    expect(await answered(await material(now, now - dayMs, key), '127.0.0.2')).toMatch(/^certificate/)
  })

  it('accepts a renewed certificate in place of the pinned one, once it has seen that with the same key', async () => {
    const key = generateKey()
    const now = Date.now()
    const pairs = [await material(now, now - dayMs, key), await material(now, now - dayMs, key)]
    const [before, after] = await Promise.all(pairs.map((pair) => platform(well, pair)))
    const foreign = await platform(well)
    let known: string | undefined
    const pinnedKey = { known: () => known, learn: (found: string) => (known = found) }
    const ask = async ({ port }: { port: number }) => {
      const { fingerprint } = before!
      const client = clientOf({ url: `https://127.0.0.1:${port}`, fingerprint, pinnedKey })
      const { status, cause } = await client.get()
      return status ?? cause?.kind
    }
    expect(await ask(after!)).toBe('fingerprint')
    expect(await ask(before!)).toBe(200)
    expect(await ask(after!)).toBe(200)
    expect(await ask(foreign)).toBe('fingerprint')
  })

  it('sends nothing to a platform whose fingerprint differs', async () => {
    let served = 0
    const { port } = await platform((request, reply) => {
      served++
      well(request, reply)
    })
    await clientOf({ url: `https://127.0.0.1:${port}`, fingerprint: '00' }).get()
    expect(served).toBe(0)
  })

  it('names an unknown issuer, an expired certificate, one of the future, and a wrong name', async () => {
    const kindWith = async (pair: Awaited<ReturnType<typeof material>>, isKnown = true) => {
      const { port, ca } = await platform(well, pair)
      const { cause } = await clientOf({ url: `https://127.0.0.1:${port}`, ...(isKnown ? { ca } : {}) }).get()
      return cause?.kind
    }
    expect(await kindWith(await material(), false)).toBe('certificateIssuer')
    expect(await kindWith(await material(Date.now() - 1_000 * dayMs))).toBe('certificateExpired')
    expect(await kindWith(await material(Date.now(), Date.now() + dayMs))).toBe('clock')
    // Another address of this machine, which the certificate does not name.
    const pair = await material()
    const port = await listen(createServer(pair, well), '127.0.0.2')
    const wrong = await clientOf({ url: `https://127.0.0.2:${port}`, ca: pair.cert }).get()
    expect(wrong.cause?.kind).toBe('certificateName')
  })

  it('names a name that does not exist, a closed port, and a server that does not speak TLS', async () => {
    const unknown = await clientOf({ url: 'https://no-such-platform.invalid' }).get()
    expect(unknown.cause?.kind).toBe('name')
    const free = createTcpServer()
    const port = await listen(free)
    free.close()
    await once(free, 'close')
    expect((await clientOf({ url: `https://127.0.0.1:${port}` }).get()).cause?.kind).toBe('route')
    const plain = await listen(createHttpServer(well))
    expect((await clientOf({ url: `https://127.0.0.1:${plain}` }).get()).cause?.kind).toBe('tls')
  })

  it('ends a call that has no answer, before and after TLS', async () => {
    const silent = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      ends.push(() => socket.destroy())
    })
    const port = await listen(silent)
    const early = await clientOf({ url: `https://127.0.0.1:${port}`, timeoutMs: 200 }).get()
    expect(early.cause?.kind).toBe('timeout')
    const slow = await platform(() => undefined)
    const late = await clientOf({ url: `https://127.0.0.1:${slow.port}`, ca: slow.ca, timeoutMs: 300 }).get()
    expect(late.cause?.kind).toBe('timeout')
  })

  it('follows no redirect, and refuses what is too long or not JSON', async () => {
    const kindOf = async (handler: RequestListener) => {
      const { port, ca } = await platform(handler)
      return (await clientOf({ url: `https://127.0.0.1:${port}`, ca }).get()).cause
    }
    const redirect = await kindOf((_, reply) => void reply.writeHead(302, { location: '/other' }).end())
    expect(redirect).toMatchObject({ kind: 'foreign', message: expect.stringContaining('302') as string })
    const long = await kindOf((_, reply) => void reply.end(`"${'x'.repeat(1_100_000)}"`))
    expect(long).toMatchObject({ kind: 'foreign', message: expect.stringContaining('longer than') as string })
    const page = await kindOf((_, reply) => void reply.end('<html>'))
    expect(page).toMatchObject({ kind: 'foreign', message: expect.stringContaining('JSON') as string })
  })

  it('passes on Retry-After, and names what the platform refuses', async () => {
    const { port, ca } = await platform(
      (_, reply) =>
        void reply.writeHead(503, { 'retry-after': '7' }).end('{"code":"NotReady","message":"not now"}'),
    )
    const answer = await clientOf({ url: `https://127.0.0.1:${port}`, ca }).get()
    expect(answer).toMatchObject({ status: 503, retryAfter: '7', cause: { kind: 'busy' } })
  })
})

describe('a client that is closed', () => {
  // Longer than a test may take.
  const timeoutMs = 3_600_000
  /** A server that answers nothing, and how many connections to it are open. */
  async function silence() {
    let open = 0
    const server = createTcpServer((socket) => {
      open += 1
      socket.on('error', () => undefined).on('close', () => (open -= 1))
      socket.resume()
      ends.push(() => socket.destroy())
    })
    return { url: `127.0.0.1:${await listen(server)}`, open: () => open }
  }
  async function endsAtOnce(client: ReturnType<typeof clientOf>, call: Promise<unknown>) {
    client.close()
    expect(await call).toMatchObject({ cause: { kind: 'timeout' } })
  }

  it.each(['directly', 'through a proxy'])('ends a connection that is being made %s', async (how) => {
    const silent = await silence()
    const client = clientOf({
      ...(how === 'directly'
        ? { url: `https://${silent.url}` }
        : { url: 'https://127.0.0.1:9', proxy: `http://${silent.url}` }),
      timeoutMs,
    })
    const call = client.get()
    await expect.poll(silent.open).toBe(1)
    await endsAtOnce(client, call)
    await expect.poll(silent.open, { timeout: timeoutMs / 4 }).toBe(0)
  })

  it('ends a TLS handshake through a proxy', async () => {
    const silent = await silence()
    const { url } = await proxy()
    const client = clientOf({ url: `https://${silent.url}`, proxy: url, timeoutMs })
    const call = client.get()
    await expect.poll(silent.open).toBe(1)
    await endsAtOnce(client, call)
    await expect.poll(silent.open, { timeout: timeoutMs / 4 }).toBe(0)
  })

  it('ends a call over a kept connection, and neither repeats it nor sends another one', async () => {
    let served = 0
    let connections = 0
    const { server, port, ca } = await platform((request, reply) => {
      if (++served === 1) well(request, reply)
    })
    server.on('connection', () => connections++)
    const client = clientOf({ url: `https://127.0.0.1:${port}`, ca, timeoutMs })
    await client.get()
    const call = client.get()
    await expect.poll(() => served).toBe(2)
    await endsAtOnce(client, call)
    await endsAtOnce(client, client.get())
    // What was sent would have come by now.
    await clientOf({ url: `https://127.0.0.1:${port}`, ca, timeoutMs: 300 }).get()
    expect([served, connections]).toEqual([3, 2])
  })

  it('ends a call whose reply is still coming', async () => {
    const { port, ca } = await platform((_, reply) => void reply.writeHead(200).write('{'))
    const client = clientOf({ url: `https://127.0.0.1:${port}`, ca, timeoutMs })
    const call = client.get()
    await sleep(200)
    await endsAtOnce(client, call)
  })
})

describe('through a proxy', () => {
  it('reaches the platform by CONNECT', async () => {
    const { port, ca } = await platform()
    const { url, asked } = await proxy()
    const answer = await clientOf({ url: `https://127.0.0.1:${port}`, ca, proxy: url }).get()
    expect(answer).toMatchObject({ status: 200, body: { hello: 'host' } })
    expect(asked).toEqual([`127.0.0.1:${port}`])
  })

  it.each([
    ['HTTP/1.1 407 Login\r\n\r\n', 'proxyLogin'],
    ['HTTP/1.1 403 No\r\n\r\n', 'proxy'],
  ])('names a refusal: %j', async (line, kind) => {
    const { url } = await proxy(line)
    const { cause } = await clientOf({ url: 'https://127.0.0.1:9', proxy: url }).get()
    expect(cause?.kind).toBe(kind)
    expect(cause?.message).toContain(url)
  })

  it('names a proxy that cannot be reached, and one that opens TLS', async () => {
    const { cause } = await clientOf({ url: 'https://127.0.0.1:9', proxy: 'http://127.0.0.1:1' }).get()
    expect(cause?.kind).toBe('proxy')
    // What comes through the proxy has the proxy's own certificate.
    const { port } = await platform()
    const { cert } = await material()
    const { url } = await proxy()
    const opened = await clientOf({ url: `https://127.0.0.1:${port}`, ca: cert, proxy: url }).get()
    expect(opened.cause?.kind).toBe('proxyOpensTls')
  })
})
