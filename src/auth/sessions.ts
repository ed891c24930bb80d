import { setBackMs } from '../base/time.ts'
import type { Account } from './accounts.ts'
import type { SessionRecord, SessionStore } from './session-store.ts'
import { hash, randomUUID, type KeyObject } from 'node:crypto'
import type { Role } from '../base/role.ts'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { isUnwritable } from '../store/unwritable.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import {
  createAcceptedTokens,
  type SessionCaller,
  type AccessTokens,
  makeRefreshToken,
  parseRefreshToken,
  sessionOfAccessToken,
  sessionOfRefreshToken,
} from './tokens.ts'
import type { AuthSettings } from './config.ts'

/**
 * Why the lifetime of a session is over; undefined when it is not. A session from a future time is over too: a clock
 * that is set back by years would add them to its lifetime.
 */
export function reasonOfTime(
  { createdAt, renewedAt, expiresAt }: SessionRecord,
  now: number,
): string | undefined {
  if (expiresAt <= now) return 'expired'
  return Math.max(createdAt, renewedAt) - setBackMs > now ? 'clock set back' : undefined
}

/** Why a session of this account has to end; undefined when it may continue. */
export function reasonToEnd(
  session: SessionRecord,
  account: Account | undefined,
  now: number,
): string | undefined {
  if (!account) return 'account deleted'
  if (account.locked) return 'account locked'
  if (account.expiresAt !== undefined && account.expiresAt <= now) return 'account expired'
  if (!account.hasLoginShell) return 'shell is not in /etc/shells'
  if (account.mark !== session.accountMark) return 'password changed'
  // A role from the local files is decided by them alone; there is no need to wait for a directory that may grant the
  // same role.
  const isRoleKnown = account.isRoleKnown || session.roleSource === 'local'
  if (session.role === 'admin' && account.role !== 'admin' && isRoleKnown) return 'left the administrators'
  return undefined
}

/**
 * Why a session has to end according to the local files alone, without waiting.
 * @param local the account in these files; a missing account counts as deleted, unless it came from a directory
 */
export function reasonInFiles(
  session: SessionRecord,
  local: Account | undefined,
  now: number,
): string | undefined {
  return local || session.accountSource === 'local' ? reasonToEnd(session, local, now) : undefined
}

/** Whether NSS is needed to decide on a session that the local files do not end. */
export const needsNss = (session: SessionRecord, local: Account | undefined) =>
  !local || (session.role === 'admin' && local.role !== 'admin')

/** The limits in the configuration. */
type TokenLifetimes = AuthSettings['tokens']

/** Tells whether a caller is affected; a caller on the local socket has no session. */
export type IsCallerGone = (caller: {
  readonly role: Role
  readonly sessionUid: string | undefined
}) => boolean

interface SessionsOptions extends TokenLifetimes {
  readonly store: SessionStore
  readonly accessTokens: AccessTokens
  readonly refreshKey: KeyObject
  readonly clock: Clock
  readonly log: Logger
  /** Called with sessions that the daemon ended on its own, all at once; never within a transaction. */
  readonly onEnded?: (sessions: readonly SessionRecord[], reason: string) => void
  /** Called when the session of callers has ended or is no longer an administrator's, for any cause. */
  readonly onCallersGone?: (isGone: IsCallerGone) => void
}

/** The tokens that a client gets for a login or a renewal. */
export interface TokenPair {
  readonly access: string
  readonly refresh: string
}

/** Sessions: created by a login, renewed with refresh tokens, ended by logout, time or a change of the account. */
export interface Sessions {
  /** Ends sessions of a user so that there is room for one more, those not renewed for longest first. */
  makeRoom(userName: string): void
  /** @param isKept whether it is stored, so that it survives a restart of the daemon */
  create(account: Account, address: string, isExtended: boolean, isKept?: boolean): TokenPair
  /** The user of an access token, or undefined. Called for every request. */
  authenticate(token: string): SessionCaller | undefined
  /**
   * The user of a valid access token that is the last one of its session or was seen before, without a signature check.
   */
  holderOf(accessToken: string): string | undefined
  /** The user of a current or previous refresh token, without a check of its code. */
  holderOfRefresh(refreshToken: string): string | undefined
  /**
   * Exchanges a refresh token for a new pair. For a short time the same old token gets the same new pair, since a reply
   * can be lost; later, an old token counts as stolen and ends the session.
   * @param readAccount returns the current account; undefined when its sessions have to end
   * @throws AppError Unauthenticated
   */
  renew(
    token: string,
    isExtended: boolean,
    readAccount: (session: SessionRecord) => Promise<Account | undefined>,
  ): Promise<TokenPair>
  list(): readonly SessionRecord[]
  find(uid: string): SessionRecord | undefined
  /**
   * Ends sessions at once, also after a restart.
   * @param isOwnDecision true when the daemon decides, false when a caller asked for it
   * @returns whether they stay ended after a restart; false where nothing can be written
   */
  end(sessions: readonly SessionRecord[], reason: string, isOwnDecision?: boolean): boolean
  /** Whether all sessions that have ended are removed from the disk. */
  areEndsStored(): boolean
  /**
   * Ends expired sessions, and sessions from a time in the future, and removes ended sessions that could not be removed from
   * the disk before. Call it each minute.
   */
  expire(): void
}

