import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAccounts } from '../../src/auth/accounts.ts'
import { createRunner, type CommandResult, type CommandRunner } from '../../src/system/runner.ts'
import { createFakeHost, type FakeHost } from '../support/fake-host.ts'

const markKey = Buffer.alloc(32, 3)
const adminGroups = ['sudo', 'domain admins']

describe('the accounts of this machine', () => {
  const accounts = createAccounts({ runner: createRunner(), adminGroups, markKey })

  it('hold root, who is an administrator by uid', async () => {
    expect(await accounts.read('root')).toMatchObject({ name: 'root', role: 'admin', source: 'local' })
  })

  it.each(['no-such-user', '0', '+0', ' 0', '00', '0x0', 'root:x', 'ROOT', 'root ', '*', '', '-x', '--help'])(
    'do not hold %j',
    async (name) => expect(await accounts.read(name)).toBeUndefined(),
  )

  it('have marks that are no password hash', async () => {
    const mark = (await accounts.read('root'))?.mark ?? ''
    expect(mark).toMatch(/^[\w-]{22}$/)
    const other = createAccounts({ runner: createRunner(), adminGroups, markKey: Buffer.alloc(32, 4) })
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

  it('are read without a child process', async () => {
    expect(await accountsBy(host.runner).read('alice')).toMatchObject({ role: 'admin', hasLoginShell: true })
    expect(await accountsBy(host.runner).read('nobody')).toBeUndefined()
    expect(host.calls).toEqual([])
  })

  it('are told apart by role, shell, lock and expiry', async () => {
    const accounts = accountsBy(host.runner)
    expect(await accounts.read('bob')).toMatchObject({ role: 'viewer', locked: false, expiresAt: undefined })
    expect(await accounts.read('service')).toMatchObject({ hasLoginShell: false })
    expect(await accounts.read('locked')).toMatchObject({ locked: true })
    expect(await accounts.read('gone')).toMatchObject({ expiresAt: 0 })
  })

  it('change their mark with password and uid, and with nothing else', async () => {
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
    'that cannot be read are not said to be gone or changed: %s',
    async (name) => {
      // A folder in the place of the file fails as a bad disk or a process without descriptors does.
      await rm(join(host.etc, name))
      await mkdir(join(host.etc, name))
      await expect(accountsBy(host.runner).read('alice')).rejects.toThrow('EISDIR')
    },
  )

  it('without a passwd file are not said to be gone', async () => {
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
  const runner: CommandRunner = {
    run(program, args): Promise<CommandResult> {
      const stdout = directory[[program, ...args].join(' ')]
      return Promise.resolve({
        exitCode: stdout === undefined ? 2 : 0,
        stdout: stdout ?? '',
        stderr: '',
        durationMs: 1,
      })
    },
  }
  const read = (name: string) => createAccounts({ runner, adminGroups, markKey, etc: host.etc }).read(name)

  it('have the name that NSS returns, and their login shell', async () => {
    expect(await read('Carol@CORP')).toMatchObject({
      name: 'carol@corp.example',
      source: 'directory',
      role: 'admin',
      hasLoginShell: true,
      locked: false,
    })
  })

  it('are locked where the directory says so', async () => {
    expect(await read('dave')).toMatchObject({ role: 'viewer', locked: true })
  })

  it('are not found by their uid', async () => expect(await read('70001')).toBeUndefined())

  it('may bring memberships to local users', async () => {
    expect(await read('bob')).toMatchObject({ source: 'local', role: 'admin' })
  })
})
