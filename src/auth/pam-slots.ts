import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import type { Client } from '../base/client.ts'
import type { AuthSettings } from './config.ts'
import { createFairQueue, type Waiter } from './fair-queue.ts'

/** Bounds of the configuration. */
export type PamLimits = Pick<AuthSettings['pam'], 'maximumChildren' | 'queueLength'>

export interface PamSlotsOptions extends PamLimits {
  /** Children that may work at the same time: the cores of the machine. */
  readonly cores: number
  /**
   * Tells when a child has begun to do nothing but sleep.
   * @returns how to stop looking
   */
  readonly onSleep: (pid: number, told: () => void) => () => void
}

/** Whose login it is. */
export interface LoginOrigin {
  readonly client: Client
  /** The user, where it has logged in from there before. */
  readonly knownUser: string | undefined
}

/** @param started to be told the process id of the child, as soon as there is one */
export type PamWork<T> = (started: (pid: number) => void) => Promise<T>

/** Room for PAM children. */
export interface PamSlots {
  /**
   * Runs `work` when there is room.
   * @throws AppError TooManyLogins when the queue is full, at once or when another one that waits has to go first
   */
  run<T>(origin: LoginOrigin, work: PamWork<T>): Promise<T>
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

// Checking a password takes tens of milliseconds and 20 MB (yescrypt). PAM sleeps its failure delay inside of the
// child, which needs neither then. A module that works for longer than this is not waited for.
const longestMs = 1_000

/**
 * Bounds what logins cost: as many working children as there are cores, a bounded number asleep, a short queue in which
 * clients take turns. Pairs of user and client that have succeeded before have as many places of their own, one for
 * each: whatever strangers send, they do not wait for it.
 */
export function createPamSlots(options: PamSlotsOptions): PamSlots {
  const strangers = createPool(options)
  const known = createPool(options)
  const pairs = new Set<string>()

  return {
    async run({ client, knownUser }, work) {
      const waiter = { group: client.network ?? client.name, member: client.name }
      const pair = knownUser === undefined ? undefined : `${client.name} ${knownUser}`
      if (pair === undefined || pairs.has(pair)) return strangers.run(waiter, work)
      pairs.add(pair)
      try {
        return await known.run(waiter, work)
      } finally {
        pairs.delete(pair)
      }
    },
    figures() {
      const [a, b] = [strangers.figures(), known.figures()]
      return {
        working: a.working + b.working,
        children: a.children + b.children,
        waiting: a.waiting + b.waiting,
      }
    },
  }
}

interface Entry extends Waiter {
  readonly enter: () => void
  readonly refuse: (reason: AppError) => void
}

function createPool({ cores, maximumChildren, queueLength, onSleep }: PamSlotsOptions) {
  let working = 0
  let children = 0
  const queue = createFairQueue<Entry>(queueLength)

  function admit(): void {
    while (working < cores && children < maximumChildren) {
      const entry = queue.next()
      if (!entry) return
      // The slot is taken here, not when the waiter wakes up, so that no one slips in between.
      working += 1
      children += 1
      entry.enter()
    }
  }

  async function enter(waiter: Waiter): Promise<void> {
    if (working < cores && children < maximumChildren && queue.size === 0) {
      working += 1
      children += 1
      return
    }
    await new Promise<void>((wake, reject) => {
      queue.add({ ...waiter, enter: wake, refuse: reject })?.refuse(tooMany())
    })
  }

  return {
    async run<T>(waiter: Waiter, work: PamWork<T>): Promise<T> {
      await enter(waiter)
      const slot: { isWorking: boolean; stopLooking?: () => void } = { isWorking: true }
      const rest = () => {
        if (!slot.isWorking) return
        slot.isWorking = false
        working -= 1
        admit()
      }
      const timer = setTimeout(rest, longestMs)
      try {
        return await work((pid) => (slot.stopLooking = onSleep(pid, rest)))
      } finally {
        clearTimeout(timer)
        slot.stopLooking?.()
        children -= 1
        if (slot.isWorking) rest()
        else admit()
      }
    },
    figures: (): PamFigures => ({ working, children, waiting: queue.size }),
  }
}

const tooMany = () =>
  new AppError(authErrors.TooManyLogins, 'more logins are being checked than the host has room for', {
    retryAfterSec: 2,
  })
