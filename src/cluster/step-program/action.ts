import type { StepOrder } from '../step.ts'

/**
 * An action of the program `step.cjs`, as root outside of the sandbox of the daemon. It is idempotent: it may have been cut off, or be done
 * already.
 * @param print writes a line to the output of the step, for operators and for `Engine.eventOf`
 * @throws StepFailed with a reason for operators
 */
export type StepAction = (order: StepOrder, print: (line: string) => void) => Promise<void>

/** Actions by their names. */
export type StepActions = Readonly<Record<string, StepAction>>
