import { AppError } from '../errors/app-error.ts'
import { stoppingError } from '../errors/stopping.ts'
import { uploadErrors } from './codes.ts'

/** The uploads of one kind that are under way: not more than a maximum, and all ended by a stop of the daemon. */
export interface RunningUploads {
  /**
   * Runs an upload.
   * @param signal ends it with its reason, an AppError
   * @param work aborts its argument with an AppError to refuse the upload, and has to end when that is aborted
   * @throws AppError TooManyUploads; any error of `work`
   */
  run<T>(signal: AbortSignal, work: (refused: AbortController) => Promise<T>): Promise<T>
  /** Ends each upload with a refusal; resolves when all have ended. */
  stop(): Promise<void>
}

const retryAfterSec = 30

/** @param options how many, and what they are in a message, for example `definitions` */
export function createRunningUploads({
  maximum,
  what,
}: {
  readonly maximum: number
  readonly what: string
}): RunningUploads {
  const running = new Map<AbortController, Promise<unknown>>()
  return {
    async run(signal, work) {
      if (running.size >= maximum)
        throw new AppError(
          uploadErrors.TooManyUploads,
          `${maximum} ${what} are already being uploaded; wait until one is done`,
          { retryAfterSec },
        )
      const refused = new AbortController()
      const end = () => refused.abort(signal.reason)
      if (signal.aborted) end()
      signal.addEventListener('abort', end, { once: true })
      const received = work(refused)
      running.set(refused, received)
      return received.finally(() => {
        running.delete(refused)
        signal.removeEventListener('abort', end)
      })
    },
    async stop() {
      const reason = stoppingError('send the file again')
      const all = [...running]
      for (const [refused] of all) refused.abort(reason)
      await Promise.allSettled(all.map(([, received]) => received))
    },
  }
}
