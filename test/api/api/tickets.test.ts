import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Audit } from '../../../src/audit/schemas.ts'
import type { IssuedTicket } from '../../../src/api/routes-tickets.ts'
import {
  createTestEdge,
  currentPath,
  logoutPath,
  type ErrorReply,
  type TestEdge,
} from '../../support/test-edge.ts'

interface ListOfAudits {
  readonly items: readonly Static<typeof Audit>[]
}

const host = '/v1/edge-mgmt/edgehosts/current'
const ticketsPath = `${host}/tickets`
const file = `${host}/file-download/a%20log`
const trail = `${host}/audits/download`

let edge: TestEdge
let folder: string
let ms = 0
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-tickets-'))
  for (const name of ['a log', 'b']) writeFileSync(join(folder, name), name)
  edge = await createTestEdge({
    flags: [`--diagnosis.filesDirectory=${folder}`],
    monotonic: () => performance.now() + ms,
  })
})
afterAll(async () => {
  await edge.stop()
  rmSync(folder, { recursive: true })
})

const ask = (path: string, token?: string, payload: unknown = { path }) =>
  edge.post(ticketsPath, payload, { headers: token === undefined ? {} : { authorization: token } })
async function ticketFor(path: string, token: string) {
  const reply = await ask(path, token)
  expect(reply.statusCode, reply.body).toBe(201)
  return reply.json<IssuedTicket>()
}
const codeOf = async (path: string, token?: string) => {
  const reply = await edge.get(path, token)
  return `${reply.statusCode} ${reply.json<ErrorReply>().code}`
}
const refused = '401 Unauthenticated'

it('the downloads are these, and each shows its file to a link with a ticket', async () => {
  const taking = edge.routes.routes.filter(({ takesTicket }) => takesTicket)
  expect(taking.map(({ method, url, access }) => `${method} ${url}: ${access}`).sort()).toEqual([
    'GET /v1/edge-mgmt/cluster/kubeconfig: admin',
    'GET /v1/edge-mgmt/edgehosts/current/audits/download: admin',
    'GET /v1/edge-mgmt/edgehosts/current/download-logs: admin',
    'GET /v1/edge-mgmt/edgehosts/current/file-download/:filePath: admin',
  ])
})

it('a ticket opens its path once without a token, and the trail names the user of the download', async () => {
  const { access } = await edge.login('alice')
  const { ticket, downloadPath, expirationTimestamp } = await ticketFor(file, access)
  expect(downloadPath).toBe(`${file}?ticket=${ticket}`)
  const leftMs = Date.parse(expirationTimestamp) - edge.clock.now()
  expect(leftMs).toBeGreaterThan(0)
  expect(leftMs).toBeLessThanOrEqual(30_000)
  const first = await edge.get(downloadPath)
  expect([first.statusCode, first.body]).toEqual([200, 'a log'])
  expect(await codeOf(downloadPath)).toBe(refused)
  const audits = await edge.get(`${host}/audits?limit=50`, access)
  const { items } = audits.json<ListOfAudits>()
  expect(items.find(({ metadata }) => metadata.uid === first.headers.audituid)?.spec).toMatchObject({
    actor: { uid: 'alice', role: 'admin' },
    resource: { kind: 'file', name: 'a log' },
  })
  // The ticket has a record of its own, without its code.
  expect(items.find(({ spec }) => spec.resource.kind === 'ticket')?.spec).toMatchObject({
    actor: { uid: 'alice' },
    resource: { name: file },
  })
  expect(audits.body).not.toContain(ticket)
  expect(JSON.stringify(edge.lines)).not.toContain(ticket)
})

it('two uses at once are one', async () => {
  const { access } = await edge.login('alice')
  const { downloadPath } = await ticketFor(file, access)
  const statuses = await Promise.all(
    Array.from({ length: 8 }, async () => (await edge.get(downloadPath)).statusCode),
  )
  expect(statuses.sort()).toEqual([200, ...Array<number>(7).fill(401)])
})

