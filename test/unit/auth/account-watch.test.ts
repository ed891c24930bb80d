import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createAccountWatch } from '../../../src/auth/account-watch.ts'
import type { Account } from '../../../src/auth/accounts.ts'
import type { SessionRecord } from '../../../src/auth/session-store.ts'
import type { Sessions } from '../../../src/auth/sessions.ts'
import { captureLog } from '../../support/https-server.ts'
import { bob as account, bobsSession as session } from '../../support/test-account.ts'
import { createTurningClock } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

const dave: Account = { ...account, name: 'dave', source: 'directory' }
const daves: SessionRecord = { ...session, userName: 'dave', accountSource: 'directory' }

/** @param local what the files say; an Error where they cannot be read */
function setUp(records: SessionRecord[], local: Record<string, Account> | Error, etc?: string) {
  const { log, texts, lines } = captureLog()
  const ended: string[] = []
  const asked: string[] = []
  const answers = new Map<string, { give: (account?: Account) => void; fail: () => void }>()
  let list = records
  const sessions: Pick<Sessions, 'list' | 'end' | 'expire'> = {
    list: () => list,
    end(gone, reason) {
      list = list.filter((each) => !gone.includes(each))
      ended.push(...gone.map(({ uid }) => `${uid}: ${reason}`))
      return true
    },
    expire: () => undefined,
  }
  const clock = createTurningClock(1_000)
  const watch = createAccountWatch({
    accounts: {
      isLocal: () => true,
      readLocal: () => {
        if (local instanceof Error) throw local
        return { find: (name) => local[name] }
      },
      read: (name) => {
        asked.push(name)
        return new Promise((give, reject) =>
          answers.set(name, { give, fail: () => reject(new Error('getent: timed-out')) }),
        )
      },
    },
    sessions: sessions as Sessions,
    clock,
    log,
    ...(etc === undefined ? {} : { etc }),
  })
  return {
    watch,
    clock,
    ended,
    asked,
    texts,
    lines,
    add: (record: SessionRecord) => void (list = [...list, record]),
    answer: (name: string, found?: Account) => answers.get(name)?.give(found),
    fail: (name: string) => answers.get(name)?.fail(),
  }
}

/** Sessions of directory users of these names. */
const sessionsOf = (...names: string[]) => names.map((name) => ({ ...daves, uid: name, userName: name }))

describe('a check of the account files', () => {
  it('a check of the files ends the sessions of changed accounts, and no others, without a call to NSS', () => {
    const { watch, ended, asked } = setUp(
      [
        { ...session, uid: 'old', accountMark: 'before' },
        { ...session, uid: 'good' },
        { ...session, uid: 'gone', userName: 'carol' },
        { ...daves, uid: 'directory' },
      ],
      { bob: account },
    )
    watch.start()
    watch.stop()
    expect(ended).toEqual(['old: password changed', 'gone: account deleted'])
    expect(asked).toEqual([])
  })

  it('a check ends the sessions of a locked account while a directory does not answer for others', () => {
    const { watch, ended, asked } = setUp([...sessionsOf('d1', 'd2', 'd3', 'd4', 'd5'), session], {
      bob: { ...account, locked: true },
    })
    void watch.check()
    expect(ended).toEqual(['uid: account locked'])
    expect(asked).toEqual(['d1', 'd2', 'd3', 'd4'])
  })

  it('a check ends the sessions of an administrator by file when a directory cannot be asked for the role', () => {
    const { watch, ended, asked } = setUp(
      [
        { ...session, uid: 'by file', role: 'admin' },
        { ...session, uid: 'by directory', role: 'admin', roleSource: 'directory' },
      ],
      { bob: { ...account, isRoleKnown: false } },
    )
    void watch.check()
    expect(ended).toEqual(['by file: left the administrators'])
    expect(asked).toEqual(['bob'])
  })

  it('a check needs no answer of NSS for a local viewer or an administrator by file', async () => {
    const { watch, asked, ended } = setUp(
      [session, { ...session, uid: 'chief', userName: 'chief', role: 'admin' }],
      { bob: { ...account, isRoleKnown: false }, chief: { ...account, role: 'admin' } },
    )
    await watch.check()
    expect([asked, ended]).toEqual([[], []])
  })

  it('a check ends no session when the files cannot be read', async () => {
    const carols = { ...session, uid: 'c', userName: 'carol' }
    const { watch, ended, asked, texts } = setUp([session, carols], new Error('EIO'))
    await watch.check()
    expect([ended, asked]).toEqual([[], []])
    expect(texts()).toEqual([
      'local accounts cannot be read, all sessions continue; see ls -l /etc/passwd /etc/group',
    ])
  })
})

