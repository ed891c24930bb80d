import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync, mkdirSync, lstatSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAccountKeys, type KeysChange } from '../../../src/auth/ssh-keys.ts'
import { fingerprintOf } from '../../../src/host/public-key.ts'
import {
  areKeysPlaced,
  findKeysPlace,
  placeKeys,
  sectionsOf,
  textOfSections,
} from '../../../src/host/ssh-keys.ts'
import type { CommandRunner } from '../../../src/system/runner.ts'
import type { Verbs } from '../../../src/verbs/call.ts'
import { VerbRefused } from '../../../src/verbs/verb.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'
import { publicKeys } from '../../support/ssh-keys.ts'

const { ed25519, rsa, ecdsa256 } = publicKeys

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-keys-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

describe('the file of an account', () => {
  const { uid, gid } = userInfo()
  const account = (home: string) => ({ name: 'ada', uid, gid, home })

  it('the keys of the cluster and those of the account are in one file, and neither takes away the other', async () => {
    const path = join(makeFolder(), '.ssh', 'authorized_keys2')
    const place = { path, account: account('/') }
    await placeKeys(place, 'cluster', [ed25519])
    await placeKeys(place, 'account', [rsa, ecdsa256])
    const text = readFileSync(path, 'utf8')
    expect(sectionsOf(text)).toEqual({ cluster: [ed25519], account: [rsa, ecdsa256] })
    expect(textOfSections(sectionsOf(text))).toBe(text)
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(await areKeysPlaced(place, 'cluster', [ed25519])).toBe(true)
    expect(await areKeysPlaced(place, 'cluster', [rsa])).toBe(false)
    await placeKeys(place, 'cluster', [])
    expect(sectionsOf(readFileSync(path, 'utf8'))).toEqual({ account: [rsa, ecdsa256] })
    expect(await areKeysPlaced(place, 'account', [rsa, ecdsa256])).toBe(true)
    await placeKeys(place, 'account', [])
    expect(() => lstatSync(path)).toThrow('ENOENT')
  })

  it('a link in place of the file or of its folder is not followed, and a foreign file stays', async () => {
    const home = makeFolder()
    const runner: CommandRunner = {
      run: async (program) => ({
        exitCode: program === 'getent' ? 0 : 1,
        stdout: `ada:x:${uid}:${gid}::${home}:/bin/sh\n`,
        stderr: '',
      }),
    }
    const find = () => findKeysPlace(runner, 'ada', () => false)
    expect(await find()).toMatchObject({ path: join(home, '.ssh/authorized_keys2') })
    const other = makeFolder()
    symlinkSync(other, join(home, '.ssh'))
    expect(await find()).toMatchObject({ problem: expect.stringContaining('beyond a link') as string })
    rmSync(join(home, '.ssh'))
    mkdirSync(join(home, '.ssh'), { mode: 0o700 })
    symlinkSync(join(other, 'x'), join(home, '.ssh/authorized_keys2'))
    expect(await find()).toMatchObject({ problem: expect.stringContaining('not a regular file') as string })
    rmSync(join(home, '.ssh/authorized_keys2'))
    writeFileSync(join(home, '.ssh/authorized_keys2'), `${rsa}\n`)
    expect(await find()).toMatchObject({ problem: expect.stringContaining('not overwritten') as string })
  })

  it('a fingerprint is that of ssh-keygen', () => {
    const file = join(makeFolder(), 'key.pub')
    writeFileSync(file, `${ed25519}\n`)
    expect(execFileSync('ssh-keygen', ['-lf', file], { encoding: 'utf8' })).toContain(fingerprintOf(ed25519))
  })
})

