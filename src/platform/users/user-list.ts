import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { User } from '../schemas/users.ts'
import type { UserRecord } from './user-store.ts'

/** What queries of the list of users may name. */
export const userList: ListResource<MemoryField<UserRecord>> = {
  name: 'users',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ uid }) => uid },
    'metadata.name': { type: 'text', read: ({ email }) => email },
    'metadata.creationTimestamp': { type: 'time', read: ({ createdAt }) => createdAt },
    'spec.emailId': { type: 'text', read: ({ email }) => email },
    'spec.firstName': { type: 'text', read: ({ firstName }) => firstName },
    'spec.lastName': { type: 'text', read: ({ lastName }) => lastName },
    'spec.roles': { type: 'text', isOrdered: false, read: ({ roles }) => roles },
    'status.isActive': { type: 'boolean', read: ({ password }) => password !== '' },
    'status.isPasswordResetting': { type: 'boolean', read: (user) => user.resetRequestedAt > 0 },
    'status.lastSignIn': { type: 'time', read: ({ lastSignInAt }) => lastSignInAt },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: User,
}
