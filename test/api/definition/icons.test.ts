import { createHash } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClusterProfileDetail } from '../../../src/definition/schemas.ts'
import { iconPathOf } from '../../../src/definition/slots/icons.ts'
import { uploadDefinition } from '../../support/definition-upload.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100, 7)])
const svg = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h8v8z"/></svg>'
const sumOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
const pathOf = (bytes: Buffer | string) => `/v1/edge-mgmt/icons/${sumOf(bytes)}`
const urlOf = (type: string, bytes: Buffer | string) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`

let edge: TestEdge
let token: string
let running: readonly ClusterProfileDetail[] | undefined
let ms = 0
beforeEach(async () => {
  running = undefined
  edge = await createTestEdge({ running: () => running, monotonic: () => performance.now() + ms })
  token = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

const upload = (logo: Buffer | string) =>
  uploadDefinition(edge, token, { files: { 'packs/web-shop-1.0/logo.png': logo } })
const withLogo = (logo: string): ClusterProfileDetail => ({
  ...{ profileUid: 'u1', profileName: 'a', profileVersion: '1.0.0', profileType: 'add-on' },
  ...{ profileDescription: '', profileTags: '', variables: [] },
  packs: [{ name: 'a', version: '1.0.0', layer: 'addon', values: '', logo, images: [], guessedImages: [] }],
})

it('an icon of a held definition is served without a token, as a picture that no page can be made of', async () => {
  // Before the definition is there, also when it was asked for already.
  expect((await edge.get(pathOf(png))).statusCode).toBe(404)
  await upload(png)
  const reply = await edge.get(pathOf(png))
  expect([reply.statusCode, reply.rawPayload]).toEqual([200, png])
  expect(reply.headers).toMatchObject({
    'content-type': 'image/png',
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=31536000, immutable',
  })
  const etag = String(reply.headers.etag)
  const again = await edge.app.inject({ url: pathOf(png), headers: { 'if-none-match': etag } })
  expect([again.statusCode, again.body]).toEqual([304, ''])
})

it('an icon goes with its definition', async () => {
  await upload(png)
  await upload(svg)
  expect((await edge.get(pathOf(svg))).headers).toMatchObject({
    'content-type': 'image/svg+xml',
    'content-security-policy': "default-src 'none'; sandbox",
  })
  expect((await edge.get(pathOf(png))).statusCode).toBe(404)
})

it('the cluster has its icons without its definition too', async () => {
  await edge.get(pathOf(png))
  running = [withLogo(urlOf('image/png', png))]
  ms += 10_000
  expect((await edge.get(pathOf(png))).rawPayload).toEqual(png)
  running = undefined
  ms += 10_000
  expect((await edge.get(pathOf(png))).statusCode).toBe(404)
})

it('a script in an SVG, another kind of file, and a name that is no sum are no icons', async () => {
  const script = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
  await upload(script)
  expect((await edge.get(pathOf(script))).statusCode).toBe(404)
  for (const name of ['x', sumOf(png).toUpperCase(), `${sumOf(png)}0`, '..%2f..%2fsecret'])
    expect((await edge.get(`/v1/edge-mgmt/icons/${name}`)).statusCode, name).toBe(400)
  expect(iconPathOf(urlOf('image/png', png))).toBe(pathOf(png))
  for (const logo of [
    '',
    'x',
    urlOf('image/gif', 'GIF89a'),
    urlOf('text/html', 'x'),
    'data:image/png;base64,',
  ])
    expect(iconPathOf(logo), logo).toBeUndefined()
})

it('the daemon holds a bounded number of bytes of icons', async () => {
  const large = Array.from({ length: 20 }, (_, index) => Buffer.alloc(262_144, index))
  running = large.map((bytes) => withLogo(urlOf('image/png', bytes)))
  const found = await Promise.all(large.map(async (bytes) => (await edge.get(pathOf(bytes))).statusCode))
  expect(found.filter((status) => status === 200)).toHaveLength(16)
  expect(found.slice(16)).toEqual([404, 404, 404, 404])
})
