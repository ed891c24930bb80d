import { describe, expect, it } from 'vitest'
import { createAccountWatch, reasonToEnd } from '../../src/auth/account-watch.ts'
import type { Account } from '../../src/auth/accounts.ts'
import type { SessionRecord } from '../../src/auth/session-store.ts'
import type { Sessions } from '../../src/auth/sessions.ts'
import { captureLog } from '../support/https-server.ts'
import { createTurningClock } from '../support/turning-clock.ts'

const account: Account = {
  name: 'bob',
  role: 'viewer',
  isRoleKnown: true,
  source: 'local',
  locked: false,
  expiresAt: undefined,
  hasLoginShell: true,
  mark: 'mark',
}
const session: SessionRecord = {
  uid: 'uid',
  userName: 'bob',
  role: 'viewer',
  address: '192.0.2.1',
  createdAt: 0,
  renewedAt: 0,
  expiresAt: 10_000,
  accountMark: 'mark',
  refreshHash: '',
  previousHash: null,
  generation: 0,
}

describe('reasonToEnd', () => {
  it.each<[string, Partial<Account> | undefined, Partial<SessionRecord>, string | undefined]>([
    ['an account that is as it was', {}, {}, undefined],
    ['an account that is gone', undefined, {}, 'account deleted'],
    ['a locked account', { locked: true }, {}, 'account locked'],
    ['an account that expires this very moment', { expiresAt: 1_000 }, {}, 'account expired'],
    ['an account that expires later', { expiresAt: 1_001 }, {}, undefined],
    ['an account of 1970, which chage -E 0 sets', { expiresAt: 0 }, {}, 'account expired'],
    ['another password or uid', { mark: 'other' }, {}, 'password changed'],
    ['an administrator who still is one', { role: 'admin' }, { role: 'admin' }, undefined],
    ['an administrator who left the groups', {}, { role: 'admin' }, 'left the administrators'],
    ['a viewer who became an administrator', { role: 'admin' }, {}, undefined],
  ])('of %s', (_what, change, record, reason) => {
    const now = change === undefined ? undefined : { ...account, ...change }
    expect(reasonToEnd({ ...session, ...record }, now, 1_000)).toBe(reason)
  })
})

function setUp(records: SessionRecord[], accounts: Record<string, Account | Error>, etc?: string) {
  const { log, texts } = captureLog()
  const ended: string[] = []
  const asked: string[] = []
  let list = records
  const sessions: Pick<Sessions, 'list' | 'end' | 'expire'> = {
    list: () => list,
    end: (gone, reason) => {
      list = list.filter((each) => !gone.includes(each))
      ended.push(...gone.map(({ uid }) => `${uid}: ${reason}`))
    },
    expire: () => undefined,
  }
  const watch = createAccountWatch({
    accounts: {
      isLocal: () => true,
      read: (name) => {
        asked.push(name)
        const found = accounts[name]
        return found instanceof Error ? Promise.reject(found) : Promise.resolve(found)
      },
    },
    sessions: sessions as Sessions,
    clock: createTurningClock(1_000),
    log,
    ...(etc === undefined ? {} : { etc }),
  })
  return { watch, ended, asked, texts }
}

describe('check', () => {
  it('asks once for each user who has sessions', async () => {
    const records = ['1', '2', '3'].map((uid) => ({ ...session, uid }))
    const { watch, asked } = setUp(records, { bob: account })
    await watch.check()
    expect(asked).toEqual(['bob'])
  })

  it('ends the sessions that may not go on, and no others', async () => {
    const { watch, ended } = setUp(
      [
        { ...session, uid: 'old', accountMark: 'before' },
        { ...session, uid: 'good' },
        { ...session, uid: 'strange', userName: 'carol' },
      ],
      { bob: account },
    )
    await watch.check()
    expect(ended).toEqual(['old: password changed', 'strange: account deleted'])
  })

  it('lets sessions go on when the account cannot be looked up, and looks at the others', async () => {
    const { watch, ended, texts } = setUp([session, { ...session, uid: 'c', userName: 'carol' }], {
      bob: new Error('getent: timed-out'),
    })
    await watch.check()
    expect(ended).toEqual(['c: account deleted'])
    expect(texts()).toEqual([
      'the account could not be looked up; its sessions go on; see what NSS says with: getent passwd <user>',
    ])
  })
})

it('a folder that cannot be watched is reported, and is no reason not to start', () => {
  const { watch, texts } = setUp([], {}, '/no/such/folder')
  watch.start()
  watch.stop()
  expect(texts()).toEqual([
    'account files are not watched; they are looked at every minute; make room for watches with: sysctl fs.inotify.max_user_instances=1024',
  ])
})
