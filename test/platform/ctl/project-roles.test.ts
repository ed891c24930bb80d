import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCtl, overSocket, type Ctl } from '../../support/ctl.ts'
import {
  clusterProfile,
  importedProfile,
  joinedHost,
  uploadClusterPacks,
} from '../../support/platform-clusters.ts'
import { platformCtlProgram } from '../../support/programs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let folder: string
let socket: string
let root: Ctl
let operator: Ctl
let operatorHeaders: Record<string, string>
let profileUid: string
/** A command of an operator of the project `north` alone. */
let at: (...args: readonly string[]) => ReturnType<Ctl['run']>

const { ok, json } = overSocket(() => ({ ctl: root, socket }))

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'platform-ctl-'))
  socket = join(folder, 'api.sock')
  platform = await createTestPlatform({ socket })
  await platform.start()
  await platform.addUser('root@plant.example', password, ['admin'])
  const admin = await platform.signIn('root@plant.example', password)
  root = createCtl(platformCtlProgram())
  await ok('project', 'create', 'north')
  await platform.addUser('of-north@plant.example', password)
  await ok('project', 'roles', 'north', 'of-north@plant.example', 'operator')
  const { items } = await json<{ items: { metadata: { uid: string } }[] }>('project', 'list')
  const uid = items[0]?.metadata.uid ?? ''
  operatorHeaders = { ...(await platform.signIn('of-north@plant.example', password)), projectuid: uid }
  await uploadClusterPacks(platform, admin)
  profileUid = await importedProfile(platform, admin, clusterProfile('infra'))
  await joinedHost(platform, admin, { name: 'press-7', projectUid: uid })

  operator = createCtl(platformCtlProgram())
  const { fingerprint } = (await json<{ certificate: { fingerprint: string } }>('status')).certificate
  const remote = `127.0.0.1:${(platform.app.server.address() as AddressInfo).port}`
  at = (...args) => operator.run(['--host', remote, '--fingerprint', fingerprint, ...args])
  const words = ['login', 'of-north@plant.example', '--password-stdin']
  await operator.run(['--host', remote, '--fingerprint', fingerprint, ...words], password)
})
afterAll(async () => {
  await platform.close()
  for (const each of [folder, root.home, operator.home]) rmSync(each, { recursive: true, force: true })
})

it('a user with a role in a project alone sees the packs and profiles of the tenant, which the project may use', async () => {
  expect((await at('pack', 'list')).stdout).toMatch(/^edge-os +1\.0\.0 +os +- /m)
  expect((await at('pack', 'show', 'web@1.0.0')).stdout).toContain('The web')
  expect((await at('profile', 'list')).stdout).toMatch(/^infra +1\.0\.0 +draft/m)
  expect((await at('profile', 'show', 'infra')).stdout).toContain('web 1.0.0 (addon)')
  expect((await at('profile', 'show', 'infra', '--output', 'json')).stdout).not.toContain('"values"')
  expect((await at('profile', 'variables', 'infra')).stdout).toMatch(/^PASSWORD .*\*{8}/m)
})

it('makes clusters of them, by their names', async () => {
  const options = ['--project', 'north', '--name', 'line-7', '--edge-host', 'press-7', '--profile', 'infra']
  const made = await at('cluster', 'create', ...options, '--set', 'USER=paul')
  expect([made.exitCode, made.stderr]).toEqual([0, ''])
  expect((await at('cluster', 'show', 'line-7')).stdout).toContain('infra')
  const again = await at('cluster', 'profiles', 'line-7', '--profile', 'infra@1.0.0')
  expect([again.exitCode, again.stderr]).toEqual([0, expect.any(String)])
})

it('changes none of them, and gets no values of packs', async () => {
  for (const args of [
    ['profile', 'delete', 'infra', '--yes'],
    ['profile', 'export', 'infra'],
    ['pack', 'delete', 'web', '--yes'],
  ])
    expect(await at(...args)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^edgeplatformctl: the (?:cluster profile|pack) \w+ is of the whole tenant, so this needs a role for the tenant$/m,
      ) as string,
    })
  const url = `/v1/clusterprofiles/${profileUid}`
  const get = (rest: string) =>
    platform.app.inject({ method: 'GET', url: url + rest, headers: operatorHeaders })
  expect((await get('')).statusCode).toBe(404)
  const shown = await get('?ofTenant=true')
  expect([shown.statusCode, shown.body.includes('"values"')]).toEqual([200, false])
  expect((await get('/export?ofTenant=true')).statusCode).toBe(404)
  const removed = await platform.app.inject({
    ...{ method: 'DELETE', url: `${url}?ofTenant=true`, headers: operatorHeaders },
  })
  expect(removed.statusCode).toBe(403)
})
