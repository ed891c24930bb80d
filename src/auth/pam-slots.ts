import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import type { Client } from '../base/client.ts'
import type { AuthSettings } from './config.ts'
import { createFairQueue, type Waiter } from '../base/fair-queue.ts'

/** The limits in the configuration. */
export type PamLimits = Pick<AuthSettings['pam'], 'maximumChildren' | 'queueLength'>

export interface PamSlotsOptions extends PamLimits {
  /** Maximum number of children that work at the same time: the cores of the machine. */
  readonly cores: number
  /**
   * Reports when a child only sleeps.
   * @returns a function that stops the observation
   */
  readonly onSleep: (pid: number, report: () => void) => () => void
}

/** The origin of a login. */
export interface LoginOrigin {
  readonly client: Client
  /** The user, if the user has logged in from this client before. */
  readonly knownUser: string | undefined
}

/** @param started call it with the process id of the child, as soon as the child exists */
export type PamWork<T> = (started: (pid: number) => void) => Promise<T>

/** Limits the number of PAM children. */
export interface PamSlots {
  /**
   * Runs `work` when a slot is free.
   * @throws AppError TooManyLogins when the queue is full, at once or when a waiting login is replaced by another one
   */
  run<T>(origin: LoginOrigin, work: PamWork<T>): Promise<T>
  /** The current load. */
  figures(): PamFigures
}

export interface PamFigures {
  /** Children whose password is being checked. */
  readonly working: number
  /** All children, including those that sleep in PAM's failure delay. */
  readonly children: number
  /** Logins that wait for a child. */
  readonly waiting: number
}

// Checking a password takes tens of milliseconds and 20 MB (yescrypt). PAM sleeps its failure delay inside the child,
// which then needs neither. A module that works longer than this no longer occupies a slot.
const longestMs = 1_000

/**
 * Limits the cost of logins: at most one working child per core, a bounded number of sleeping ones, and a short queue
 * in which clients take turns. Pairs of user and client that have succeeded before have the same number of extra slots,
 * one for each pair: logins of other pairs do not delay them.
 */
export function createPamSlots(options: PamSlotsOptions): PamSlots {
  const unknown = createPool(options)
  const known = createPool(options)
  const pairs = new Set<string>()

  return {
    async run({ client, knownUser }, work) {
      const waiter = { group: client.network ?? client.name, member: client.name }
      const pair = knownUser === undefined ? undefined : `${client.name} ${knownUser}`
      if (pair === undefined || pairs.has(pair)) return unknown.run(waiter, work)
      pairs.add(pair)
      try {
        return await known.run(waiter, work)
      } finally {
        pairs.delete(pair)
      }
    },
    figures() {
      const [a, b] = [unknown.figures(), known.figures()]
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
      // The slot is taken here, not when the waiter continues, so that no other login takes it in between.
      working += 1
      children += 1
      entry.enter()
    }
  }

  async function enter(waiter: Waiter): Promise<void> {
    if (working < cores && children < maximumChildren && queue.size === 0) {
      working += 1
      children += 1
      queue.begin(waiter)
      return
    }
    await new Promise<void>((wake, reject) => {
      queue.add({ ...waiter, enter: wake, refuse: reject })?.refuse(tooMany())
    })
  }

  return {
    async run<T>(waiter: Waiter, work: PamWork<T>): Promise<T> {
      await enter(waiter)
      const slot: { isWorking: boolean; stopWatching?: () => void } = { isWorking: true }
      const rest = () => {
        if (!slot.isWorking) return
        slot.isWorking = false
        working -= 1
        admit()
      }
      const timer = setTimeout(rest, longestMs)
      try {
        return await work((pid) => (slot.stopWatching = onSleep(pid, rest)))
      } finally {
        clearTimeout(timer)
        slot.stopWatching?.()
        children -= 1
        if (slot.isWorking) rest()
        else admit()
        queue.end(waiter)
      }
    },
    figures: (): PamFigures => ({ working, children, waiting: queue.size }),
  }
}

const tooMany = () =>
  new AppError(authErrors.TooManyLogins, 'too many logins are being checked; try again later', {
    retryAfterSec: 2,
  })
