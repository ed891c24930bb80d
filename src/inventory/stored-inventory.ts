import type { Database } from '../store/database.ts'
import type { Hardware } from './schemas.ts'

/** The last reading. */
export interface Reading {
  /** Milliseconds since 1970. */
  readonly readAt: number
  /** The devices just before the reading, of `listDevices`. */
  readonly devices: string
  readonly hardware: Hardware
}

/** The last reading in the database. */
export interface StoredInventory {
  /** The last reading; undefined before the first. */
  current(): Reading | undefined
  /** Replaces the last reading. @throws the system's errors as they are; the former reading is then kept */
  put(reading: Reading): void
}

interface Row {
  read_at: number
  devices: string
  hardware: string
}

export function openStoredInventory({ sql }: Database): StoredInventory {
  const row = sql.prepare('SELECT read_at, devices, hardware FROM inventory').get() as Row | undefined
  let current: Reading | undefined = row && {
    readAt: row.read_at,
    devices: row.devices,
    hardware: JSON.parse(row.hardware) as Hardware,
  }
  return {
    current: () => current,
    put(reading) {
      sql
        .prepare('INSERT OR REPLACE INTO inventory (one, read_at, devices, hardware) VALUES (1, ?, ?, ?)')
        .run(reading.readAt, reading.devices, JSON.stringify(reading.hardware))
      current = reading
    },
  }
}
