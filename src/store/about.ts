import type { Declaration } from '../root/room.ts'
import { storeErrors } from './codes.ts'

/** The database in the state folder. */
export const about = {
  errors: storeErrors,
  families: {
    edgehostd_database_size_bytes: { type: 'gauge', help: 'Size of the database.' },
    edgehostd_database_wal_size_bytes: {
      type: 'gauge',
      help: 'Size of the write-ahead log of the database.',
    },
    edgehostd_state_filesystem_size_bytes: {
      type: 'gauge',
      help: 'Size of the file system that holds the state folder.',
    },
    edgehostd_state_filesystem_free_bytes: {
      type: 'gauge',
      help: 'Free space of the file system that holds the state folder.',
    },
  },
} as const satisfies Declaration
