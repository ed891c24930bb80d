import type { Clock } from '../system/clock.ts'
import type { StoredInventory } from './stored-inventory.ts'

const dayMs = 86_400_000
const settleMs = 60_000

/** Says when the inventory is to be read. */
export interface Schedule {
  /**
   * Whether it is to be read now: there is none, it is a day old, or devices came or went and a minute ago was the last time.
   * A device that comes and goes all the time is waited for until the day is over.
   * @param devices those that are there, of `listDevices`
   */
  isDue(devices: string): boolean
}

export function createSchedule({ clock, stored }: { clock: Clock; stored: StoredInventory }): Schedule {
  let seen: { readonly devices: string; readonly since: number } | undefined
  return {
    isDue(devices) {
      if (seen?.devices !== devices) seen = { devices, since: clock.monotonic() }
      const reading = stored.current()
      if (reading === undefined) return true
      const ageMs = clock.now() - reading.readAt
      // A wall clock that was set back makes it one of the future.
      if (ageMs >= dayMs || ageMs < 0) return true
      return devices !== reading.devices && clock.monotonic() - seen.since >= settleMs
    },
  }
}
