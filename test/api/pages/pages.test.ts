import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

const page = '<!doctype html><title>x</title>'
const script = 'console.log(1)'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-pages-'))
  const files = { 'index.html': page, 'console-ABCD1234.js': script }
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, name), text)
    await writeFile(join(folder, `${name}.br`), brotliCompressSync(text))
    await writeFile(join(folder, `${name}.gz`), gzipSync(text))
  }
})
afterAll(() => rm(folder, { recursive: true }))

describe('the routes of the pages', () => {
  let edge: TestEdge
  beforeAll(async () => {
    edge = await createTestEdge({ pagesFolder: folder })
  })
  afterAll(() => edge.stop())
  const get = (url: string, headers: Record<string, string> = {}) =>
    edge.app.inject({ method: 'GET', url, headers })

  it('the page is asked for anew each time, and forbids all that it does not need', async () => {
    const reply = await get('/')
    expect(reply.statusCode).toBe(200)
    expect(reply.body).toBe(page)
    expect(reply.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    })
    expect(reply.headers).not.toHaveProperty('strict-transport-security')
    const again = await get('/', { 'if-none-match': String(reply.headers.etag) })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  })

  it.each([
    ['br', 'br'],
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['identity', undefined],
    ['', undefined],
    ['GZIP', 'gzip'],
  ])('a client that accepts %j gets the script as %s', async (accepted, coding) => {
    const reply = await get('/console/console-ABCD1234.js', { 'accept-encoding': accepted })
    expect(reply.headers['content-encoding']).toBe(coding)
    const sent =
      { br: brotliCompressSync(script), gzip: gzipSync(script) }[coding ?? ''] ?? Buffer.from(script)
    expect(reply.rawPayload.equals(sent)).toBe(true)
    expect(reply.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  })

  it.each([
    '/console/index.html.br',
    '/console/..%2Findex.html',
    '/console/%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    '/console/nothing.js',
    '/console/',
    '/index.html',
  ])('%s is not there', async (url) => {
    const reply = await get(url)
    expect(reply.statusCode).toBe(404)
    expect(reply.json()).toMatchObject({ code: 'NotFound' })
  })

  it('HEAD has the header fields alone', async () => {
    const reply = await edge.app.inject({ method: 'HEAD', url: '/' })
    expect([reply.statusCode, reply.body]).toEqual([200, ''])
    expect(reply.headers.etag).toBeDefined()
  })
})

it('with pages.enabled: false there is no page', async () => {
  const edge = await createTestEdge({ pagesFolder: folder, flags: ['--pages.enabled=false'] })
  try {
    for (const url of ['/', '/console/index.html'])
      expect((await edge.app.inject({ method: 'GET', url })).statusCode).toBe(404)
  } finally {
    await edge.stop()
  }
})