describe('a change of the own keys', () => {
  const minuteMs = 60_000
  const owner = { userName: 'ada', sessionUid: 'session' }
  const request = { address: '192.0.2.1', arrivedAt: 0, ref: 'ref' }

  function start({ loginAgeMs = minuteMs, refusal = '' } = {}) {
    const now = Date.parse('2026-01-31T08:00:00Z')
    const { log } = captureLog()
    const database = openDatabase(join(makeFolder(), 'edgehostd.db'), log)
    onTestFinished(() => database.close())
    const calls: unknown[] = []
    const changes: KeysChange[] = []
    const checked: string[] = []
    const verbs: Verbs = {
      async call(_verb, input) {
        if (refusal !== '') throw new VerbRefused(refusal)
        calls.push(input)
        return undefined as never
      },
    }
    const keys = createAccountKeys({
      database,
      verbs,
      login: {
        async check({ userName, password }, _purpose, refuse) {
          checked.push(userName)
          if (password !== 'right') throw refuse?.('wrong') ?? new Error('refused')
          return { name: userName } as never
        },
      },
      sessions: { find: () => ({ createdAt: now - loginAgeMs }) as never },
      clock: { now: () => now, monotonic: () => now },
      log,
      onChange: (change) => changes.push(change),
    })
    return {
      keys,
      calls,
      changes,
      checked,
      change: (body: Parameters<typeof keys.change>[1]) => keys.change(owner, body, request),
    }
  }

  it('the keys are placed by the verb, kept for the reply, and told by their fingerprints', async () => {
    const { keys, calls, changes, change, checked } = start()
    expect(
      await change({
        sshKeys: [ed25519, '', ed25519, ` ${rsa} `],
        userName: 'ada',
        disablePasswordUpdate: false,
      }),
    ).toEqual({
      userName: 'ada',
      fingerprints: [fingerprintOf(ed25519), fingerprintOf(rsa)],
    })
    expect(calls).toEqual([{ userName: 'ada', keys: [ed25519, rsa] }])
    expect(changes).toHaveLength(1)
    expect(checked).toEqual([])
    expect([keys.of('ada'), keys.of('bob')]).toEqual([[ed25519, rsa], []])
    await change({ sshKeys: [] })
    expect(calls.at(-1)).toEqual({ userName: 'ada', keys: [] })
    expect(keys.of('ada')).toEqual([])
  })

  it('a body without keys changes nothing, and fields that cannot be honoured are refused by name', async () => {
    const { change, calls } = start()
    expect(await change({})).toBeUndefined()
    expect(await change({ userName: 'ada' })).toBeUndefined()
    await expect(change({ userName: 'bob' })).rejects.toMatchObject({ details: { field: 'userName' } })
    await expect(change({ disablePasswordUpdate: true })).rejects.toMatchObject({
      details: { field: 'disablePasswordUpdate' },
    })
    for (const key of [`command="id" ${ed25519}`, 'ssh-ed25519 AAAA', `${ed25519}\n${rsa}`])
      await expect(change({ sshKeys: [ed25519, key] }), key).rejects.toMatchObject({
        details: { field: 'sshKeys[1]' },
      })
    expect(calls).toEqual([])
  })

  it.each([
    ['older than five minutes', 5 * minuteMs + 1],
    ['in the future', -minuteMs],
  ])('a login that is %s needs the password', async (_what, loginAgeMs) => {
    const { change, checked, calls } = start({ loginAgeMs })
    await expect(change({ sshKeys: [ed25519] })).rejects.toMatchObject({ code: 'LoginTooOld', status: 403 })
    await expect(change({ sshKeys: [ed25519], password: 'wrong' })).rejects.toMatchObject({
      code: 'OldPasswordWrong',
      details: { field: 'password' },
    })
    expect(calls).toEqual([])
    await change({ sshKeys: [ed25519], password: 'right' })
    expect(checked).toEqual(['ada', 'ada'])
    expect(calls).toHaveLength(1)
  })

  it('keys that cannot be placed are refused with the reason, and not shown', async () => {
    const { keys, change, changes } = start({ refusal: 'the home is not there; make it' })
    await expect(change({ sshKeys: [ed25519] })).rejects.toMatchObject({
      code: 'SshKeysRefused',
      message: 'the home is not there; make it',
    })
    expect(keys.of('ada')).toEqual([])
    expect(changes).toEqual([])
  })
})
