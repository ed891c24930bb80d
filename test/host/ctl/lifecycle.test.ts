import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { lifecycleHeaders } from '../../../src/api/lifecycle.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { platformCtlProgram } from '../../support/programs.ts'

const folder = mkdtempSync(join(tmpdir(), 'ctl-lifecycle-'))
const socket = join(folder, 'api.sock')
const ending = lifecycleHeaders({ phase: 'deprecated', date: '2026-01-31', successor: '/v2/users' })
const server = createServer((request, response) => {
  const isOld = request.url?.startsWith('/v1/') === true
  // Two pages, so that a command asks twice.
  const isFirst = !request.url?.includes('continue=')
  const listmeta = { continue: isFirst ? 'more' : '', count: 2, limit: 1, offset: 1 }
  response.writeHead(200, { 'content-type': 'application/json', ...(isOld ? ending : {}) })
  response.end(JSON.stringify({ items: [], listmeta }))
})
const programs: Ctl[] = []

beforeAll(async () => {
  server.listen(socket)
  await once(server, 'listening')
  programs.push(createCtl(), createCtl(platformCtlProgram()))
})
afterAll(() => {
  server.close()
  for (const each of [folder, ...programs.map(({ home }) => home)]) rmSync(each, { recursive: true })
})

it('both command lines warn once in a command, on standard error', async () => {
  const [host, platform] = programs
  const ended = await host?.run(['--socket', socket, 'session', 'list', '-o', 'json'])
  expect(ended?.exitCode).toBe(0)
  expect(JSON.parse(ended?.stdout ?? '')).toMatchObject({ items: [] })
  expect(ended?.stderr).toBe(
    'edgehostctl: warning: the host says that GET /v1/users/sessions is deprecated since 2026-01-31; see /v2/users\n',
  )
  expect((await platform?.run(['--socket', socket, 'user', 'list']))?.stderr).toBe(
    'edgeplatformctl: warning: the platform says that GET /v1/users is deprecated since 2026-01-31; see /v2/users\n',
  )
  expect((await host?.run(['--socket', socket, 'api', 'get', '/v2/users']))?.stderr).toBe('')
})
