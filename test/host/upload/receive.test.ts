import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createHash, createSign, generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import { generalErrors } from '../../../src/errors/codes.ts'
import { parseSigningKey } from '../../../src/upload/signing.ts'
import { form, post, startUploadServer, type Part, type UploadServer } from '../../support/upload-server.ts'
import { waitFor } from '../../support/wait-for.ts'
import { noise } from '../../support/random.ts'

const run = promisify(execFile)
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const file = (content: Buffer | string, more: Partial<Part> = {}): Part => ({
  name: 'uploadFile',
  fileName: 'spc.tgz',
  content,
  ...more,
})

let server: UploadServer
beforeEach(async () => {
  server = await startUploadServer()
})
afterEach(() => server.stop())

async function send(...parts: Part[]) {
  const { type, body } = form(...parts)
  return post(server.port, type, body)
}

/** Nothing is left once all work has ended. */
async function expectNothingLeft(uploads = 1): Promise<void> {
  await waitFor(() => expect(server.outcomes).toHaveLength(uploads), { timeout: 60_000 })
  for (const outcome of server.outcomes) expect(outcome).toBeInstanceOf(Error)
  expect(await server.left()).toEqual([])
}

const head = (length: number, type: string) =>
  `POST / HTTP/1.1\r\nHost: h\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`

