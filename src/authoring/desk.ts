import type { Output } from '../ctl/output.ts'
import type { MaybeTerminal } from '../program/status-line.ts'

/** What the verbs of `edgehostctl definition` share. */
export interface Desk {
  readonly output: Output
  /** Where progress is drawn. */
  readonly errors: MaybeTerminal
  /** Registers a file or folder that is removed when a signal ends the process. */
  onBreak(path: string): void
}
