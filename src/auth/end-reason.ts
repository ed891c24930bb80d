import { setBackMs } from '../base/time.ts'
import type { Account } from './account.ts'
import type { SessionRecord } from './session-store.ts'

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