describe('an upload', () => {
  it('the signal of an upload ends it at once while nothing arrives, before and inside its file', async () => {
    const { body, type } = form(file(noise(100_000)))
    for (const sent of [20, 50_000]) {
      const ended = new AbortController()
      server.settings.signal = ended.signal
      const socket = await server.open()
      socket.write(head(body.length, type))
      socket.write(body.subarray(0, sent))
      await expect.poll(server.left).toEqual(['archive'])
      ended.abort(new AppError(generalErrors.NotReady, 'the daemon stops'))
      const [reply] = (await once(socket, 'data')) as [Buffer]
      expect(reply.toString()).toMatch(/^HTTP\/1\.1 503 [^]*"message":"the daemon stops"/)
      await expect.poll(server.left).toEqual([])
      socket.destroy()
    }
  })

  it.each([0, 1, 524_287, 524_288, 524_289, 3_000_001])(
    'an upload of %i bytes is on the disk, mode 0600, with its hash',
    async (bytes) => {
      const content = noise(bytes)
      const { status, body } = await send(file(content))
      expect(status).toBe(200)
      const path = join(server.folder, 'archive')
      expect(body).toEqual({ file: path, sizeBytes: bytes, sha256: sha256(content), fileName: 'spc.tgz' })
      expect((await readFile(path)).equals(content)).toBe(true)
      expect((await stat(path)).mode & 0o777).toBe(0o600)
    },
  )
  it('an upload may contain what looks like its own boundary', async () => {
    const { boundary, type } = form()
    const content = Buffer.from(`\r\n--${boundary.slice(0, -1)}\r\n--\r\n\r\n----${boundary}x`.repeat(9_000))
    const body = Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="uploadFile"; filename="a"\r\n\r\n`),
      content,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ])
    expect((await post(server.port, type, body)).body.sha256).toBe(sha256(content))
  })
  it.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\content\\spc.tgz', 'spc.tgz'],
    ['a\u202eb\u0007.tgz', 'a?b?.tgz'],
    ['\u00e4'.repeat(300), '\u00e4'.repeat(127)],
    ['', ''],
  ])('an upload with the file name %j is labelled %j', async (fileName, label) => {
    expect((await send(file('x', { fileName }))).body.fileName).toBe(label)
  })
  it('other parts before and after the file are ignored', async () => {
    const other = (name: string) => ({ name, content: noise(20_000), fileName: name })
    const content = noise(100_000)
    const reply = await send({ name: 'note', content: 'hello' }, other('a'), file(content), other('b'))
    expect(reply.body.sha256).toBe(sha256(content))
  })
  it('an upload may arrive byte by byte', async () => {
    const content = noise(2_000)
    const { type, body } = form(file(content), { name: 'signature', content: 'x' })
    const slow = (async function* () {
      for (const byte of body) {
        yield Buffer.from([byte])
        await new Promise(setImmediate)
      }
    })()
    expect((await post(server.port, type, slow)).body.sha256).toBe(sha256(content))
  })
  it('an upload may have a preamble and an epilogue, the epilogue later than the rest', async () => {
    const content = noise(1_000)
    const { type, body } = form(file(content))
    const pieces = (async function* () {
      yield Buffer.concat([Buffer.from('preamble\r\n'), body])
      for (let count = 0; count < 50; count += 1) {
        await new Promise((resolve) => setTimeout(resolve, 2))
        yield Buffer.from('epilogue\r\n')
      }
    })()
    expect((await post(server.port, type, pieces)).body.sha256).toBe(sha256(content))
  })
  it('curl -F can send an upload, with the signature as file and as text', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'edgehostd-curl-'))
    try {
      const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
      const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
      server.settings.signingKey = parseSigningKey({ base64EncodedValue: pem, description: '' })
      const content = noise(1_500_000)
      await writeFile(join(folder, 'spc.tgz'), content)
      await writeFile(join(folder, 'spc.sig'), createSign('sha256').update(content).sign(privateKey))
      for (const how of ['@', '<']) {
        const url = `http://127.0.0.1:${server.port}/`
        const args = ['-sS', '-F', 'uploadFile=@spc.tgz', '-F', `signature=${how}spc.sig`, url]
        const { stdout } = await run('curl', args, { cwd: folder })
        expect(JSON.parse(stdout)).toMatchObject({ sha256: sha256(content), fileName: 'spc.tgz' })
        await rm(join(server.folder, 'archive'))
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
  it('an upload of 300 MB takes no more memory than one of 60', async () => {
    const block = noise(1_048_576)
    const { type, body } = form(file('MARK'))
    const at = body.indexOf('MARK')
    const sized = async function* (blocks: number) {
      yield body.subarray(0, at)
      for (let count = 0; count < blocks; count += 1) yield block
      yield body.subarray(at + 4)
    }
    let peak = 0
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
    try {
      expect((await post(server.port, type, sized(60))).body.sizeBytes).toBe(60 * block.length)
      const before = peak
      await rm(join(server.folder, 'archive'))
      expect((await post(server.port, type, sized(300))).body.sizeBytes).toBe(300 * block.length)
      expect(peak - before).toBeLessThan(60_000_000)
    } finally {
      clearInterval(timer)
    }
  })
})

describe('a signature', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const content = noise(700_000)
  const good = createSign('sha256').update(content).sign(privateKey)
  const signature = (bytes: Buffer | string, fileName?: string): Part => ({
    name: 'signature',
    content: bytes,
    ...(fileName === undefined ? {} : { fileName }),
  })
  beforeEach(() => {
    server.settings.signingKey = parseSigningKey({ base64EncodedValue: pem, description: '' })
  })

  it.each([
    ['after the file, as file', [file(content), signature(good, 'a.sig')]],
    ['before the file, as file', [signature(good, 'a.sig'), file(content)]],
    ['after the file, as text field with raw bytes', [file(content), signature(good)]],
    ['before the file, as hex', [signature(`${good.toString('hex')}\n`), file(content)]],
    ['after the file, as base64', [file(content), signature(good.toString('base64'))]],
  ])('a signature is accepted %s', async (_, parts) => {
    expect((await send(...parts)).body.sha256).toBe(sha256(content))
  })
  it.each<[string, Part[], string]>([
    ['missing', [file(content)], 'SignatureMissing'],
    ['empty', [file(content), signature('')], 'SignatureMissing'],
    ['that of another file', [file(content.subarray(1)), signature(good)], 'SignatureInvalid'],
    ['garbage', [signature('garbage!'), file(content)], 'SignatureInvalid'],
    ['20 KB long', [signature(noise(20_000), 's'), file(content)], 'SignatureInvalid'],
  ])('a signature that is %s is refused', async (_, parts, code) => {
    const reply = await send(...parts)
    expect(reply).toMatchObject({ status: 400, body: { code, details: { field: 'signature' } } })
    await expectNothingLeft()
  })
  it('a signature is ignored where the host has no key', async () => {
    server.settings.signingKey = undefined
    expect((await send(file(content), signature('anything', 's'))).status).toBe(200)
  })
})

describe('a form is refused', () => {
  const tiny = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ name: `part${at}`, content: 'x', fileName: 'x' }))
  it.each<[string, Part[], number, object]>([
    ['no file', [{ name: 'signature', content: 'x' }], 400, { field: 'uploadFile' }],
    ['no part at all', [], 400, { field: 'uploadFile' }],
    ['two files', [file('a'), file('b')], 400, { field: 'uploadFile' }],
    [
      'two signatures',
      [file('a'), { name: 'signature', content: 'a' }, { name: 'signature', content: 'a' }],
      400,
      { field: 'signature' },
    ],
  ])('a form with %s is refused with 400', async (_, parts, status, details) => {
    expect(await send(...parts)).toMatchObject({ status, body: { code: 'BadRequest', details } })
    await expectNothingLeft()
  })
  it.each<[string, Part[]]>([
    ['10,000 tiny parts', tiny(10_000)],
    ['10,000 tiny parts behind the file', [file('x'), ...tiny(10_000)]],
    ['part headers of 1 MB', [file('x', { headers: `X-Long: ${'x'.repeat(1_000_000)}\r\n` })]],
    ['1 MB in another part', [file('x'), { name: 'other', content: noise(1_000_000) }]],
  ])('a form with %s is refused with 413', async (_, parts) => {
    const reply = await send(...parts)
    expect(reply).toMatchObject({ status: 413, body: { code: 'PayloadTooLarge' } })
    await expectNothingLeft()
  })
  it('a form whose boundary never arrives is refused long before its end', async () => {
    const { type } = form()
    const block = Buffer.alloc(65_536, 'x')
    const endless = (async function* () {
      for (let count = 0; count < 3_200; count += 1) yield block
    })()
    const reply = await post(server.port, type, endless)
    expect(reply).toMatchObject({ status: 413, body: { code: 'PayloadTooLarge' } })
    expect(reply.sentBytes).toBeLessThan(20_000_000)
    await expectNothingLeft()
  })
  it.each([
    ['another boundary', 'multipart/form-data; boundary=other'],
    ['no boundary', 'multipart/form-data'],
    ['an empty boundary', 'multipart/form-data; boundary='],
  ])('a content type with %s is refused', async (_, type) => {
    const reply = await post(server.port, type, form(file('content')).body)
    expect(reply).toMatchObject({ status: 400, body: { code: 'BadRequest' } })
    await expectNothingLeft()
  })
  it('a form that is cut off anywhere in a complete request is refused', async () => {
    const { type, body } = form(file(noise(200)), { name: 'signature', content: 'x' })
    // The last boundary is two dashes and a line end, which need not be there.
    const cuts = Array.from({ length: Math.ceil((body.length - 4) / 7) }, (_, at) => at * 7)
    for (const cut of cuts) {
      const reply = await post(server.port, type, body.subarray(0, cut))
      expect(reply, `cut at ${cut} of ${body.length}`).toMatchObject({
        status: 400,
        body: { code: 'BadRequest' },
      })
    }
    await expectNothingLeft(cuts.length)
  })
  it('the connection stays open after a refused form of which little was left', async () => {
    const { type, body } = form(file('a'), file('b'), file(noise(30_000)))
    const { type: goodType, body: good } = form(file('a'))
    const socket = await server.open()
    let received = ''
    socket.on('data', (chunk) => (received += String(chunk)))
    socket.write(Buffer.concat([Buffer.from(head(body.length, type)), body]))
    await waitFor(() => expect(received).toContain('HTTP/1.1 400'), { timeout: 60_000 })
    socket.write(Buffer.concat([Buffer.from(head(good.length, goodType)), good]))
    await waitFor(() => expect(received).toContain('HTTP/1.1 200'), { timeout: 60_000 })
    socket.destroy()
  })
  it('a form for a JSON route, and JSON for a form route, are a 415', async () => {
    const { type, body } = form(file('a'))
    expect((await post(server.port, type, body, { path: '/json' })).status).toBe(415)
    const json = Buffer.from('{"a":1}')
    expect((await post(server.port, 'application/json', json)).status).toBe(415)
    expect((await post(server.port, 'application/json', json, { path: '/json' })).status).toBe(200)
  })
})

