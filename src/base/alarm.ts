/** Ends pauses early. */
export interface Alarm {
  /** Ends the pause, or the next one if there is none. */
  ring(): void
  /** Waits, up to a time in milliseconds, until it rings; where it rings all the time, at least `leastMs`. */
  pause(ms: number): Promise<void>
}

const longestMs = 2_147_483_647

/** @param stopping ends every pause at once */
export function createAlarm(stopping: AbortSignal, leastMs: number): Alarm {
  let isRinging = false
  let end: (() => void) | undefined
  const wait = (ms: number, isEndedBy: () => boolean) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms, longestMs)).unref()
      end = () => {
        if (!isEndedBy()) return
        clearTimeout(timer)
        resolve()
      }
      end()
    })
  stopping.addEventListener('abort', () => end?.())
  return {
    ring() {
      isRinging = true
      end?.()
    },
    async pause(ms) {
      if (ms > 0) {
        await wait(ms, () => isRinging || stopping.aborted)
        if (isRinging) await wait(leastMs, () => stopping.aborted)
      }
      end = undefined
      isRinging = false
    },
  }
}
