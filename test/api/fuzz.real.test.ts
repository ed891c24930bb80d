import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readDocument, type DocumentedOperation } from '../support/api-document.ts'
import { badText, badValue, garbage } from '../support/bad-input.ts'
import { cpuNow } from '../support/cpu-time.ts'
import { hostBody } from '../support/host-body.ts'
import { openTcp, openTls, type Client } from '../support/https-server.ts'
import { createRandom } from '../support/random.ts'
import { createTestEdge, loginPath, type TestEdge } from '../support/test-edge.ts'
import { createWireEdge, type WireEdge } from '../support/wire-edge.ts'
import { waitFor } from '../support/wait-for.ts'

const { operations, problemsOf } = readDocument()
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))
// A pattern or parser that is quadratic takes minutes; a loaded machine seconds.
/** Of a request and of all that are answered beside it. */
const mostCpuMs = 5_000

const patient = {
  refusalDelayMs: 10,
  guard: {
    delayAfterFailures: 1_000_000,
    lockAfterFailures: 1_000_000,
    addressLockAfterFailures: 1_000_000,
    userFailuresPerHour: 1_000_000,
  },
  queueLength: 1_000,
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
/** Bytes in use after garbage collection. */
function heldBytes(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
// Code that ran for the first time stays compiled.
const toleratedBytes = 12 * 2 ** 20

describe(`every operation, with seed ${seed}`, () => {
  const random = createRandom(seed)
  let edge: TestEdge
  let token = ''
  beforeAll(async () => {
    edge = await createTestEdge({ ...patient, hostBody: await hostBody() })
    token = (await edge.login('alice')).access
  })
  afterAll(() => edge.stop())

  function question({ method, path, parameters = [], requestBody }: DocumentedOperation) {
    const url = path.replace(/\{[^}]+\}/g, () => encode(badText(random)))
    const query = parameters
      .filter((each) => each.in === 'query' && random.isChosen(0.7))
      .map(({ name, schema }) => [name, badValue(random, schema)] as const)
    if (random.isChosen(0.2)) query.push([badText(random), badText(random)])
    const text = query.map(([name, value]) => `${encode(name)}=${encode(spell(value))}`).join('&')
    const schema = Object.values(requestBody?.content ?? {})[0]?.schema
    const hasBody = method !== 'GET' && random.isChosen(0.9)
    const body = schema && random.isChosen(0.6) ? JSON.stringify(badValue(random, schema)) : garbage(random)
    return {
      method: method as 'GET',
      url: `${url}${text && '?'}${text}`,
      headers: {
        ...(random.isChosen(0.8) ? { authorization: token } : {}),
        ...(random.isChosen(0.1) ? { cookie: encode(badText(random)), 'sec-fetch-site': 'same-origin' } : {}),
        ...(hasBody
          ? { 'content-type': random.isChosen(0.9) ? 'application/json' : encode(badText(random)) }
          : {}),
        'if-none-match': encode(badText(random)),
        'x-request-id': encode(badText(random)),
      },
      ...(hasBody ? { payload: body } : {}),
    }
  }

  async function askBadly(operation: DocumentedOperation): Promise<void> {
    const asked = question(operation)
    const begun = cpuNow()
    const { statusCode: status, headers, body } = await edge.app.inject(asked)
    const cpuMs = cpuNow() - begun
    const told = `seed ${seed}: ${asked.method} ${asked.url.slice(0, 300)} ${String(asked.payload).slice(0, 200)}`
    expect(status, told).not.toBe(500)
    expect(cpuMs, told).toBeLessThan(mostCpuMs)
    // A bad path may match no route at all, and is refused too.
    const isElsewhere = [404, 405, 414].includes(status)
    if (isElsewhere) expect(JSON.parse(body || '{}'), told).toHaveProperty('ref')
    else expect(problemsOf(operation, { status, headers, body }), told).toEqual([])
  }

  async function round(times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      // A random request may have ended the session.
      if ((await edge.get('/v1/users/current', token)).statusCode === 401)
        token = (await edge.login('alice')).access
      await Promise.all(operations.map(askBadly))
      edge.lines.length = 0
    }
  }

  it('every operation replies to bad input as documented, in time, and keeps no memory of it', async () => {
    await round(10)
    const before = heldBytes()
    await round(50)
    await expect.poll(() => heldBytes() - before, { timeout: 60_000 }).toBeLessThan(toleratedBytes)
    expect((await edge.get('/v1/ping')).json()).toEqual({ msg: 'pong' })
    // A machine that is busy with other tests takes longer.
  })
})

const encode = (text: string) => encodeURIComponent(text.toWellFormed()).slice(0, 3_000)
const spell = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

