import type { Output } from '../ctl/output.ts'
import type { MaybeTerminal } from '../program/status-line.ts'

/** Output and cleanup that the commands of `edgehostctl definition` share. */
export interface CommandContext {
  readonly output: Output
  /** Where progress is drawn. */
  readonly errors: MaybeTerminal
  /** Registers a file or folder that is removed when a signal ends the process. */
  removeOnSignal(path: string): void
}
