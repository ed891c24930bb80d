import type { Clock } from '../system/clock.ts'
import { cannotBeReadReason } from './rules/tools.ts'
import type { Reading, StoredInventory } from './stored-inventory.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const settleMs = 60_000

/** Decides when the inventory is read. */
export interface Schedule {
  /**
   * Whether a reading is due: the first a minute after the start, then when the last one is a day old (an hour, where a
   * part of it could not be read), or a minute after the last change of the devices. Where devices change all the time,
   * the next reading is the daily one.
   * @param devices the present devices, of `listDevices`
   */
  isDue(devices: string): boolean
}

export function createSchedule({ clock, stored }: { clock: Clock; stored: StoredInventory }): Schedule {
  const startedAt = clock.monotonic()
  let seen: { readonly devices: string; readonly since: number } | undefined
  return {
    isDue(devices) {
      if (seen?.devices !== devices) seen = { devices, since: clock.monotonic() }
      const reading = stored.current()
      if (reading === undefined) return clock.monotonic() - startedAt >= settleMs
      const ageMs = clock.now() - reading.readAt
      // After the wall clock was set back, the reading is in the future.
      if (ageMs >= (isWhole(reading) ? dayMs : hourMs) || ageMs < 0) return true
      return devices !== reading.devices && clock.monotonic() - seen.since >= settleMs
    },
  }
}

// A part that could not be read, for example on a busy host, is tried again sooner.
const isWhole = ({ hardware: { conditions = [] } }: Reading) =>
  conditions.every(({ reason }) => reason !== cannotBeReadReason)
