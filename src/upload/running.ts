import { createFairQueue, type Waiter, createFairTurns } from '../base/fair-queue.ts'
import { AppError } from '../errors/app-error.ts'
import { stoppingError } from '../errors/stopping.ts'
import type { BusyReason } from '../root/room.ts'
import type { Logger } from '../system/log.ts'
import { createTally } from '../base/tally.ts'
import { uploadErrors } from './codes.ts'

/** Owner of an upload. */
export interface Uploader {
  /** Users take turns, and each has a bounded number of uploads. */
  readonly name: string
  /** Ends the upload with its reason, an AppError, whether it waits or runs. */
  readonly signal: AbortSignal
}

/**
 * The right to write the arriving chunks. An upload whose place another one needs is paused: its reader waits in `take`, so that the
 * connection takes no more from its client, and goes on when it has a place again. It is never cut for that.
 */
export interface UploadPlace {
  /**
   * To be awaited before each chunk is written.
   * @param receivedBytes before this chunk, for the refusal of an upload that waits too long
   * @returns undefined where it has its place. @throws AppError TooManyUploads after the longest wait; the reason of its end
   */
  take(receivedBytes: number): Promise<void> | undefined
  /** A chunk is written, and the next one is awaited: another upload may have the place. */
  rest(): void
  /** All has arrived. */
  leave(): void
}

export interface RunningUpload {
  /** To be aborted with an AppError to refuse the upload; the work has to end when it is aborted. */
  readonly refused: AbortController
  readonly signal: AbortSignal
  /**
   * @param onPaused called when the place goes to another upload and nothing is being written, so that buffers may go with it
   */
  place(onPaused?: () => void): UploadPlace
}

/** The uploads of one kind that are under way: bounded in number by user and in all, and all ended by a stop of the daemon. */
export interface RunningUploads {
  /**
   * Runs an upload. One that is beyond the number of its user, or of all, waits unread until others have ended.
   * @throws AppError TooManyUploads after the longest wait; any error of `work`
   */
  run<T>(uploader: Uploader, work: (upload: RunningUpload) => Promise<T>): Promise<T>
  /** Number of uploads that arrive or wait. */
  count(): number
  /** Ends each upload with a refusal; resolves when all have ended. */
  stop(): Promise<void>
}

/** What a stop of the host would break off. @param what noun for them, for example `definitions` */
export const busyWithUploads = (count: number, what: string): readonly BusyReason[] =>
  count === 0
    ? []
    : [{ reason: 'Upload', message: count === 1 ? `an upload of ${what}` : `${count} uploads of ${what}` }]

export interface RunningUploadsOptions {
  /** Noun for them in messages, for example `definitions`. */
  readonly what: string
  /** The part or the file that a refusal names. */
  readonly field: string
  /** Bodies that are written at a time. */
  readonly maximum: number
  /** Uploads of one user that are not finished. */
  readonly ofUser: number
  /** The same of all users. */
  readonly ofAll: number
  /** The longest wait, for the begin of an upload and for a place. */
  readonly waitSeconds: number
  readonly log?: Pick<Logger, 'info'> | undefined
}

const retryAfterSec = 30
/** The longest wait of an upload for others where the configuration has none. */
export const usualWaitSeconds = 60
/** An upload keeps its place for one to two of these while others wait. */
const turnMs = 250

