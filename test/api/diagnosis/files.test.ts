import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTestEdge } from '../../support/test-edge.ts'

const path = '/v1/edge-mgmt/edgehosts/current/file-download'

async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-files-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const edge = await createTestEdge({ flags: [`--diagnosis.filesDirectory=${folder}`] })
  onTestFinished(() => edge.stop())
  const { access } = await edge.login('alice')
  const get = (name: string, headers: Record<string, string> = {}) =>
    edge.app.inject({ method: 'GET', url: `${path}/${name}`, headers: { authorization: access, ...headers } })
  return { edge, folder, get, access }
}

it('an administrator lists files and downloads one, whole and in parts, and each download is in the audit trail', async () => {
  const { edge, folder, get, access } = await start()
  writeFileSync(join(folder, 'app.log'), '0123456789')
  const list = await get('files')
  expect(list.json()).toEqual({
    files: [
      {
        fileName: 'app.log',
        size: '10',
        creationTimestamp: expect.stringMatching(/Z$/) as string,
        lastModifiedTimestamp: expect.stringMatching(/Z$/) as string,
      },
    ],
  })
  const whole = await get('app.log')
  expect(whole.body).toBe('0123456789')
  expect(whole.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment; filename="app.log"',
    'content-length': '10',
    'accept-ranges': 'bytes',
  })
  const part = await get('app.log', { range: 'bytes=4-' })
  expect([part.statusCode, part.body, part.headers['content-range']]).toEqual([206, '456789', 'bytes 4-9/10'])
  expect((await get('app.log', { range: 'bytes=10-' })).json()).toMatchObject({ code: 'RangeUnsatisfiable' })
  expect((await get('app.log', { 'if-none-match': String(whole.headers.etag) })).statusCode).toBe(304)
  const changed = await get('app.log', { range: 'bytes=4-', 'if-range': '"other"' })
  expect([changed.statusCode, changed.body]).toEqual([200, '0123456789'])
  const audits = await edge.get('/v1/edge-mgmt/edgehosts/current/audits?limit=50', access)
  const downloads = audits.body.match(/Download a file of this host/g) ?? []
  expect(downloads).toHaveLength(5)
  expect(whole.headers.audituid).toMatch(/\w/)
})

it('names with spaces, quotes and other letters are given as RFC 6266 says', async () => {
  const { folder, get } = await start()
  const name = 'a "b" ü.log'
  writeFileSync(join(folder, name), 'x')
  const reply = await get(encodeURIComponent(name))
  expect(reply.headers['content-disposition']).toBe(
    `attachment; filename="a _b_ _.log"; filename*=UTF-8''a%20%22b%22%20%C3%BC.log`,
  )
})

it('what is above the folder and what is not there is not found; viewers get nothing', async () => {
  const { edge, get } = await start()
  for (const name of ['..%2fetc%2fpasswd', 'none', '%2e%2e'])
    expect((await get(name)).statusCode, name).toBe(404)
  const { access } = await edge.login('bob')
  expect((await edge.get(`${path}/files`, access)).statusCode).toBe(403)
  expect((await edge.get(`${path}/app.log`, access)).statusCode).toBe(403)
})
