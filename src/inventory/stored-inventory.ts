import { Errors } from 'typebox/schema'
import type { Database } from '../store/database.ts'
import type { Logger } from '../system/log.ts'
import { Hardware } from './schemas.ts'

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
  /** The last reading; undefined before the first, and where the stored one does not have the form of `Hardware`. */
  current(): Reading | undefined
  /** Replaces the last reading. @throws the system's errors as they are; the former reading is then kept */
  put(reading: Reading): void
}

interface Row {
  read_at: number
  devices: string
  hardware: string
}

export function openStoredInventory({ sql }: Database, log: Logger): StoredInventory {
  // The row is parsed at the first call of `current`, since the start of the daemon does not need it.
  let row = sql.prepare('SELECT read_at, devices, hardware FROM inventory').get() as Row | undefined
  let current: Reading | undefined

  function read({ read_at, devices, hardware }: Row): Reading | undefined {
    try {
      return { readAt: read_at, devices, hardware: parseHardware(hardware) }
    } catch (error) {
      log.warn({ err: error }, 'the stored inventory cannot be used; it is read again')
      return undefined
    }
  }

  return {
    current() {
      if (row) current = read(row)
      row = undefined
      return current
    },
    put(reading) {
      sql
        .prepare('INSERT OR REPLACE INTO inventory (one, read_at, devices, hardware) VALUES (1, ?, ?, ?)')
        .run(reading.readAt, reading.devices, JSON.stringify(reading.hardware))
      row = undefined
      current = reading
    },
  }
}

/**
 * Parses the hardware of a reading.
 * @throws Error if the text is not JSON, or does not match `Hardware`; the message contains nothing of the text, which has serial numbers
 */
export function parseHardware(text: string): Hardware {
  const hardware = parseJson(text)
  // Not Ajv, which the rest of the daemon uses: a compiled schema of this size stays in memory, 6 MiB for a check a day.
  const [isValid, [problem]] = Errors(Hardware, hardware)
  if (!isValid)
    throw new Error(
      `the inventory has an unknown form: ${problem?.instancePath ?? ''} ${problem?.message ?? ''}`,
    )
  return hardware as Hardware
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('the inventory is not JSON')
  }
}
