import { execFile } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestEdge, logoutPath, renewalPath, resetPath, type TestEdge } from '../../support/test-edge.ts'

const run = promisify(execFile)
const auditsPath = '/v1/edge-mgmt/edgehosts/current/audits'

// Only root may mount.
describe.skipIf(process.getuid?.() !== 0)('on a disk that is really full', () => {
  let folder: string
  let edge: TestEdge
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-full-'))
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'edgehostd-test', folder])
    edge = await createTestEdge({ stateDirectory: folder })
  })
  afterEach(async () => {
    await edge.stop()
    await run('umount', [folder])
    await rm(folder, { recursive: true })
  })

  const filler = () => join(folder, 'filler')
  function fillDisk() {
    const file = openSync(filler(), 'a')
    const block = Buffer.alloc(4_096, 1)
    try {
      for (;;) writeSync(file, block)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }
  const change = (token: string, newPassword: string) =>
    edge.post(resetPath, { oldPassword: 'bob pass', newPassword }, { headers: { authorization: token } })

  it('on a full disk logins and reads continue; changes are a 507 and not made until there is space again', async () => {
    const admin = (await edge.login('alice')).access
    fillDisk()
    const bob = await edge.login('bob')
    expect((await edge.get('/v1/users/current', bob.access)).statusCode).toBe(200)
    expect((await edge.post(renewalPath, { refreshToken: bob.refresh })).statusCode).toBe(200)
    expect((await edge.get(auditsPath, admin)).statusCode).toBe(200)

    const refused = await change(bob.access, 'another pass')
    expect(refused.statusCode).toBe(507)
    expect(refused.headers.audituid).toBeDefined()
    expect(edge.host.accounts.get('bob')?.password).toBe('bob pass')
    expect(edge.audit.unwritten()).toBe(3)

    const other = await edge.login('bob')
    const headers = { authorization: other.access }
    expect((await edge.post(logoutPath, undefined, { headers })).statusCode).toBe(200)
    expect((await edge.get('/v1/users/current', other.access)).statusCode).toBe(401)

    rmSync(filler())
    expect((await change((await edge.login('bob')).access, 'another pass')).statusCode).toBe(204)
    expect(edge.host.accounts.get('bob')?.password).toBe('another pass')
    const verified = await edge.get(`${auditsPath}/verify`, admin)
    expect(verified.json()).toMatchObject({ isIntact: true, unwritten: 5 })
    const { items } = (await edge.get(`${auditsPath}?filters=spec.resource.kind=audit`, admin)).json<{
      items: { spec: { message: string } }[]
    }>()
    expect(items.map(({ spec }) => spec.message)).toEqual([
      expect.stringContaining('5 records are in the journal only'),
    ])
  })

  it('a session that ends on a full disk is ended after a restart too, with all others', async () => {
    const [bob, alice] = [await edge.login('bob'), await edge.login('alice')]
    fillDisk()
    const headers = { authorization: bob.access }
    expect((await edge.post(logoutPath, undefined, { headers })).statusCode).toBe(200)
    await edge.stop()
    rmSync(filler())
    edge = await createTestEdge({ stateDirectory: folder })
    for (const { access, refresh } of [bob, alice]) {
      expect((await edge.get('/v1/users/current', access)).statusCode).toBe(401)
      expect((await edge.post(renewalPath, { refreshToken: refresh })).statusCode).toBe(401)
    }
    const { access } = await edge.login('alice')
    await edge.stop()
    edge = await createTestEdge({ stateDirectory: folder })
    expect((await edge.get('/v1/users/current', access)).statusCode).toBe(200)
  })
})
