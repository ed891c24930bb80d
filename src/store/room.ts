import type { Logger } from '../system/log.ts'
import { seeDisk } from '../errors/advice.ts'
import type { Database } from './database.ts'
import type { FiguresOf, Room } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import { sizeOf, spaceOf } from '../system/files.ts'
import type { about } from './about.ts'
import type { DiskReserve } from './disk-reserve.ts'

const intervalMs = 10_000

/**
 * Checks whether a record can be written now. It really writes, namely the current schema version, because a full or
 * read-only disk shows only at a commit. It writes at most once in ten seconds, because any client may ask.
 */
export function createWriteProbe(
  { sql, transaction }: Database,
  { log, monotonic }: { log: Logger; monotonic: () => number },
): () => boolean {
  let askedAt = -Infinity
  let isWritable = false

  function write(): boolean {
    try {
      transaction(() => {
        const { user_version: version } = sql.prepare('PRAGMA user_version').get() as { user_version: number }
        sql.exec(`PRAGMA user_version = ${version}`)
      })
      return true
    } catch (error) {
      log.warn({ err: error }, `the database could not be written; ${seeDisk}`)
      return false
    }
  }

  return () => {
    if (monotonic() - askedAt < intervalMs) return isWritable
    askedAt = monotonic()
    isWritable = write()
    return isWritable
  }
}

interface StoreRoomOptions {
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
