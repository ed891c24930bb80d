import { StepFailed } from '../../step.ts'

const marks = { upgrade: 'UpgradeRefused: ', restore: 'RestoreRefused: ' } as const

/**
 * Ends a change of the version of Kubernetes before anything was changed; another try would say the same.
 * @param why one line for operators
 */
export const upgradeRefused = (why: string) => new StepFailed(`${marks.upgrade}${why}`)

/** As `upgradeRefused`, for a way back by hand. */
export const restoreRefused = (why: string) => new StepFailed(`${marks.restore}${why}`)

/** Whether the reason of a failed step ends the change at once. */
export const isRefusal = (reason: string): boolean =>
  Object.values(marks).some((mark) => reason.startsWith(mark))
