import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../system/clock.ts'
import { reasonToEnd } from './account-watch.ts'
import type { Accounts } from './accounts.ts'
import type { SessionRecord } from './session-store.ts'
import type { SessionCaller, Sessions, TokenPair } from './sessions.ts'

/** What a caller may do with sessions: with its own everything, with others' only as an administrator. */
export interface SessionAccess {
  /** @throws AppError Unauthenticated */
  renew(refreshToken: string, isExtended: boolean): Promise<TokenPair>
  logout(caller: SessionCaller): void
  list(caller: SessionCaller): {
    items: SessionView[]
    listmeta: { continue: string; count: number; limit: number; offset: number }
  }
  /** @throws AppError NotFound, Forbidden */
  end(caller: SessionCaller, uid: string): void
}

/** A session as the API shows it; times RFC 3339. */
export interface SessionView {
  readonly uid: string
  readonly userName: string
  readonly role: 'admin' | 'viewer'
  readonly address: string
  readonly creationTimestamp: string
  readonly lastRenewalTimestamp: string
  readonly expirationTimestamp: string
  readonly isCurrent: boolean
}

// A list has at most this many items; the way to the next page comes with the list queries.
const pageSize = 50

export function createSessionAccess({
  sessions,
  accounts,
  clock,
}: {
  sessions: Sessions
  accounts: Accounts
  clock: Clock
}): SessionAccess {
  return {
    renew: (token, isExtended) =>
      sessions.renew(token, isExtended, async (session) => {
        const account = await accounts.read(session.userName)
        const reason = reasonToEnd(session, account, clock.now())
        if (reason) sessions.end([session], reason)
        return reason ? undefined : account
      }),

    logout({ sessionUid }) {
      const session = sessions.find(sessionUid)
      if (session) sessions.end([session], 'logout')
    },

    list(caller) {
      const items = sessions
        .list()
        .filter(({ userName }) => caller.role === 'admin' || userName === caller.userName)
        .sort((a, b) => b.renewedAt - a.renewedAt)
      const page = items.slice(0, pageSize).map((session) => viewOf(session, caller))
      return {
        items: page,
        listmeta: { continue: '', count: items.length, limit: page.length, offset: page.length },
      }
    },

    end(caller, uid) {
      const session = sessions.find(uid)
      if (session && caller.role !== 'admin' && session.userName !== caller.userName) {
        throw new AppError('Forbidden', 'only an administrator may end the sessions of others')
      }
      if (!session) throw new AppError('NotFound', `there is no session ${uid}`)
      sessions.end([session], `ended by ${caller.userName}`)
    },
  }
}

const viewOf = (session: SessionRecord, caller: SessionCaller): SessionView => ({
  uid: session.uid,
  userName: session.userName,
  role: session.role,
  address: session.address,
  creationTimestamp: new Date(session.createdAt).toISOString(),
  lastRenewalTimestamp: new Date(session.renewedAt).toISOString(),
  expirationTimestamp: new Date(session.expiresAt).toISOString(),
  isCurrent: session.uid === caller.sessionUid,
})