describe('a round of calls to NSS', () => {
  it('a round asks NSS once for each user, and ends the sessions of changed accounts', async () => {
    const records = ['1', '2', '3'].map((uid) => ({ ...daves, uid }))
    const { watch, asked, ended, answer } = setUp([...records, ...sessionsOf('erin')], {})
    const checked = watch.check()
    expect(asked).toEqual(['dave', 'erin'])
    answer('dave', { ...dave, mark: 'other' })
    answer('erin')
    await checked
    expect(ended.toSorted()).toEqual([
      '1: password changed',
      '2: password changed',
      '3: password changed',
      'erin: account deleted',
    ])
  })

  it('a round ends no session when NSS does not answer', async () => {
    const { watch, ended, texts, fail } = setUp([daves], {})
    const checked = watch.check()
    fail('dave')
    await checked
    expect(ended).toEqual([])
    expect(texts()).toEqual([
      'the account could not be looked up; its sessions continue; see what NSS returns with: getent passwd <user>',
    ])
  })

  it('a round continues with the other users while one call hangs', async () => {
    const names = ['hangs', 'd1', 'd2', 'd3', 'd4', 'd5']
    const { watch, ended, asked, answer, fail } = setUp(sessionsOf(...names), {})
    const checked = watch.check()
    for (const name of names.slice(1)) {
      await waitFor(() => expect(asked).toContain(name))
      answer(name)
    }
    await waitFor(() => expect(ended).toHaveLength(5))
    fail('hangs')
    await checked
    expect(ended).not.toContain('hangs: account deleted')
  })

  it('a round ends after half a minute; the next one begins with the users that were not asked', async () => {
    const names = ['d1', 'd2', 'd3', 'd4', 'd5', 'd6']
    const { watch, asked, clock, fail, lines } = setUp(sessionsOf(...names), {})
    const first = watch.check()
    clock.turn(30_000)
    for (const name of names) fail(name)
    await first
    expect(asked).toEqual(['d1', 'd2', 'd3', 'd4'])
    expect(lines).toContainEqual(expect.objectContaining({ accounts: 2 }))
    void watch.check()
    expect(asked.slice(4)).toEqual(['d5', 'd6', 'd1', 'd2'])
  })

  it('a round is not begun twice: a check during a round waits for it', async () => {
    const { watch, asked, answer } = setUp([daves], {})
    const both = [watch.check(), watch.check()]
    answer('dave', dave)
    await Promise.all(both)
    expect(asked).toEqual(['dave'])
  })

  it('a round does not end a session that began after the call', async () => {
    const { watch, ended, add, answer } = setUp([daves], {})
    const checked = watch.check()
    add({ ...daves, uid: 'new', accountMark: 'other' })
    answer('dave', { ...dave, mark: 'changed' })
    await checked
    expect(ended).toEqual(['uid: password changed'])
  })
})

describe('the watch of the files', () => {
  it('the files are watched before they are first read, so that no change is missed', async () => {
    const etc = await mkdtemp(join(tmpdir(), 'edgehostd-watch-'))
    const looks = [account]
    const local = {
      // Locked right after the first read.
      get bob() {
        writeFileSync(join(etc, 'shadow'), '')
        return looks.pop() ?? { ...account, locked: true }
      },
    }
    const { watch, ended } = setUp([session], local, etc)
    watch.start()
    expect(ended).toEqual([])
    await waitFor(() => expect(ended).toEqual(['uid: account locked']), { timeout: 60_000 })
    watch.stop()
    await rm(etc, { recursive: true })
  })

  it('a watch that cannot begin is reported, and the daemon starts', () => {
    const { watch, texts } = setUp([], {}, '/no/such/folder')
    watch.start()
    watch.stop()
    expect(texts()).toEqual([
      'account files are not watched; they are checked every minute; allow more watches with: sysctl fs.inotify.max_user_instances=1024',
    ])
  })
})
