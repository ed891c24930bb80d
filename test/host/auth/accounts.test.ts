import { createSecretKey } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAccounts } from '../../../src/auth/accounts.ts'
import {
  CommandFailed,
  createRunner,
  type CommandResult,
  type CommandRunner,
} from '../../../src/system/runner.ts'
import { createFakeHost, type FakeHost } from '../../support/fake-host.ts'

const markKey = createSecretKey(Buffer.alloc(32, 3))
const adminGroups = ['sudo', 'domain admins']

describe('the accounts of this machine', () => {
  const accounts = createAccounts({ runner: createRunner(), adminGroups, markKey })

  it('root is an account of this machine, and an administrator by uid', async () => {
    expect(await accounts.read('root')).toMatchObject({ name: 'root', role: 'admin', source: 'local' })
  })

  it.each(['no-such-user', '0', '+0', ' 0', '00', '0x0', 'root:x', 'ROOT', 'root ', '*', '', '-x', '--help'])(
    '%j is not an account of this machine',
    async (name) => expect(await accounts.read(name)).toBeUndefined(),
  )

  it('the marks of accounts are not password hashes', async () => {
    const mark = (await accounts.read('root'))?.mark ?? ''
    expect(mark).toMatch(/^[\w-]{22}$/)
    const other = createAccounts({
      runner: createRunner(),
      adminGroups,
      markKey: createSecretKey(Buffer.alloc(32, 4)),
    })
    expect((await other.read('root'))?.mark).not.toBe(mark)
  })
})

describe('accounts in files', () => {
  let host: FakeHost
  beforeEach(async () => {
    host = await createFakeHost()
  })
  afterEach(() => host.remove())
  const accountsBy = (runner: CommandRunner) =>
    createAccounts({ runner, adminGroups, markKey, etc: host.etc })

  it('accounts in files are read without a child process', async () => {
    expect(await accountsBy(host.runner).read('alice')).toMatchObject({ role: 'admin', hasLoginShell: true })
    expect(await accountsBy(host.runner).read('no-such-user')).toBeUndefined()
    expect(host.calls).toEqual([])
  })

  it('accounts in files have their role, shell, lock and expiry', async () => {
    const accounts = accountsBy(host.runner)
    expect(await accounts.read('bob')).toMatchObject({ role: 'viewer', locked: false, expiresAt: undefined })
    expect(await accounts.read('service')).toMatchObject({ hasLoginShell: false })
    expect(await accounts.read('locked')).toMatchObject({ locked: true })
    expect(await accounts.read('gone')).toMatchObject({ expiresAt: 0 })
  })

  it('the mark of an account changes with password and uid, and with nothing else', async () => {
    const accounts = accountsBy(host.runner)
    const mark = async () => (await accounts.read('bob'))?.mark
    const before = await mark()
    const bob = host.accounts.get('bob')!
    bob.groups = ['sudo']
    bob.shell = '/bin/sh'
    await host.write()
    expect(await mark()).toBe(before)
    bob.password = 'another'
    await host.write()
    const after = await mark()
    expect(after).not.toBe(before)
    bob.uid = 4242
    await host.write()
    expect(await mark()).not.toBe(after)
  })

  it.each(['passwd', 'shadow', 'group'])(
    'accounts are not reported as deleted or changed when a file cannot be read: %s',
    async (name) => {
      // A file that cannot be read says nothing about accounts: here a folder replaces it.
      await rm(join(host.etc, name))
      await mkdir(join(host.etc, name))
      await expect(accountsBy(host.runner).read('alice')).rejects.toThrow('is a folder, not a regular file')
    },
  )

  it('accounts are not reported as deleted when there is no passwd file', async () => {
    await rm(join(host.etc, 'passwd'))
    await expect(accountsBy(host.runner).read('alice')).rejects.toThrow('ENOENT')
  })
})