export function createRunningUploads(options: RunningUploadsOptions): RunningUploads {
  const { what, field, maximum, ofUser, ofAll, waitSeconds, log } = options
  const running = new Map<AbortController, Promise<unknown>>()
  const paused = createTally((counts) =>
    log?.info(
      { uploads: counts, atATime: maximum, longestWaitSeconds: waitSeconds },
      `uploads of ${what} waited for others and went on: at most so many are written at a time, by turns of the users`,
    ),
  )
  const turns = createFairTurns({
    atOnce: ofAll,
    ofGroup: ofUser,
    waiting: ofAll,
    refusal: () => tooMany('TooManyWaiting', `${ofAll} more wait`, {}),
  })
  const places = createPlaces(maximum)

  function tooMany(reason: string, why: string, more: Readonly<Record<string, unknown>>): AppError {
    return new AppError(
      uploadErrors.TooManyUploads,
      `no place for this upload of ${what}: ${why}; wait until others are done, or cancel one, and send it again`,
      { retryAfterSec, details: { field, reason, ...more } },
    )
  }

  /** Aborts a wait that lasts too long. @returns the signal, and a function that ends its clock */
  function bounded(signal: AbortSignal, refusal: () => AppError) {
    const tooLong = new AbortController()
    const timer = setTimeout(() => tooLong.abort(refusal()), waitSeconds * 1_000).unref()
    return { signal: AbortSignal.any([signal, tooLong.signal]), end: () => clearTimeout(timer) }
  }

  function placeOf(name: string, signal: AbortSignal, onPaused: () => void): UploadPlace {
    const place = places.add({ group: name, member: '' }, onPaused)
    const leave = () => place.leave()
    signal.addEventListener('abort', leave, { once: true })
    return {
      take(receivedBytes) {
        const turn = place.take()
        if (turn === undefined) return undefined
        paused.add(name)
        const wait = bounded(signal, () =>
          tooMany('NoTurn', `it had no turn for ${waitSeconds} s after ${receivedBytes} bytes`, {
            receivedBytes,
          }),
        )
        const refusal = Promise.withResolvers<never>()
        const refuse = () => refusal.reject(wait.signal.reason)
        wait.signal.addEventListener('abort', refuse, { once: true })
        if (wait.signal.aborted) refuse()
        return Promise.race([turn, refusal.promise]).finally(() => {
          // A joined signal with a listener lives as long as its sources.
          wait.signal.removeEventListener('abort', refuse)
          wait.end()
        })
      },
      rest: () => place.rest(),
      leave() {
        signal.removeEventListener('abort', leave)
        leave()
      },
    }
  }

  async function begin<T>(
    { name, signal }: Uploader,
    refused: AbortController,
    work: (upload: RunningUpload) => Promise<T>,
  ): Promise<T> {
    const wait = bounded(signal, () =>
      tooMany(
        'TooManyUnfinished',
        `after ${waitSeconds} s ${ofUser} of your own are still not finished, or ${ofAll} of all users`,
        { waitedSeconds: waitSeconds, ofUser, ofAll },
      ),
    )
    const run = async () => {
      wait.end()
      const end = () => refused.abort(signal.reason)
      if (signal.aborted) end()
      signal.addEventListener('abort', end, { once: true })
      const open: UploadPlace[] = []
      try {
        return await work({
          refused,
          signal: refused.signal,
          place(onPaused = () => undefined) {
            const place = placeOf(name, refused.signal, onPaused)
            open.push(place)
            return place
          },
        })
      } finally {
        for (const place of open) place.leave()
        signal.removeEventListener('abort', end)
      }
    }
    try {
      return await turns.run({ group: name, member: '' }, run, AbortSignal.any([wait.signal, refused.signal]))
    } finally {
      wait.end()
    }
  }

  return {
    run(uploader, work) {
      const refused = new AbortController()
      const received = begin(uploader, refused, work).finally(() => running.delete(refused))
      running.set(refused, received)
      return received
    },
    count: () => running.size,
    async stop() {
      const reason = stoppingError('send the file again')
      const all = [...running]
      for (const [refused] of all) refused.abort(reason)
      await Promise.allSettled(all.map(([, received]) => received))
      paused.stop()
    },
  }
}

/** Bounds of uploads each of which needs a process or memory until its end: none gives its place away, and one user has not all of them. */
export const boundedUploads = (maximum: number) => ({
  maximum,
  ofAll: maximum,
  ofUser: Math.max(1, maximum - 1),
  waitSeconds: usualWaitSeconds,
})

interface Place {
  /** @returns undefined where it has its place */
  take(): Promise<void> | undefined
  rest(): void
  leave(): void
}

interface Holder extends Waiter {
  /** Whether a chunk is being written. */
  isBusy: boolean
  /** Whether it has had its place for a whole turn. */
  isDue: boolean
  readonly onPaused: () => void
}

/**
 * A number of places that uploads have by turns of their users. An upload keeps its place while no other upload waits, also between two
 * chunks; where one waits, the place goes on after a turn, as soon as no chunk is being written. So a body that arrives slowly keeps no
 * other waiting.
 */
function createPlaces(maximum: number) {
  const holders = new Set<Holder>()
  const queue = createFairQueue<Waiter & { readonly holder: Holder; readonly resolve: () => void }>(Infinity)
  let timer: NodeJS.Timeout | undefined

  function hold(holder: Holder): void {
    holder.isBusy = true
    holder.isDue = false
    holders.add(holder)
  }

  function release(holder: Holder): void {
    holders.delete(holder)
    const next = queue.next()
    queue.end(holder)
    if (!next) return
    hold(next.holder)
    next.resolve()
  }

  function pause(holder: Holder): void {
    release(holder)
    holder.onPaused()
  }

  function tick(): void {
    for (const holder of [...holders]) {
      if (queue.size === 0) break
      if (holder.isDue && !holder.isBusy) pause(holder)
      holder.isDue = true
    }
    if (queue.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add({ group, member }: Waiter, onPaused: () => void): Place {
      const holder: Holder = { group, member, isBusy: false, isDue: false, onPaused }
      let leaveQueue: () => void = () => undefined
      return {
        take() {
          if (holders.has(holder)) {
            holder.isBusy = true
            return undefined
          }
          if (holders.size < maximum) {
            queue.begin(holder)
            hold(holder)
            return undefined
          }
          const { promise, resolve } = Promise.withResolvers<undefined>()
          const waiter = { group, member, holder, resolve: () => resolve(undefined) }
          leaveQueue = () => void queue.remove(waiter)
          queue.add(waiter)
          timer ??= setInterval(tick, turnMs).unref()
          return promise
        },
        rest() {
          holder.isBusy = false
          if (holder.isDue && queue.size > 0 && holders.has(holder)) pause(holder)
        },
        leave() {
          leaveQueue()
          if (holders.has(holder)) release(holder)
        },
      }
    },
  }
}