describe('the wire', () => {
  let wire: WireEdge
  let edge: TestEdge
  let before: number
  const clients: Client[] = []

  beforeAll(async () => {
    wire = await createWireEdge(patient, {
      timeouts: { handshakeMs: 1_500, headersMs: 1_500, idleMs: 3_000, stalledMs: 6_000 },
      body: { limitBytes: 65_536, minimumBytesPerSecond: 1_024, windowSeconds: 1 },
      connections: { maximum: 1_000, maximumPerAddress: 64 },
    })
    edge = wire.edge
    await ask(get('/v1/ping'))
    await release()
    before = heldBytes()
  })
  afterAll(async () => {
    await release()
    await wire.stop()
  })

  async function open(address?: string): Promise<Client> {
    const client = await openTls(wire.port, wire.cert, address)
    clients.push(client)
    return client
  }

  /** Everything that the server replies to these bytes, until it closes or is silent. */
  async function ask(bytes: string | Buffer, isOver = (text: string) => text.includes('}')): Promise<string> {
    const client = await open()
    client.socket.write(bytes)
    await waitFor(() => expect(client.closed || isOver(client.received), client.received).toBe(true), {
      timeout: 60_000,
      interval: 5,
    })
    return client.received
  }

  async function release(): Promise<void> {
    for (const { socket } of clients.splice(0)) socket.destroy()
    // A reset that the loopback of a busy machine drops is never sent again: then a timeout closes the connection.
    await waitFor(() => expect(connectionsOf(edge)).resolves.toBe(0), { timeout: 60_000, interval: 5 })
    edge.lines.length = 0
  }

  const get = (path: string, fields = '') => `GET ${path} HTTP/1.1\r\nHost: box\r\n${fields}\r\n`
  const post = (fields: string, body: string) =>
    `POST ${loginPath} HTTP/1.1\r\nHost: box\r\nContent-Type: application/json\r\n${fields}\r\n\r\n${body}`
  const isAlive = async () => expect(await ask(get('/v1/ping'))).toContain('{"msg":"pong"}')

  it.each([
    ['1 MB of header fields', get('/v1/ping', `X-Large: ${'x'.repeat(2 ** 20)}\r\n`), 431],
    ['10,000 header fields', get('/v1/ping', 'x: y\r\n'.repeat(10_000)), 431],
    ['a path of 1 MB', get(`/${'x'.repeat(2 ** 20)}`), 431],
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['random bytes', Buffer.from(Array.from({ length: 500 }, (_, index) => (index * 89) % 256)), 400],
    ['HTTP/2 without a word', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['HTTP/9.9', 'GET /v1/ping HTTP/9.9\r\nHost: box\r\n\r\n', 400],
    ['no Host', 'GET /v1/ping HTTP/1.1\r\n\r\n', 400],
    ['two Hosts', get('/v1/ping', 'HOST: other\r\n'), 400],
    ['NUL in a header field', get('/v1/ping', 'X-Nul: a\0b\r\n'), 400],
    ['a folded header field', get('/v1/ping', 'X-Folded: a\r\n b\r\n'), 400],
    ['a space before the colon', get('/v1/ping', 'X-Space : a\r\n'), 400],
    ['a negative length', post('Content-Length: -1', ''), 400],
    ['two lengths', post('Content-Length: 2\r\nContent-Length: 3', '{}'), 400],
    [
      'a length and chunks',
      post('Content-Length: 2\r\nTransfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'),
      400,
    ],
    ['an unknown transfer encoding', post('Transfer-Encoding: gzip', '{}'), 400],
    ['a chunk without a size', post('Transfer-Encoding: chunked', 'xyz\r\n'), 400],
    ['a chunk that is too large to be one', post('Transfer-Encoding: chunked', 'fffffffffffffffff\r\n'), 400],
    ['a body that says it is too large', post('Content-Length: 70000', ''), 413],
    ['an unknown expectation', get('/v1/nothing', 'Expect: wonders\r\n'), 404],
    ['an unknown method', 'BREW /v1/ping HTTP/1.1\r\nHost: box\r\n\r\n', 400],
    ['a wish for another protocol', get('/v1/nothing', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'), 404],
    ['the path of a proxy', 'GET http://other.example/v1/nothing HTTP/1.1\r\nHost: box\r\n\r\n', 404],
  ])('%s gets the standard error body', async (_what, bytes, status) => {
    const [head = '', body = ''] = (await ask(bytes)).split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(head).toMatch(/^x-request-id: /im)
    expect(JSON.parse(body)).toEqual({
      code: expect.any(String),
      message: expect.any(String),
      ref: /^x-request-id: (\S+)/im.exec(head)?.[1],
    })
    await isAlive()
  })

  it('a CONNECT request is closed, since there is no tunnel', async () => {
    expect(await ask('CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n')).toBe('')
    await isAlive()
  })

  it('HTTP/1.0 requests get a reply, with a body too, and are closed', async () => {
    const closed = () => false
    const ping = await ask('GET /v1/ping HTTP/1.0\r\n\r\n', closed)
    expect(ping).toContain('200 OK')
    const body = '{"username":"alice","password":"alice pass"}'
    const login = await ask(
      `POST ${loginPath} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      closed,
    )
    expect(login).toContain('200 OK')
  })

  it('chunks are read, and their trailers ignored', async () => {
    const body = '{"username":"alice","password":"alice pass"}'
    const chunks = body
      .match(/./g)!
      .map((each) => `1;x="y"\r\n${each}\r\n`)
      .join('')
    const trailers = 'Authorization: x\r\nHost: other\r\nX-Request-Id: from-a-trailer\r\n'
    const reply = await ask(
      post('Transfer-Encoding: chunked\r\nTrailer: Authorization', `${chunks}0\r\n${trailers}\r\n`),
    )
    expect(reply).toContain('200 OK')
    expect(reply).not.toContain('from-a-trailer')
    expect(
      await ask(post('Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n')),
    ).toContain('HTTP/1.1 400 ')
    expect(
      await ask(
        post(
          'Transfer-Encoding: chunked',
          `2\r\n{}\r\n0\r\n${`x: ${'y'.repeat(100)}\r\n`.repeat(10_000)}\r\n`,
        ),
      ),
    ).toMatch(/HTTP\/1\.1 (400|431) /)
  })

  it('pipelined requests are answered in order, until garbage arrives', async () => {
    const count = (text: string) => text.split('{"msg":"pong"}').length - 1
    const many = await ask(get('/v1/ping').repeat(500), (text) => count(text) === 500)
    expect(count(many)).toBe(500)
    const mixed = await ask(`${get('/v1/ping').repeat(3)}\0garbage\r\n\r\n${get('/v1/ping')}`, () => false)
    expect(count(mixed)).toBeLessThanOrEqual(3)
    expect(mixed).toMatch(/HTTP\/1\.1 400 [^]*"code":"BadRequest"[^}]*\}$/)
  })

  it('a body without a length is not read further once it is too large', async () => {
    const client = await open()
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    client.socket.write(post('Transfer-Encoding: chunked', ''))
    let sent = 0
    const pour = () => {
      while (!client.closed && sent < 64 * 2 ** 20) {
        sent += 65_536
        if (!client.socket.write(chunk)) return
      }
    }
    client.socket.on('drain', pour)
    pour()
    await waitFor(() => expect(client.received).toContain('PayloadTooLarge'), { timeout: 60_000 })
    await waitFor(() => expect(client.closed).toBe(true), { timeout: 60_000 })
    expect(sent).toBeLessThan(16 * 2 ** 20)
  })

  it('clients that send a byte a second, head or body, are closed, and the others served meanwhile', async () => {
    const slow = await Promise.all(Array.from({ length: 20 }, () => open()))
    const begins = [get('/v1/ping', 'X-Slow: '), post('Content-Length: 100', '{')]
    slow.forEach(({ socket }, index) => socket.write(begins[index % 2]!.replace(/\r\n\r\n$/, '\r\n')))
    const drip = setInterval(() => {
      for (const { socket } of slow) socket.write('x')
    }, 1_000)
    await isAlive()
    await waitFor(() => expect(slow.filter(({ closed }) => !closed)).toEqual([]), {
      timeout: 60_000,
      interval: 50,
    })
    clearInterval(drip)
    for (const { received } of slow) expect(received).toMatch(/HTTP\/1\.1 408 [^]*"code":"RequestTimeout"/)
  })

  async function openThousand(): Promise<void> {
    const addresses = Array.from({ length: 16 }, (_, index) => `127.0.1.${index + 1}`)
    for (const address of addresses) {
      clients.push(...(await Promise.all(Array.from({ length: 63 }, () => openTcp(wire.port, address)))))
    }
  }

  it('the next client gets a reply although 1,000 connections are idle', async () => {
    await openThousand()
    await isAlive()
    expect(await connectionsOf(edge)).toBeLessThanOrEqual(1_000)
  })

  it('all memory of closed connections is freed', async () => {
    await release()
    const after = heldBytes()
    expect(after - before).toBeLessThan(toleratedBytes)
    // The closed sockets of two thousand connections are 3 MB.
    for (let time = 0; time < 2; time += 1) {
      await openThousand()
      await release()
    }
    await expect.poll(() => heldBytes() - after, { timeout: 60_000 }).toBeLessThan(2 * 2 ** 20)
  })
})

const connectionsOf = ({ app }: TestEdge) =>
  new Promise<number>((resolve, reject) => {
    app.server.getConnections((error, count) => {
      if (error) reject(error)
      else resolve(count)
    })
  })
