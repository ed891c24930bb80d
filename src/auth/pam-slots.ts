import { AppError } from '../errors/app-error.ts'

/** Bounds of the configuration. */
export interface PamLimits {
  /** Children in all, sleeping ones included. */
  readonly maximumChildren: number
  /** Logins that wait for a slot. */
  readonly queueLength: number
}

export interface PamSlotsOptions extends PamLimits {
  /** Children that may work at the same time: the cores of the machine. */
  readonly cores: number
}

/** Room for PAM children. */
export interface PamSlots {
  /**
   * Runs `work` when there is room.
   * @throws AppError TooManyLogins when the queue is full, at once
   */
  run<T>(work: () => Promise<T>): Promise<T>
  /** How full it is now. */
  figures(): PamFigures
}

export interface PamFigures {
  /** Children whose password is being checked. */
  readonly working: number
  /** Children in all, those included that sleep in PAM's failure delay. */
  readonly children: number
  /** Logins that wait for a child. */
  readonly waiting: number
}

// Checking a password takes tens of milliseconds and 20 MB (yescrypt); a child that is older than this only sleeps
// in PAM's failure delay and needs neither.
const workingMs = 1_000

/** Bounds what logins cost: as many working children as there are cores, a bounded number asleep, a short queue. */
export function createPamSlots({ cores, maximumChildren, queueLength }: PamSlotsOptions): PamSlots {
  let working = 0
  let children = 0
  const queue: (() => void)[] = []

  const hasRoom = () => working < cores && children < maximumChildren
  const admit = () => {
    while (hasRoom() && queue.length > 0) {
      // The slot is taken here, not when the waiter wakes up, so that no one slips in between.
      working += 1
      children += 1
      queue.shift()?.()
    }
  }

  async function enter(): Promise<void> {
    if (hasRoom() && queue.length === 0) {
      working += 1
      children += 1
      return
    }
    if (queue.length >= queueLength) {
      throw new AppError('TooManyLogins', 'more logins are being checked than the host has room for', {
        retryAfterSec: 2,
      })
    }
    await new Promise<void>((wake) => queue.push(wake))
  }

  return {
    async run(work) {
      await enter()
      const slot = { isWorking: true }
      const stopCounting = () => {
        if (!slot.isWorking) return
        slot.isWorking = false
        working -= 1
        admit()
      }
      const timer = setTimeout(stopCounting, workingMs)
      try {
        return await work()
      } finally {
        clearTimeout(timer)
        children -= 1
        if (slot.isWorking) stopCounting()
        else admit()
      }
    },
    figures: () => ({ working, children, waiting: queue.length }),
  }
}
