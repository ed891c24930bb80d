import { createSecretKey } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLocalAccounts, type LocalAccounts } from '../../src/auth/local-accounts.ts'

describe('accounts of the local files', () => {
  let etc: string
  let accounts: LocalAccounts
  const texts = {
    passwd: 'bob:x:1000:1000::/home/bob:/bin/bash\n',
    shadow: 'bob:$y$right:20000:0:99999:7:::\n',
    group: 'sudo:x:27:carol\n',
    shells: '/bin/bash\n',
    'nsswitch.conf': 'group: files\n',
  }
  beforeEach(async () => {
    etc = await mkdtemp(join(tmpdir(), 'edgehostd-etc-'))
    for (const [name, text] of Object.entries(texts)) await writeFile(join(etc, name), text)
    const markKey = createSecretKey(Buffer.alloc(32, 3))
    accounts = createLocalAccounts({ adminGroups: ['sudo'], allowAnyShell: false, markKey, etc })
    expect(accounts.find('bob')).toMatchObject({ role: 'viewer', isRoleKnown: true, locked: false })
  })
  afterEach(() => rm(etc, { recursive: true }))

  it('are read again until the last change is some seconds ago, then no more', async () => {
    expect(accounts.find('bob')).not.toBe(accounts.find('bob'))
    await expect
      .poll(() => accounts.find('bob') === accounts.find('bob'), { timeout: 10_000, interval: 50 })
      .toBe(true)
    await writeFile(join(etc, 'group'), texts.group)
    expect(accounts.find('bob')).not.toBe(accounts.find('bob'))
  })

  // Each text is as long as the one before.
  const changes = [
    ['passwd', /\/bin\/bash/, '/bin/dash', { hasLoginShell: false }],
    ['shadow', /\$y\$right/, '!y$right', { locked: true }],
    ['group', /27:carol/, '027:bob,', { role: 'admin' }],
    ['shells', /bash/, 'dash', { hasLoginShell: false }],
    ['nsswitch.conf', /files/, 'ldap ', { isRoleKnown: false }],
  ] as const

  it.each(changes)('are seen at once when %s is written in place', async (name, from, to, change) => {
    const text = texts[name].replace(from, to)
    expect(text).toHaveLength(texts[name].length)
    await writeFile(join(etc, name), text)
    expect(accounts.find('bob')).toMatchObject(change)
    await writeFile(join(etc, name), texts[name])
    expect(accounts.find('bob')).toMatchObject({ role: 'viewer', locked: false, hasLoginShell: true })
  })

  it.each(changes)('are seen at once when %s is replaced', async (name, from, to, change) => {
    await writeFile(join(etc, 'new'), (await readFile(join(etc, name), 'utf8')).replace(from, to))
    await rename(join(etc, 'new'), join(etc, name))
    expect(accounts.find('bob')).toMatchObject(change)
  })

  it('are gone with their line, and there with it', async () => {
    await writeFile(join(etc, 'passwd'), '')
    expect([accounts.has('bob'), accounts.find('bob')]).toEqual([false, undefined])
    await writeFile(join(etc, 'passwd'), texts.passwd)
    expect([accounts.has('bob'), accounts.find('bob')?.name]).toEqual([true, 'bob'])
  })

  it('say nothing where passwd is gone, and have no lock where shadow is', async () => {
    await rm(join(etc, 'shadow'))
    expect(accounts.find('bob')).toMatchObject({ locked: false })
    await rm(join(etc, 'passwd'))
    expect(() => accounts.find('bob')).toThrow('ENOENT')
    await writeFile(join(etc, 'passwd'), texts.passwd)
    expect(accounts.find('bob')?.name).toBe('bob')
  })
})
