import type { Client } from './client.ts'
import type { CommandLine } from './command-line.ts'
import type { ExitName } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { Target } from './target.ts'
import type { Terminal } from './terminal.ts'

/** What a command works with. */
export interface Context {
  readonly line: CommandLine
  readonly client: Client
  readonly output: Output
  readonly target: Target
  readonly terminal: Terminal
  /** Where the keys of hosts and the tokens stay. */
  readonly folder: () => string
}

/** Does what a command says; `ok` when it says nothing else. */
export type Program = (context: Context) => Promise<ExitName | undefined>
