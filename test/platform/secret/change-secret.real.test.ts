import { execa } from 'execa'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sealedColumns } from '../../../src/platform/system/secret.ts'
import { bundleProgram } from '../../support/bundle-program.ts'
import { importProfile, smallPack, smallProfile, tarOf, uploadPack } from '../../support/platform-packs.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const password = 'a long password'
type Platform = Awaited<ReturnType<typeof createTestPlatform>>
let home: string
let program: string
/** A state folder with a profile that has sensitive values. */
let made: string
let exported: object
let apiKey: string
let profileUid: string

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'change-secret-'))
  program = join(home, 'backup.cjs')
  bundleProgram('edgeplatformd', program, { program: 'edgeplatformd', file: 'backup.ts' })
  writeFileSync(join(home, 'config.yaml'), 'platform: {hostName: platform.example}\n')
  made = join(home, 'made')
  const platform = await createTestPlatform({ stateDirectory: made })
  const userUid = await platform.addUser('root@plant.example', password, ['admin'])
  const headers = await platform.signIn('root@plant.example', password)
  await uploadPack(platform, tarOf(smallPack('web', '1.0.0')), headers)
  profileUid = (await importProfile(platform, JSON.stringify(smallProfile()), headers)).json<{
    uid: string
  }>().uid
  exported = await exportOf(platform, headers)
  const key = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/apiKeys', headers },
    payload: {
      metadata: { name: 'robot' },
      spec: { userUid, expiry: new Date(Date.now() + 30 * 86_400_000).toISOString() },
    },
  })
  apiKey = key.json<{ apiKey: string }>().apiKey
  await platform.close()
})
afterAll(() => rmSync(home, { recursive: true }))

const exportOf = async (platform: Platform, headers: Record<string, string>) =>
  (await platform.app.inject({ url: `/v1/clusterprofiles/${profileUid}/export`, headers })).json<object>()

let copies = 0
function copy(): string {
  const state = join(home, `state-${(copies += 1)}`)
  cpSync(made, state, { recursive: true })
  return state
}

const change = (state: string, node: readonly string[] = [], step = 0) =>
  execa(process.execPath, [...node, program, 'secret', '--yes'], {
    reject: false,
    extendEnv: false,
    env: {
      PATH: '/usr/bin:/bin',
      EDGEPLATFORMD_CONFIG: join(home, 'config.yaml'),
      EDGEPLATFORMD_STATE_DIRECTORY: state,
      STEP: String(step),
    },
  })

/** What a platform of this state still has. */
async function look(state: string) {
  const platform = await createTestPlatform({ stateDirectory: state })
  try {
    const headers = await platform.signIn('root@plant.example', password)
    const audits = (
      await platform.app.inject({ url: '/v1/audits?resourceKind=secret&actionType=update', headers })
    ).json<{ items: readonly object[] }>()
    return {
      exported: await exportOf(platform, headers),
      changes: audits.items.length,
      keyStatus: (await platform.app.inject({ url: '/v1/users/info', headers: { apikey: apiKey } }))
        .statusCode,
    }
  } finally {
    await platform.close()
  }
}

/** Kills the process right before its STEPth change of a file or of a row. */
const cut = `
const fs = require('node:fs')
const { StatementSync, DatabaseSync } = require('node:sqlite')
let left = Number(process.env.STEP)
function cutBefore(object, name) {
  const original = object[name]
  object[name] = function (...args) {
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    return original.apply(this, args)
  }
}
for (const name of ['rename', 'chown', 'open']) cutBefore(fs.promises, name)
cutBefore(StatementSync.prototype, 'run')
cutBefore(DatabaseSync.prototype, 'exec')
`

describe('edgeplatformctl secret change', () => {
  it('makes another secret, with which all that was stored is read as before, and is in the audit trail', async () => {
    const state = copy()
    const before = readFileSync(join(state, 'secret'))
    const { exitCode, stdout, stderr } = await change(state)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain('The secret is changed; 1 stored value sealed with the new one.')
    expect(readFileSync(join(state, 'secret'))).not.toEqual(before)
    expect(statSync(join(state, 'secret')).mode & 0o777).toBe(0o600)
    expect(readdirSync(state).filter((name) => name.startsWith('secret.'))).toEqual(['secret.changed'])
    expect(await look(state)).toEqual({ exported, changes: 1, keyStatus: 200 })
    expect(existsSync(join(state, 'secret.changed'))).toBe(false)
  })

  it('is refused on a damaged database, with what to do, and leaves no new secret', async () => {
    const state = copy()
    const database = join(state, 'edgeplatform.db')
    writeFileSync(database, readFileSync(database).fill(0xa5, 4_096, 8_192))
    const { exitCode, stderr } = await change(state)
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringMatching(/damaged.*restore FILE.*recover.*Nothing was changed$/s),
    ])
    expect(existsSync(join(state, 'secret.next'))).toBe(false)
  })

  it('is refused while the platform runs, and where there is none', async () => {
    const state = copy()
    const platform = await createTestPlatform({ stateDirectory: state })
    const refused = await change(state)
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/is in use by another edgeplatformd: .*Nothing was changed$/),
    ])
    await platform.close()
    const nowhere = await change(join(home, 'nowhere'))
    expect([nowhere.exitCode, nowhere.stderr]).toEqual([
      1,
      expect.stringMatching(/there is no platform whose secret could be changed. Nothing was changed$/),
    ])
    expect(await look(state)).toEqual({ exported, changes: 0, keyStatus: 200 })
  })

  it('loses nothing when it is killed before any of its steps: the platform waits until it was run again', async () => {
    const preload = join(home, 'cut.cjs')
    writeFileSync(preload, cut)
    const seen = { waiting: 0, done: 0 }
    for (let step = 1; ; step += 1) {
      const state = copy()
      const { signal } = await change(state, ['--require', preload], step)
      if (signal !== 'SIGKILL') {
        expect(await look(state)).toEqual({ exported, changes: 1, keyStatus: 200 })
        break
      }
      const isWaiting = existsSync(join(state, 'secret.next'))
      if (isWaiting) {
        seen.waiting += 1
        await expect(createTestPlatform({ stateDirectory: state })).rejects.toThrow(
          /was interrupted: run it again with edgeplatformctl secret change/,
        )
        expect((await change(state)).exitCode).toBe(0)
      } else seen.done += 1
      const { exported: now } = await look(state)
      expect(now, `killed before step ${step}`).toEqual(exported)
      rmSync(state, { recursive: true })
    }
    expect(seen.waiting).toBeGreaterThan(5)
  })
})

it('every sealed column of the database is named', async () => {
  const platform = await createTestPlatform()
  const blobs = platform.rooms.state.database.sql
    .prepare(
      `SELECT m.name AS "table", c.name AS "column" FROM sqlite_master m, pragma_table_info(m.name) c
      WHERE m.type = 'table' AND c.type = 'BLOB' ORDER BY 1, 2`,
    )
    .all()
    .map((row) => `${String(row.table)}.${String(row.column)}`)
  await platform.close()
  const named = Object.values(sealedColumns).map(({ table, column }) => `${table}.${column}`)
  // None of these is a secret.
  const hashes = ['audit.hash', 'audit.previous_hash', 'secret_mark.mark']
  expect(blobs.filter((name) => !hashes.includes(name))).toEqual(named.sort())
})
