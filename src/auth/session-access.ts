import { type MemoryField, listInMemory } from '../lists/memory.ts'
import type { ListResource } from '../lists/resource.ts'
import { SessionItem } from './schemas.ts'
import type { SessionRecord } from './session-store.ts'
import type { Role } from '../base/role.ts'
import { AppError } from '../errors/app-error.ts'
import { seeDisk } from '../errors/advice.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Page } from '../lists/page.ts'
import type { ListQuery } from '../lists/query.ts'
import type { Clock } from '../system/clock.ts'
import type { SessionCaller } from './tokens.ts'
import { reasonInFiles, reasonToEnd, type Sessions, type TokenPair } from './sessions.ts'
import type { Accounts } from './accounts.ts'

/** Fields for queries of the list of sessions. */
export const sessionList: ListResource<MemoryField<SessionRecord>> = {
  name: 'sessions',
  key: 'uid',
  fields: {
    uid: { type: 'text', read: ({ uid }) => uid },
    userName: { type: 'text', read: ({ userName }) => userName },
    role: { type: 'text', read: ({ role }) => role },
    address: { type: 'text', read: ({ address }) => address },
    creationTimestamp: { type: 'time', read: ({ createdAt }) => createdAt },
    lastRenewalTimestamp: { type: 'time', read: ({ renewedAt }) => renewedAt },
    expirationTimestamp: { type: 'time', read: ({ expiresAt }) => expiresAt },
  },
  // Not by renewal: a session that is renewed while a client pages would be missed.
  defaultOrder: [{ path: 'creationTimestamp', direction: -1 }],
  item: SessionItem,
}

/** The caller of a session request; root on the local socket has no session of its own. */
interface SessionReader {
  readonly userName: string
  readonly role: Role
  readonly sessionUid: string | undefined
}

/** Sessions for a caller: everything with its own, and with others' only as an administrator. */
export interface SessionAccess {
  /** @throws AppError Unauthenticated */
  renew(refreshToken: string, isExtended: boolean): Promise<TokenPair>
  /** The user of a cached refresh token; its code is not verified. */
  holderOfRefresh(refreshToken: string): string | undefined
  /** The user of a pair of tokens. */
  callerOf(tokens: TokenPair): SessionCaller | undefined
  logout(caller: Pick<SessionCaller, 'sessionUid'>): void
  list(caller: SessionReader, query: ListQuery): Page<SessionItem>
  /** @throws AppError NotFound, Forbidden */
  end(caller: SessionReader, uid: string): void
}

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
        const { userName } = session
        // The files first: a locked local account must end even when a directory does not answer.
        const early = reasonInFiles(session, accounts.readLocal().find(userName), clock.now())
        const account = early === undefined ? await accounts.read(userName) : undefined
        const reason = early ?? reasonToEnd(session, account, clock.now())
        if (reason) sessions.end([session], reason, true)
        return reason ? undefined : account
      }),

    holderOfRefresh: (token) => sessions.holderOfRefresh(token),

    callerOf: ({ access }) => sessions.authenticate(access),

    logout({ sessionUid }) {
      const session = sessions.find(sessionUid)
      if (session) requireLasting(sessions.end([session], 'logout'))
    },

    list(caller, query) {
      const visible = sessions
        .list()
        .filter(({ userName }) => caller.role === 'admin' || userName === caller.userName)
      return listInMemory(visible, query, sessionList, (session) => viewOf(session, caller))
    },

    end(caller, uid) {
      const session = sessions.find(uid)
      if (session && caller.role !== 'admin' && session.userName !== caller.userName) {
        throw new AppError(generalErrors.Forbidden, 'only an administrator may end the sessions of others')
      }
      if (!session) throw new AppError(generalErrors.NotFound, `there is no session ${uid}`)
      requireLasting(sessions.end([session], `ended by ${caller.userName}`))
    },
  }
}

/** @throws AppError InsufficientStorage for sessions that are valid again after a restart */
function requireLasting(isLasting: boolean): void {
  if (!isLasting)
    throw new AppError(
      generalErrors.InsufficientStorage,
      `the session is ended until the daemon starts again, since nothing can be written: make room, then end it once more or wait a minute; ${seeDisk}`,
    )
}

const viewOf = (session: SessionRecord, caller: SessionReader): SessionItem => ({
  uid: session.uid,
  userName: session.userName,
  role: session.role,
  address: session.address,
  creationTimestamp: new Date(session.createdAt).toISOString(),
  lastRenewalTimestamp: new Date(session.renewedAt).toISOString(),
  expirationTimestamp: new Date(session.expiresAt).toISOString(),
  isCurrent: session.uid === caller.sessionUid,
})
