import type { Account } from './account.ts'
import type { SessionRecord } from './session-store.ts'

/** By how much the clock may be set back, milliseconds: small corrections by NTP end no session. */
export const setBackMs = 300_000

/**
 * Why the time of a session is over; nothing when it is not. One from a time that has not come yet is over too: a clock
 * that is set back by years would add them to its life.
 */
export function reasonOfTime(
  { createdAt, renewedAt, expiresAt }: SessionRecord,
  now: number,
): string | undefined {
  if (expiresAt <= now) return 'expired'
  return Math.max(createdAt, renewedAt) - setBackMs > now ? 'clock set back' : undefined
}

/** Why a session of this account has to end; nothing when it may continue. */
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
  // What the local files gave they also take; no directory has to be waited for that may give the same.
  const isRoleKnown = account.isRoleKnown || session.roleSource === 'local'
  if (session.role === 'admin' && account.role !== 'admin' && isRoleKnown) return 'left the administrators'
  return undefined
}

/**
 * The same by the local files alone, without a wait.
 * @param local the account in these files; one that is not there is gone, unless a directory brought it
 */
export function reasonInFiles(
  session: SessionRecord,
  local: Account | undefined,
  now: number,
): string | undefined {
  return local || session.accountSource === 'local' ? reasonToEnd(session, local, now) : undefined
}

/** Whether only NSS can say if a session that the local files do not end may continue. */
export const needsNss = (session: SessionRecord, local: Account | undefined) =>
  !local || (session.role === 'admin' && local.role !== 'admin')
