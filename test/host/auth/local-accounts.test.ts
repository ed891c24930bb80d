import { createSecretKey } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAccountFiles, type AccountFiles } from '../../../src/auth/accounts.ts'

describe('accounts of the local files', () => {
  let etc: string
  let accounts: AccountFiles
  const find = (name: string) => accounts.read().find(name)
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
    accounts = createAccountFiles({ adminGroups: ['sudo'], allowAnyShell: false, markKey, etc })
    expect(find('bob')).toMatchObject({ role: 'viewer', isRoleKnown: true, locked: false })
  })
  afterEach(() => rm(etc, { recursive: true }))

  // Each text is as long as the one before.
  const changes = [
    ['passwd', /\/bin\/bash/, '/bin/dash', { hasLoginShell: false }],
    ['shadow', /\$y\$right/, '!y$right', { locked: true }],
    ['group', /27:carol/, '027:bob,', { role: 'admin' }],
    ['shells', /bash/, 'dash', { hasLoginShell: false }],
    ['nsswitch.conf', /files/, 'ldap ', { isRoleKnown: false }],
  ] as const

  it.each(changes)(
    'a local account changes at once when %s is written in place',
    async (name, from, to, change) => {
      const text = texts[name].replace(from, to)
      expect(text).toHaveLength(texts[name].length)
      await writeFile(join(etc, name), text)
      expect(find('bob')).toMatchObject(change)
      await writeFile(join(etc, name), texts[name])
      expect(find('bob')).toMatchObject({ role: 'viewer', locked: false, hasLoginShell: true })
    },
  )

  it.each(changes)('a local account changes at once when %s is replaced', async (name, from, to, change) => {
    await writeFile(join(etc, 'new'), (await readFile(join(etc, name), 'utf8')).replace(from, to))
    await rename(join(etc, 'new'), join(etc, name))
    expect(find('bob')).toMatchObject(change)
  })

  it('a local account exists exactly while its line does', async () => {
    await writeFile(join(etc, 'passwd'), '')
    expect([accounts.has('bob'), find('bob')]).toEqual([false, undefined])
    await writeFile(join(etc, 'passwd'), texts.passwd)
    expect([accounts.has('bob'), find('bob')?.name]).toEqual([true, 'bob'])
  })

  it('there is no local account without passwd, and no lock without shadow', async () => {
    await rm(join(etc, 'shadow'))
    expect(find('bob')).toMatchObject({ locked: false })
    await rm(join(etc, 'passwd'))
    expect(() => find('bob')).toThrow('ENOENT')
    await writeFile(join(etc, 'passwd'), texts.passwd)
    expect(find('bob')?.name).toBe('bob')
  })
})
