import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants, copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPam, type PamOptions } from '../../../src/auth/pam.ts'
import { changePassword } from '../../../src/auth/verbs.ts'
import { createVerbs } from '../../../src/verbs/call.ts'
import { createRunner } from '../../../src/system/runner.ts'

const program = '/usr/bin/pamtester'
const needs =
  process.getuid?.() !== 0
    ? 'needs root: accounts are made'
    : !existsSync(program)
      ? 'needs the package pamtester'
      : !existsSync('/etc/pam.d/common-auth')
        ? 'needs the common-* files of Debian'
        : undefined

// Names of their own, so that nothing of the machine is touched and two runs do not meet.
const service = `edgehostd-test-${process.pid}`
const serviceFile = `/etc/pam.d/${service}`
const user = `edgehostd-t${process.pid}`
const password = 'Correct-horse 7'
const newPassword = 'Battery-staple 8'

const command = (name: string, args: string[], input = '') =>
  void execFileSync(name, args, { input, stdio: ['pipe', 'ignore', 'ignore'] })
const setPassword = (text: string) => command('chpasswd', [], `${user}:${text}\n`)

it('the service file has each stack of the system once, and access.conf', async () => {
  const lines = (await readFile('systemd/edgehostd.pam', 'utf8')).split('\n')
  expect(lines.filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
    '@include common-auth',
    'account required pam_access.so',
    'account required pam_nologin.so',
    '@include common-account',
    '@include common-password',
  ])
})

describe.skipIf(needs)(`PAM of this machine${needs ? ` (${needs})` : ''}`, { timeout: 60_000 }, () => {
  const runner = createRunner()
  const verbs = createVerbs({
    outside: () => runner,
    program: '',
    place: {
      stateDirectory: '',
      pam: { program, service },
      support: { program: '', socket: '' },
      platformProgram: '',
    },
  })
  const changed: PamOptions['change'] = (input) => verbs.call(changePassword, input, { role: 'viewer' })
  const pam = createPam({ runner, change: changed, program, service, timeoutMs: 20_000 })
  const address = '192.0.2.1'
  const verify = (userName: string, given: string) => pam.verify({ userName, password: given, address })
  const change = (old: string, wanted: string) =>
    pam.changePassword({ userName: user, password: old, newPassword: wanted, address })

  beforeAll(async () => {
    await copyFile('systemd/edgehostd.pam', serviceFile, constants.COPYFILE_EXCL)
    command('useradd', ['--no-create-home', '--shell', '/bin/bash', user])
  })
  afterAll(async () => {
    await rm(serviceFile, { force: true })
    command('userdel', [user])
  })
  beforeEach(() => {
    setPassword(password)
    command('chage', ['-E', '-1', '-m', '0', '-M', '99999', '-d', '2026-01-01', user])
  })

  it('PAM accepts the right password', async () => {
    expect(await verify(user, password)).toEqual({ kind: 'accepted' })
  })

  it('PAM refuses a wrong password, one that only begins right, and an unknown user', async () => {
    const verdicts = await Promise.all([
      verify(user, 'wrong'),
      verify(user, `${password} `),
      verify(user, password.slice(0, -1)),
      verify(`${user}-not`, password),
    ])
    expect(verdicts.map(({ kind }) => kind)).toEqual(Array(4).fill('refused'))
  })

  it('PAM reads a password of 511 bytes completely', async () => {
    const long = 'ä'.repeat(255) + '7'
    setPassword(long)
    expect((await verify(user, long)).kind).toBe('accepted')
    expect((await verify(user, `${long.slice(0, -1)}8`)).kind).toBe('refused')
  })

  it('PAM reports an expired password after the right one only', async () => {
    command('chage', ['-d', '0', user])
    expect((await verify(user, password)).kind).toBe('password-expired')
    expect((await verify(user, 'wrong')).kind).toBe('refused')
  })

  it('PAM refuses an expired account', async () => {
    command('chage', ['-E', '0', user])
    const verdict = await verify(user, password)
    expect(verdict).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('account has expired') as string,
    })
  })

  it('PAM refuses a locked account', async () => {
    command('passwd', ['-l', user])
    expect((await verify(user, password)).kind).toBe('refused')
  })

  it('PAM refuses an account without a password, whatever is given', async () => {
    command('passwd', ['-d', user])
    const verdicts = await Promise.all(['', 'x', password].map((given) => verify(user, given)))
    expect(verdicts.map(({ kind }) => kind)).toEqual(Array(3).fill('refused'))
  })

  it('PAM is unusable without its service file, and does not use another one', async () => {
    const missing = createPam({
      runner,
      change: changed,
      program,
      service: `${service}-x`,
      timeoutMs: 20_000,
    })
    await expect(missing.verify({ userName: user, password, address })).rejects.toMatchObject({
      code: 'PamUnavailable',
    })
  })

  it('PAM is unusable with a missing module, or without pamtester', async () => {
    const broken = `${service}-broken`
    await writeFile(
      `/etc/pam.d/${broken}`,
      'auth required pam_not_there.so\naccount required pam_permit.so\n',
    )
    const of = (change: { service?: string; program?: string }) =>
      createPam({ runner, change: changed, program, service, timeoutMs: 20_000, ...change })
    for (const change of [{ service: broken }, { program: '/no/such/pamtester' }]) {
      const verdict = of(change).verify({ userName: user, password, address })
      await expect(verdict).rejects.toMatchObject({ code: 'PamUnavailable' })
    }
    await rm(`/etc/pam.d/${broken}`)
  })

  describe('a password change', () => {
    it('a password change with valid passwords succeeds, and the new one is accepted', async () => {
      expect(await change(password, newPassword)).toBeUndefined()
      expect((await verify(user, newPassword)).kind).toBe('accepted')
      expect((await verify(user, password)).kind).toBe('refused')
    })

    it('a password change succeeds for an expired password', async () => {
      command('chage', ['-d', '0', user])
      expect(await change(password, newPassword)).toBeUndefined()
      expect((await verify(user, newPassword)).kind).toBe('accepted')
    })

    it.each([
      ['with a wrong old password', 'wrong', newPassword, /Authentication/],
      ['to one that is too short', password, 'x7', /longer password/],
      ['to the same one', password, password, /not been changed|unchanged/],
    ])('a password change is refused %s', async (_what, old, wanted, words) => {
      expect(await change(old, wanted)).toMatch(words)
      expect((await verify(user, password)).kind).toBe('accepted')
    })

    it('a password change is refused before the minimum age is over', async () => {
      command('chage', ['-m', '7', '-d', new Date().toISOString().slice(0, 10), user])
      expect(await change(password, newPassword)).toMatch(/wait longer/)
      expect((await verify(user, password)).kind).toBe('accepted')
    })
  })
})
