import type { WriteStream } from 'node:tty'
import type { Output } from '../ctl/output.ts'

/** What the verbs of `edgehostctl definition` work with. */
export interface Desk {
  readonly output: Output
  /** Where progress is drawn. */
  readonly errors: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number }
  /** A file or folder that goes away when the process is told to end. */
  onBreak(path: string): void
}
