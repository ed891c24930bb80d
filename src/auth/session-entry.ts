import type { SystemEntry } from '../audit/audit.ts'
import type { SessionRecord } from './session-store.ts'

// Above this number, the record only has the number of sessions.
const mostNamed = 10

/** The trail entry for sessions that the daemon ended on its own: one record for any number of sessions. */
export function endEntry(sessions: readonly SessionRecord[], reason: string): SystemEntry {
  const users = [...new Set(sessions.map(({ userName }) => userName))]
  const [first] = sessions
  const resourceName = users.length === 1 ? (users[0] ?? '') : ''
  const entry = { action: 'delete', kind: 'session', resourceName } as const
  if (first && sessions.length === 1)
    return { ...entry, resourceUid: first.uid, message: `End a session: ${reason}` }
  const uids = sessions.map(({ uid }) => uid).join(', ')
  const named = sessions.length <= mostNamed ? ` (${uids})` : ''
  return { ...entry, message: `End ${sessions.length} sessions: ${reason}${named}` }
}