describe('limits', () => {
  const endless = (bytes: number) => {
    const { type, body } = form(file('MARK'))
    const block = Buffer.alloc(65_536, 'x')
    const chunks = async function* () {
      yield body.subarray(0, body.indexOf('MARK'))
      for (let sent = 0; sent < bytes; sent += block.length) yield block
    }
    return { type, chunks: chunks() }
  }
  it('an upload of the maximum size is accepted, and one byte more refused', async () => {
    server.settings.limitBytes = 100_000
    expect((await send(file(noise(100_001)))).body).toMatchObject({
      code: 'PayloadTooLarge',
      details: { limitBytes: 100_000 },
    })
    await expectNothingLeft()
    expect((await send(file(noise(100_000)))).status).toBe(200)
  })
  it.each([
    ['with a Content-Length', { 'content-length': 2_000_000_000 }],
    ['chunked', {}],
  ])('2 GB are refused early, and the client sees the refusal: %s', async (_, headers) => {
    server.settings.limitBytes = 5_000_000
    const { type, chunks } = endless(2_000_000_000)
    const reply = await post(server.port, type, chunks, { headers })
    expect(reply).toMatchObject({ status: 413, body: { code: 'PayloadTooLarge' } })
    expect(reply.sentBytes).toBeLessThan(40_000_000)
    await expectNothingLeft()
  })
  it('an upload that does not fit on the disk is refused before any of it is read', async () => {
    server.settings.freeBytes = async () => 3_000_000
    server.settings.reserveBytes = 1_000_000
    const { type, chunks } = endless(2_000_000_000)
    const reply = await post(server.port, type, chunks, { headers: { 'content-length': 2_000_001 } })
    expect(reply).toMatchObject({ status: 507, body: { code: 'StorageFull', details: { missingBytes: 1 } } })
    await expectNothingLeft()
  })
  it('an upload is refused when the disk becomes full while the file arrives', async () => {
    let looks = 0
    server.settings.freeBytes = async () => [200_000_000, 200_000_000, 0][looks++]!
    server.settings.reserveBytes = 1
    const { type, chunks } = endless(400_000_000)
    const reply = await post(server.port, type, chunks)
    expect(reply).toMatchObject({ status: 507, body: { code: 'StorageFull' } })
    expect(looks).toBe(3)
    expect(reply.sentBytes).toBeLessThan(200_000_000)
    await expectNothingLeft()
  })
})