describe('accounts of a directory', () => {
  let host: FakeHost
  beforeEach(async () => {
    host = await createFakeHost()
    await writeFile(join(host.etc, 'nsswitch.conf'), 'passwd: files sss\ngroup: files sss\n')
  })
  afterEach(() => host.remove())

  // As getent(1) and id(1) print it, the newline included.
  const directory: Record<string, string> = {
    'getent passwd -- Carol@CORP': 'carol@corp.example:*:70001:70000:Carol C:/home/carol:/bin/bash\n',
    'getent passwd -- dave': 'dave:*:70002:70000::/home/dave:/bin/bash\n',
    'getent passwd -- 70001': 'carol@corp.example:*:70001:70000:Carol C:/home/carol:/bin/bash\n',
    'getent shadow -- dave': 'dave:!:19000::::::\n',
    'getent group -- sudo domain admins': 'sudo:x:27:alice\ndomain admins:*:70512:carol@corp.example\n',
    'id -G -- carol@corp.example': '70000 70512\n',
    'id -G -- dave': '70000\n',
    'id -G -- bob': '1001 70512\n',
  }
  const says = (exitCode: number | undefined, stdout = ''): CommandResult => ({
    exitCode,
    stdout,
    stderr: '',
  })
  let calls: string[]
  // The questions that begin with one of these are not answered so.
  let otherwise: Record<string, CommandResult | Error>
  beforeEach(() => {
    calls = []
    otherwise = {}
  })
  const runner: CommandRunner = {
    run(program, args): Promise<CommandResult> {
      const question = [program, ...args].join(' ')
      calls.push(question)
      const [, other] = Object.entries(otherwise).find(([begin]) => question.startsWith(begin)) ?? []
      if (other instanceof Error) return Promise.reject(other)
      const stdout = directory[question]
      if (other || stdout !== undefined) return Promise.resolve(other ?? says(0, stdout))
      return Promise.resolve(says(program === 'id' ? 1 : 2))
    },
  }
  const timedOut = new CommandFailed('getent', 'timed-out', '10000 ms')
  const read = (name: string) => createAccounts({ runner, adminGroups, markKey, etc: host.etc }).read(name)

  it('an account of a directory has the name that NSS returns, and its login shell', async () => {
    expect(await read('Carol@CORP')).toMatchObject({
      name: 'carol@corp.example',
      source: 'directory',
      role: 'admin',
      hasLoginShell: true,
      locked: false,
    })
  })

  it('an account of a directory is locked where the directory says so', async () => {
    expect(await read('dave')).toMatchObject({ role: 'viewer', locked: true })
  })

  it('a directory is asked for 10 s in all', async () => {
    const limits: number[] = []
    const slow: CommandRunner = {
      run: async (program, args, options) => {
        limits.push(options.timeoutMs)
        const since = performance.now()
        await expect.poll(() => performance.now() - since, { interval: 2 }).toBeGreaterThan(5)
        return runner.run(program, args, options)
      },
    }
    await createAccounts({ runner: slow, adminGroups, markKey, etc: host.etc }).read('dave')
    const [passwd = 0, shadow = 0, id = 0, group = 0] = limits
    expect(passwd).toBeLessThanOrEqual(10_000)
    expect(shadow).toBeLessThanOrEqual(passwd - 5)
    expect(id).toBeLessThanOrEqual(shadow - 5)
    expect(group).toBeLessThanOrEqual(shadow - 5)
  })

  it('an account of a directory is not found by its uid', async () =>
    expect(await read('70001')).toBeUndefined())

  it('a directory may add memberships to local users', async () => {
    expect(await read('bob')).toMatchObject({ source: 'local', role: 'admin' })
  })

  it('accounts are not reported as deleted when getent fails or is killed', async () => {
    for (const failure of [says(1), says(3), says(127), says(undefined)]) {
      otherwise = { 'getent passwd': failure }
      await expect(read('dave')).rejects.toThrow(CommandFailed)
      otherwise = { 'getent shadow': failure }
      await expect(read('dave')).rejects.toThrow(CommandFailed)
    }
    otherwise = { 'getent passwd': says(2) }
    expect(await read('dave')).toBeUndefined()
  })

  it('users are not reported as non-administrators when id or getent fails or is killed', async () => {
    for (const failure of [says(1), says(undefined), says(1, '70000\n')]) {
      otherwise = { id: failure }
      await expect(read('Carol@CORP')).rejects.toThrow(CommandFailed)
      expect(await read('bob')).toMatchObject({ role: 'viewer', isRoleKnown: false })
      otherwise = { 'getent group': failure }
      expect(await read('bob')).toMatchObject({ role: 'viewer', isRoleKnown: false })
    }
  })

  it('a directory that knows only some of the administrator groups is trusted', async () => {
    otherwise = { 'getent group': says(2, 'domain admins:*:70512:\n') }
    expect(await read('bob')).toMatchObject({ role: 'admin', isRoleKnown: true, roleSource: 'directory' })
  })

  it('without an answer of the directory local accounts are as in the files, and no program is started', async () => {
    otherwise = { getent: timedOut, id: timedOut }
    const accounts = createAccounts({ runner, adminGroups, markKey, etc: host.etc })
    expect(accounts.readLocal().find('locked')).toMatchObject({
      locked: true,
      role: 'viewer',
      isRoleKnown: false,
    })
    expect(accounts.readLocal().find('alice')).toMatchObject({
      role: 'admin',
      isRoleKnown: true,
      roleSource: 'local',
    })
    expect(accounts.readLocal().find('dave')).toBeUndefined()
    expect(calls).toEqual([])
  })
})
