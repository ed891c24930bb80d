import type { MemoryField } from '../lists/memory.ts'
import type { ListResource } from '../lists/resource.ts'
import { SessionItem } from './schemas.ts'
import type { SessionRecord } from './session-store.ts'

/** What queries of the list of sessions may name. */
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
