import type { Clock } from '../system/clock.ts'
import { cannotBeReadReason } from './rules/tools.ts'
import type { Reading, StoredInventory } from './stored-inventory.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const settleMs = 60_000

/** Says when the inventory is to be read. */
export interface Schedule {
  /**
   * Whether it is to be read now: the first time a minute after the start, then when it is a day old (an hour, where a
   * part gave no answer), or a minute after the last change of the devices. A device that comes and goes all the time is waited for until the day is over.
   * @param devices those that are there, of `listDevices`
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
      // A wall clock that was set back makes it one of the future.
      if (ageMs >= (isWhole(reading) ? dayMs : hourMs) || ageMs < 0) return true
      return devices !== reading.devices && clock.monotonic() - seen.since >= settleMs
    },
  }
}

// A host that was busy at that moment answers the next time.
const isWhole = ({ hardware: { conditions = [] } }: Reading) =>
  conditions.every(({ reason }) => reason !== cannotBeReadReason)
