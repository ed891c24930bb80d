import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/**
 * The refusal of work that a stop of the daemon ends.
 * @param action action of the client when the daemon runs again
 */
export const stoppingError = (action = 'try again', retryAfterSec = 30): AppError =>
  new AppError(generalErrors.NotReady, `the daemon is stopping; ${action} when it is running`, {
    retryAfterSec,
  })
