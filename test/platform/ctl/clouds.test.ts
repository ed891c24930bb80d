import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCtl, overSocket, type Ctl } from '../../support/ctl.ts'
import { createCloudWorld, rightSecret, type CloudWorld } from '../../support/platform-clouds.ts'
import { manyServers } from '../../support/played-cloud.ts'
import { platformCtlProgram } from '../../support/programs.ts'

let world: CloudWorld
let folder: string
let ctl: Ctl
let socket: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'platform-ctl-'))
  socket = join(folder, 'api.sock')
  world = await createCloudWorld({ socket })
  await world.platform.start()
  ctl = createCtl(platformCtlProgram())
})
afterAll(async () => {
  await world.close()
  for (const each of [folder, ctl.home]) rmSync(each, { recursive: true, force: true })
})

const { run, ok } = overSocket(() => ({ ctl, socket }))
async function refused(...args: readonly string[]) {
  const { exitCode, stderr } = await run(...args)
  return [exitCode, stderr.trim()]
}
function secretFile(text: string): string {
  const file = join(folder, 'secret')
  writeFileSync(file, text)
  return file
}

it('accounts and cloud configurations are made, listed and deleted, and machines are shown', async () => {
  world.cloud.servers = manyServers(60, ['cluster=line-4', 'worker'])
  const given = ['--id', 'right-id', '--secret-file', secretFile(`${rightSecret}\n`)]
  await ok('cloudaccount', 'validate', ...given)
  await ok('project', 'create', 'north')
  await ok('cloudaccount', 'create', 'plant', ...given)
  expect(await ok('cloudaccount', 'list')).toMatch(/^plant +- +right-id/m)
  const uid = await ok(
    ...['cloudconfig', 'create', 'line-4', '--project', 'north', '--account', 'plant'],
    ...['--pool', 'workers=cluster=line-4,worker', '--pool', 'none=cluster=none'],
  )
  expect(await ok('cloudconfig', 'list')).toMatch(
    new RegExp(`^line-4 +north +plant +workers, none +${uid.trim()}$`, 'm'),
  )
  const shown = await ok('cloudconfig', 'machines', 'line-4', 'workers')
  expect(shown).toMatch(/^server-60 +Running +small/m)
  expect(shown.trim().split('\n')).toHaveLength(61)
  const filtered = ['--filter', 'metadata.name=server-7', '-o', 'json']
  const { items } = JSON.parse(await ok('cloudconfig', 'machines', 'line-4', 'workers', ...filtered)) as {
    items: object[]
  }
  expect(items).toHaveLength(1)
  expect(await refused('cloudaccount', 'delete', 'plant', '--yes')).toEqual([
    1,
    expect.stringContaining('plant is used by the cloud configuration line-4'),
  ])
  await ok('cloudconfig', 'delete', 'line-4', '--yes')
  await ok('cloudaccount', 'delete', 'plant', '--yes')
})

it('wrong words and credentials are refused, and no message has the secret', async () => {
  const wrong = ['--id', 'right-id', '--secret-file', secretFile('a-wrong-secret')]
  expect(await refused('cloudaccount', 'validate', ...wrong)).toEqual([
    1,
    expect.stringContaining('the cloud refuses these credentials'),
  ])
  expect((await refused('cloudaccount', 'validate', ...wrong)).join()).not.toContain('a-wrong-secret')
  expect(await refused('cloudaccount', 'create', 'a', '--id', 'right-id')).toEqual([
    2,
    expect.stringContaining('name both --id and --secret-file'),
  ])
  const empty = ['--id', 'a', '--secret-file', secretFile('\n')]
  expect(await refused('cloudaccount', 'create', 'a', ...empty)).toEqual([
    2,
    expect.stringContaining('the file is empty'),
  ])
  for (const pool of ['workers', '=a', 'workers=', 'workers=a,,b'])
    expect(await refused('cloudconfig', 'create', 'a', '--account', 'b', '--pool', pool)).toEqual([
      2,
      expect.stringContaining('--pool must be NAME=TAG,…'),
    ])
  expect(await refused('cloudconfig', 'create', 'a')).toEqual([
    2,
    expect.stringContaining('name an --account, and one --pool or more'),
  ])
})
