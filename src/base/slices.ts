import { setImmediate } from 'node:timers/promises'

// Requests wait for at most this long, beside one step of the work.
const sliceMs = 8

/** Lets other work of the event loop run, once the present slice is used up. Call it between the steps of long work. */
export function createSlices(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < sliceMs) return
    await setImmediate()
    since = performance.now()
  }
}
