import type { Account } from '../../src/auth/accounts.ts'
import type { SessionRecord } from '../../src/auth/session-store.ts'

/** A local account with nothing special about it. */
export const bob: Account = {
  name: 'bob',
  role: 'viewer',
  isRoleKnown: true,
  source: 'local',
  roleSource: 'local',
  locked: false,
  expiresAt: undefined,
  hasLoginShell: true,
  mark: 'mark',
}

/** A session of this account, from 1970 on. */
export const bobsSession: SessionRecord = {
  uid: 'uid',
  userName: 'bob',
  role: 'viewer',
  accountSource: 'local',
  roleSource: 'local',
  address: '192.0.2.1',
  createdAt: 0,
  renewedAt: 0,
  expiresAt: 10_000,
  accountMark: 'mark',
  refreshHash: '',
  previousHash: null,
  generation: 0,
}
