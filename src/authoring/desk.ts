import type { Output } from '../ctl/output.ts'
import type { MaybeTerminal } from '../program/status-line.ts'

/** What the verbs of `edgehostctl definition` work with. */
export interface Desk {
  readonly output: Output
  /** Where progress is drawn. */
  readonly errors: MaybeTerminal
  /** A file or folder that goes away when the process is told to end. */
  onBreak(path: string): void
}
