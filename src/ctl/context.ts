import type { Client } from './client.ts'
import type { CommandLine } from './command.ts'
import type { ExitName } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { Target } from './target.ts'
import type { Terminal } from './terminal.ts'

/** What a command works with that talks to a host; `Name`: the options that it reads beside the global ones. */
export interface Context<Name extends string = never> {
  readonly line: CommandLine<Name>
  readonly client: Client
  readonly output: Output
  readonly target: Target
  readonly terminal: Terminal
  /** Where the keys of hosts and the tokens stay. */
  readonly folder: () => string
}

/** Does what a command says; `ok` when it says nothing else. */
export type HostProgram<Name extends string = never> = (
  context: Context<Name>,
) => Promise<ExitName | undefined>