it('a ticket is void for another path, another query or spelling, and then also for its own', async () => {
  const { access } = await edge.login('alice')
  const other: readonly ((ticket: string) => string)[] = [
    (ticket) => `${host}/file-download/b?ticket=${ticket}`,
    (ticket) => `${trail}?ticket=${ticket}`,
    (ticket) => `${file}?x=1&ticket=${ticket}`,
    (ticket) => `${file}?ticket=${ticket}&x=1`,
    (ticket) => `${host}/file-download/a%20lo%67?ticket=${ticket}`,
    (ticket) => `${file}?ticket=${ticket}&ticket=${ticket}`,
  ]
  for (const path of other) {
    const { ticket, downloadPath } = await ticketFor(file, access)
    expect(await codeOf(path(ticket)), path('…')).toBe(refused)
    if (path !== other.at(-1)) expect(await codeOf(downloadPath), path('…')).toBe(refused)
  }
  const { ticket } = await ticketFor(file, access)
  // Other routes do not know tickets.
  for (const path of [currentPath, host, `${host}/audits`])
    expect(await codeOf(`${path}?ticket=${ticket}`)).toBe(refused)
})

it('a ticket lives for 30 seconds', async () => {
  const { access } = await edge.login('alice')
  const { downloadPath } = await ticketFor(file, access)
  const late = await ticketFor(file, access)
  ms += 29_000
  expect((await edge.get(downloadPath)).statusCode).toBe(200)
  ms += 1_001
  expect(await codeOf(late.downloadPath)).toBe(refused)
})

it('a ticket ends with its session, and a ticket that is shown counts in place of the token', async () => {
  const { access } = await edge.login('alice')
  const other = await edge.login('alice')
  const { downloadPath } = await ticketFor(file, access)
  await edge.post(logoutPath, undefined, { headers: { authorization: access } })
  expect(await codeOf(downloadPath)).toBe(refused)
  expect(await codeOf(`${file}?ticket=x`, other.access)).toBe(refused)
  expect(await codeOf(`${file}?ticket=`, other.access)).toBe(refused)
})

it('a viewer gets no ticket for what only administrators download, and nobody one for anything else', async () => {
  const { access } = await edge.login('alice')
  const bob = await edge.login('bob')
  const said = async (path: unknown, token?: string) => {
    const reply = await ask('', token, { path })
    return [reply.statusCode, reply.json<ErrorReply>().code, reply.json<ErrorReply>().details?.field]
  }
  expect(await said(file, bob.access)).toEqual([403, 'Forbidden', undefined])
  expect(await said(file)).toEqual([401, 'Unauthenticated', undefined])
  for (const path of [
    ...['', 'x', '/', currentPath, `${host}/logs`, `${host}/file-download/files`, `${host}/file-download`],
    ...[
      `${file}?ticket=1`,
      `${file}?a=1&ticket`,
      `${file}#x`,
      `${file} `,
      `https://x${file}`,
      '/%zz',
      7,
      null,
    ],
    `${host}/file-download/${'a'.repeat(3_000)}`,
  ])
    expect((await said(path, access)).slice(0, 2), String(path)).toEqual([400, 'BadRequest'])
  expect(await said('/v1/ping', access)).toEqual([400, 'BadRequest', 'path'])
})

it('a session has at most 16 unused tickets; those of others are their own', async () => {
  const { access } = await edge.login('alice')
  const other = await edge.login('alice')
  for (let count = 0; count < 16; count += 1) await ticketFor(file, access)
  const reply = await ask(file, access)
  expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([429, 'TooManyRequests'])
  const after = Number(reply.headers['retry-after'])
  expect(after).toBeGreaterThan(0)
  expect(after).toBeLessThanOrEqual(30)
  await ticketFor(file, other.access)
  ms += after * 1_000
  await ticketFor(file, access)
})
