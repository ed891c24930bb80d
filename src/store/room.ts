import type { FiguresOf, Room } from '../room.ts'
import type { Clock } from '../system/clock.ts'
import { sizeOf, spaceOf } from '../system/file-sizes.ts'
import type { Logger } from '../system/log.ts'
import type { about } from './about.ts'
import type { Database } from './database.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { createWriteProbe } from './write-probe.ts'

export interface StoreRoomOptions {
  /** The state folder. */
  readonly directory: string
  readonly databaseFile: string
  readonly database: Database
  readonly reserve: DiskReserve
  readonly clock: Clock
  readonly log: Logger
}

/** The metrics and the health check of the database. */
export function createStoreRoom(options: StoreRoomOptions): Room {
  const { directory, databaseFile, database, reserve, clock, log } = options
  return {
    checks: [
      {
        name: 'database',
        kind: 'ready',
        holds: createWriteProbe(database, { log, monotonic: () => clock.monotonic() }),
      },
      { name: 'disk reserve', kind: 'ready', holds: reserve.admits },
      { name: 'disk reserve held', kind: 'note', holds: reserve.isHeld },
    ],
    jobs: [reserve.job],
    async figures(): Promise<FiguresOf<typeof about.families>> {
      const [databaseBytes, walBytes, space] = await Promise.all([
        sizeOf(databaseFile),
        sizeOf(`${databaseFile}-wal`),
        spaceOf(directory),
      ])
      return {
        edgehostd_database_size_bytes: databaseBytes,
        edgehostd_database_wal_size_bytes: walBytes,
        edgehostd_state_filesystem_size_bytes: space?.sizeBytes,
        edgehostd_state_filesystem_free_bytes: space?.freeBytes,
      }
    },
  }
}