describe('a client that goes away', () => {
  it('a client that disconnects leaves nothing, wherever it stopped', async () => {
    const { type, body } = form(file(noise(1_200_000)), { name: 'signature', content: 'x' })
    const start = body.indexOf('\r\n\r\n') + 4
    const cuts = [0, 1, 10, 60, start - 2, start, start + 1, 70_000, 524_288, 700_000, 1_048_576 + start]
    cuts.push(...[130, 100, 60, 50, 20, 6, 5, 3, 1].map((left) => body.length - left))
    for (const cut of cuts) {
      const socket = await server.open()
      socket.write(head(body.length, type))
      if (cut > 0) await new Promise((resolve) => socket.write(body.subarray(0, cut), resolve))
      socket.destroy()
    }
    await expectNothingLeft(cuts.length)
  })
  it('a client that disconnects before the form is read leaves nothing', async () => {
    const { type, body } = form(file('x'))
    const socket = await server.open()
    server.settings.freeBytes = async () => {
      socket.destroy()
      await waitFor(async () => expect(await server.connections()).toBe(0), { timeout: 60_000 })
      return Number.MAX_SAFE_INTEGER
    }
    socket.write(head(body.length, type))
    await expectNothingLeft()
  })
  it('an upload does not replace a file that has its name', async () => {
    await writeFile(join(server.folder, 'archive'), 'ours')
    expect((await send(file('theirs'))).status).toBe(500)
    expect(await readFile(join(server.folder, 'archive'), 'utf8')).toBe('ours')
  })
})

// Only root may mount.
describe.skipIf(process.getuid?.() !== 0)('on a disk of 4 MB', () => {
  it('an upload that does not fit on the disk is a 507 and leaves nothing; one that fits is accepted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'edgehostd-small-'))
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'edgehostd-test', folder])
    await server.stop()
    server = await startUploadServer(folder)
    try {
      for (const bytes of [4_200_000, 30_000_000]) {
        const reply = await send(file(noise(bytes)))
        expect(reply).toMatchObject({ status: 507, body: { code: 'StorageFull' } })
      }
      await expectNothingLeft(2)
      expect((await send(file(noise(4_000_000)))).status).toBe(200)
    } finally {
      await run('umount', ['-l', folder])
      await rm(folder, { recursive: true })
    }
  })
})
