import { describe, expect, it } from 'vitest'
import type { Account } from '../../../src/auth/accounts.ts'
import { reasonInFiles, reasonOfTime, reasonToEnd } from '../../../src/auth/sessions.ts'
import type { SessionRecord } from '../../../src/auth/session-store.ts'
import { bob as account, bobsSession as session } from '../../support/test-account.ts'
import { minuteMs } from '../../support/turning-clock.ts'

const byDirectory = { role: 'admin', roleSource: 'directory' } as const
const silent = { isRoleKnown: false }
const left = 'left the administrators'

describe('reasonToEnd', () => {
  it.each<[string, Partial<Account> | undefined, Partial<SessionRecord>, string | undefined]>([
    ['an account that is as it was', {}, {}, undefined],
    ['an account that is gone', undefined, {}, 'account deleted'],
    ['a locked account', { locked: true }, {}, 'account locked'],
    ['an account that expires this very moment', { expiresAt: 1_000 }, {}, 'account expired'],
    ['an account that expires later', { expiresAt: 1_001 }, {}, undefined],
    ['an account of 1970, which chage -E 0 sets', { expiresAt: 0 }, {}, 'account expired'],
    [
      'an account whose shell is no longer a login shell',
      { hasLoginShell: false },
      {},
      'shell is not in /etc/shells',
    ],
    ['another password or uid', { mark: 'other' }, {}, 'password changed'],
    ['an administrator who still is one', { role: 'admin' }, { role: 'admin' }, undefined],
    ['an administrator who left the groups', {}, { role: 'admin' }, left],
    ['an administrator by directory who left its groups', {}, byDirectory, left],
    ['an administrator by directory, which is silent', silent, byDirectory, undefined],
    ['an administrator by file who left, a directory being silent', silent, { role: 'admin' }, left],
    ['a viewer who became an administrator', { role: 'admin' }, {}, undefined],
  ])('a session has its reason to end: %s', (_what, change, record, reason) => {
    const now = change === undefined ? undefined : { ...account, ...change }
    expect(reasonToEnd({ ...session, ...record }, now, 1_000)).toBe(reason)
  })
})

describe('reasonInFiles', () => {
  it.each<[string, Account | undefined, SessionRecord['accountSource'], string | undefined]>([
    ['a local account that is in them', account, 'local', undefined],
    ['a local account that is not in them any more', undefined, 'local', 'account deleted'],
    ['an account of a directory, of which they know nothing', undefined, 'directory', undefined],
    [
      'one that is in them by now, and is locked',
      { ...account, locked: true },
      'directory',
      'account locked',
    ],
  ])('a session has its reason to end by the files: %s', (_what, local, accountSource, reason) =>
    expect(reasonInFiles({ ...session, accountSource }, local, 1_000)).toBe(reason),
  )
})

describe('reasonOfTime', () => {
  const at = 100 * minuteMs
  const record = { ...session, createdAt: at, renewedAt: at, expiresAt: at + 120 * minuteMs }
  it.each<[string, number, string | undefined]>([
    ['at the login', at, undefined],
    ['a moment before the end', at + 120 * minuteMs - 1, undefined],
    ['at the end', at + 120 * minuteMs, 'expired'],
    ['with a clock set back by 5 minutes', at - 5 * minuteMs, undefined],
    ['with a clock set back by more', at - 5 * minuteMs - 1, 'clock set back'],
  ])('a session has its reason to end by the time %s', (_what, now, reason) =>
    expect(reasonOfTime(record, now)).toBe(reason),
  )

  it('a clock set back before the last renewal ends the session', () => {
    const renewed = { ...record, renewedAt: at + 60 * minuteMs }
    expect(reasonOfTime(renewed, at)).toBe('clock set back')
  })
})
