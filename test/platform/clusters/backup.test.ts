import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeBackup } from '../../../src/backup/make-backup.ts'
import { migrations } from '../../../src/edgeplatformd/migrations.ts'
import { restoreBackup } from '../../../src/backup/restore-backup.ts'
import { captureLog } from '../../support/https-server.ts'
import {
  clusterEntity,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../../support/platform-clusters.ts'
import { examineProgram } from '../../support/programs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
type Platform = Awaited<ReturnType<typeof createTestPlatform>>
let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'clusters-'))
})
afterEach(() => {
  rmSync(home, { recursive: true })
})

async function withCluster(platform: Platform) {
  await platform.addUser('root@plant.example', password, ['admin'])
  const headers = await platform.signIn('root@plant.example', password)
  await uploadClusterPacks(platform, headers)
  const profileUid = await importedProfile(platform, headers)
  const host = await joinedHost(platform, headers)
  const made = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/spectroclusters/edge-native', headers },
    payload: clusterEntity(host.uid, profileUid),
  })
  if (made.statusCode !== 201) throw new Error(made.body)
  return { headers, host, uid: made.json<{ uid: string }>().uid }
}
const download = async ({ app }: Platform, { uid, token }: { uid: string; token: string }) => {
  const headers = { authorization: token }
  const reply = await app.inject({ url: `/v1/edgehosts/${uid}/spc/download`, headers })
  return { status: reply.statusCode, bytes: reply.rawPayload, etag: reply.headers.etag }
}

it('a backup brings clusters with their definitions, and their hosts get the same bytes', async () => {
  const from = await createTestPlatform({ stateDirectory: join(home, 'from') })
  const { host } = await withCluster(from)
  const before = await download(from, host)
  const common = {
    ...{ file: join(home, 'platform.backup'), passphrase: 'correct horse battery staple' },
    ...{ configFile: join(home, 'config.yaml'), now: Date.now(), onBegin: () => undefined },
  }
  await makeBackup({ ...common, stateDirectory: join(home, 'from'), namedFiles: [], programVersion: '1.2.3' })
  await from.close()
  const { log } = captureLog()
  await restoreBackup({ ...common, stateDirectory: join(home, 'to'), migrations, log })
  const to = await createTestPlatform({ stateDirectory: join(home, 'to') })
  try {
    const same = host.copy(to)
    await same.logIn()
    expect(await download(to, same)).toEqual(before)
    expect(before.status).toBe(200)
  } finally {
    await to.close()
  }
})

it('a cluster whose definition is missing is wanted no more until it is applied again', async () => {
  const stateDirectory = join(home, 'state')
  const first = await createTestPlatform({ stateDirectory })
  const { host, uid } = await withCluster(first)
  await first.close()
  const folder = join(stateDirectory, 'clusters')
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
  const platform = await createTestPlatform({ stateDirectory })
  try {
    expect(JSON.stringify(platform.lines)).toContain('the definition of a cluster is missing')
    const same = host.copy(platform)
    await same.logIn()
    const beat = async () =>
      (
        await platform.app.inject({
          ...{ method: 'PATCH', url: `/v1/edgehosts/${same.uid}/health` },
          ...{ headers: { authorization: same.token }, payload: { state: 'healthy' } },
        })
      ).headers['edgehost-wanted']
    expect([await beat(), (await download(platform, same)).status]).toEqual([undefined, 404])
    const headers = await platform.signIn('root@plant.example', password)
    const url = `/v1/spectroclusters/${uid}/apply`
    expect((await platform.app.inject({ method: 'POST', url, headers })).statusCode).toBe(204)
    expect(await beat()).toMatch(/^number=2,/)
    expect((await download(platform, same)).status).toBe(200)
  } finally {
    await platform.close()
  }
})

it('a definition is built by a program of its own, and comes over a connection that is cut and continues', async () => {
  const platform = await createTestPlatform({
    ...{ stateDirectory: join(home, 'real'), examineProgram: examineProgram() },
  })
  await platform.start()
  try {
    const { host } = await withCluster(platform)
    const { port } = platform.app.server.address() as AddressInfo
    const ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
    /** The bytes until the connection is cut after this many. */
    const get = (headers: Record<string, string>, most = Infinity) =>
      new Promise<{ status: number | undefined; bytes: Buffer; etag: string }>((resolve, reject) => {
        const sent = request(
          {
            ...{ port, ca, path: `/v1/edgehosts/${host.uid}/spc/download`, servername: 'localhost' },
            ...{ headers: { ...headers, authorization: host.token }, checkServerIdentity: () => undefined },
          },
          (reply) => {
            const parts: Buffer[] = []
            const bytes = () => Buffer.concat(parts)
            const finish = () =>
              resolve({ status: reply.statusCode, bytes: bytes(), etag: reply.headers.etag ?? '' })
            reply.on('data', (part: Buffer) => {
              parts.push(part)
              if (bytes().length < most) return
              reply.destroy()
              finish()
            })
            reply.on('end', finish).on('error', () => undefined)
          },
        )
        sent.on('error', reject).end()
      })
    const whole = await get({})
    expect(whole.status).toBe(200)
    const first = await get({}, 100)
    const rest = await get({ range: `bytes=${first.bytes.length}-`, 'if-range': first.etag })
    // A small definition may be there at once.
    const joined = rest.status === 206 ? Buffer.concat([first.bytes, rest.bytes]) : first.bytes
    expect([206, 416]).toContain(rest.status)
    expect(joined.equals(whole.bytes)).toBe(true)
    const part = await get({ range: 'bytes=100-', 'if-range': whole.etag })
    expect([part.status, part.bytes.equals(whole.bytes.subarray(100))]).toEqual([206, true])
  } finally {
    await platform.close()
  }
})