// Scripts often log in before every poll; the number of their sessions must stay bounded.
const sessionsPerUser = 500
const hourMs = 3_600_000

export function createSessions(options: SessionsOptions): Sessions {
  const { store, accessTokens, refreshKey, clock, log } = options
  const stored = store.list()
  const sessions = new Map(stored.map((record) => [record.uid, record]))
  const accepted = createAcceptedTokens()
  const undeleted = new Set<string>()
  const refused = () =>
    new AppError(
      generalErrors.Unauthenticated,
      'log in again: the refresh token is unknown, expired or revoked',
    )

  /** The token pair of a record; the same record always gives the same pair. */
  function pairOf(record: SessionRecord, refresh = refreshTokenOf(record)): TokenPair {
    const { uid, generation, userName, role, renewedAt, expiresAt } = record
    const iat = Math.floor(renewedAt / 1_000)
    const exp = Math.min(iat + options.accessMinutes * 60, Math.floor(expiresAt / 1_000))
    const access = accessTokens.sign({ sub: userName, jti: `${uid}.${generation}`, iat, exp, role })
    accepted.accept(access, { userName, role, sessionUid: uid }, { iat, exp }, clock.now())
    return { access, refresh }
  }

  const refreshTokenOf = ({ uid, generation }: Pick<SessionRecord, 'uid' | 'generation'>) =>
    makeRefreshToken(refreshKey, { sessionUid: uid, generation })

  function end(ended: readonly SessionRecord[], reason: string, isOwnDecision = false): boolean {
    const known = ended.filter(({ uid }) => sessions.has(uid))
    if (known.length === 0) return true
    for (const { uid } of known) sessions.delete(uid)
    accepted.remove(({ sessionUid }) => !sessions.has(sessionUid))
    const uids = new Set<string | undefined>(known.map(({ uid }) => uid))
    options.onCallersGone?.(({ sessionUid }) => uids.has(sessionUid))
    for (const { uid } of known) undeleted.add(uid)
    const isLasting = removeEnded()
    for (const { uid, userName } of known) log.info({ session: uid, user: userName, reason }, 'session ended')
    if (isOwnDecision) options.onEnded?.(known, reason)
    return isLasting
  }

  /**
   * A full disk must not keep a session alive. After a restart it would, so `expire` tries the removal again, and a mark ends all at the next start.
   * @returns whether they stay ended after a restart
   */
  function removeEnded(): boolean {
    if (areEndsStored()) return true
    try {
      store.remove([...undeleted])
      undeleted.clear()
      return true
    } catch (error) {
      const isMarked = store.mark()
      const until = isMarked
        ? 'until then a start of the daemon ends all sessions'
        : 'a start of the daemon would make them valid again'
      log.error(
        { err: error, sessions: undeleted.size },
        `ended sessions could not be removed from the disk yet, ${until}; ${seeDisk}`,
      )
      return isMarked
    }
  }

  const areEndsStored = () => undeleted.size === 0 && !store.isMarked()

  function makeRoom(userName: string): void {
    if (sessions.size < sessionsPerUser) return
    const own = [...sessions.values()].filter((each) => each.userName === userName)
    if (own.length < sessionsPerUser) return
    const oldest = own.sort((a, b) => a.renewedAt - b.renewedAt).slice(0, own.length - sessionsPerUser + 1)
    end(oldest, 'too many sessions of this user', true)
  }

  const slide = (from: number, createdAt: number, isExtended: boolean) =>
    Math.min(
      from + (isExtended ? options.extendedRenewalHours : options.renewalHours) * hourMs,
      createdAt + options.maximumDays * 24 * hourMs,
    )

  if (store.isMarked()) {
    if (stored.length === 0) removeEnded()
    else end(stored, 'others that had ended could not be removed before the start', true)
  }

  return {
    makeRoom,

    create(account, address, isExtended, isKept = true) {
      const now = clock.now()
      const [uid, generation] = [randomUUID(), 0]
      const refresh = refreshTokenOf({ uid, generation })
      const record: SessionRecord = {
        uid,
        userName: account.name,
        role: account.role,
        accountSource: account.source,
        roleSource: account.roleSource,
        address,
        createdAt: now,
        renewedAt: now,
        expiresAt: slide(now, now, isExtended),
        accountMark: account.mark,
        refreshHash: hash('sha256', refresh, 'hex'),
        previousHash: null,
        generation,
      }
      if (isKept) store.put(record)
      sessions.set(uid, record)
      return pairOf(record, refresh)
    },

    authenticate(token) {
      const now = clock.now()
      const known = accepted.callerOf(token, now)
      if (known) return known
      const claims = accessTokens.verify(token)
      if (!claims) return undefined
      const session = sessions.get(claims.jti.slice(0, claims.jti.lastIndexOf('.')))
      if (session?.userName !== claims.sub) return undefined
      // The lesser of both roles: a renewal may have removed the role since this token was made.
      const role = claims.role === 'admin' ? session.role : 'viewer'
      return accepted.accept(
        token,
        { userName: session.userName, role, sessionUid: session.uid },
        claims,
        now,
      )
    },

    holderOf(token) {
      const now = clock.now()
      const known = accepted.callerOf(token, now)
      if (known) return known.userName
      // After a restart no token has been seen. The last pair of a session can be computed again and compared with the
      // token.
      const session = sessions.get(sessionOfAccessToken(token) ?? '')
      if (!session) return undefined
      pairOf(session)
      return accepted.callerOf(token, now)?.userName
    },

    holderOfRefresh(token) {
      const session = sessions.get(sessionOfRefreshToken(token) ?? '')
      if (!session) return undefined
      const tokenHash = hash('sha256', token, 'hex')
      const isHeld = tokenHash === session.refreshHash || tokenHash === session.previousHash
      return isHeld ? session.userName : undefined
    },

    async renew(token, isExtended, readAccount) {
      const claims = parseRefreshToken(refreshKey, token)
      const presented = claims && sessions.get(claims.sessionUid)
      if (!presented) throw refused()
      const reason = reasonOfTime(presented, clock.now())
      if (reason) {
        end([presented], reason, true)
        throw refused()
      }
      const account = await readAccount(presented)
      // Read again after the wait: two renewals may race, and a logout may have happened.
      const session = sessions.get(presented.uid)
      if (!session || !account) throw refused()
      const tokenHash = hash('sha256', token, 'hex')
      const now = clock.now()
      const sinceMs = now - session.renewedAt
      const isReplay = sinceMs >= -setBackMs && sinceMs <= options.replaySeconds * 1_000
      if (tokenHash === session.previousHash && isReplay) return pairOf(session)
      if (tokenHash !== session.refreshHash) {
        log.warn(
          { session: session.uid, user: session.userName },
          'an old refresh token was used: the session is ended, the token may be stolen; if it was, change the password with passwd',
        )
        end([session], 'refresh token reused', true)
        throw refused()
      }
      const generation = session.generation + 1
      const refresh = refreshTokenOf({ uid: session.uid, generation })
      const renewed: SessionRecord = {
        ...session,
        role: account.role,
        accountSource: account.source,
        roleSource: account.roleSource,
        renewedAt: now,
        expiresAt: Math.max(session.expiresAt, slide(now, session.createdAt, isExtended)),
        refreshHash: hash('sha256', refresh, 'hex'),
        previousHash: session.refreshHash,
        generation,
      }
      try {
        store.put(renewed)
      } catch (error) {
        if (!isUnwritable(error)) throw error
        log.error(
          { err: error, session: renewed.uid },
          `a renewal cannot be stored; the session ends when the daemon stops; ${seeDisk}`,
        )
      }
      sessions.set(renewed.uid, renewed)
      if (renewed.role !== session.role) {
        accepted.remove(({ sessionUid }) => sessionUid === renewed.uid)
        options.onCallersGone?.(
          ({ sessionUid, role }) =>
            sessionUid === renewed.uid && role === 'admin' && renewed.role !== 'admin',
        )
      }
      return pairOf(renewed, refresh)
    },

    areEndsStored,
    list: () => [...sessions.values()],
    find: (uid) => sessions.get(uid),
    end,
    expire() {
      const byReason = Map.groupBy(sessions.values(), (session) => reasonOfTime(session, clock.now()))
      for (const [reason, ended] of byReason) if (reason) end(ended, reason, true)
      removeEnded()
    },
  }
}
