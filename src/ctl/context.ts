import type { Client } from './client.ts'
import type { CommandLine } from './command.ts'
import type { ExitName } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { SessionProtocol } from './session.ts'
import type { Target } from './target.ts'
import type { Terminal } from './terminal.ts'

/** The objects that the program of a command on a host uses. `Name`: the options that it reads beside the global ones. */
export interface Context<Name extends string = never> {
  readonly line: CommandLine<Name>
  readonly client: Client
  readonly output: Output
  readonly target: Target
  readonly terminal: Terminal
  readonly protocol: SessionProtocol
  /** The folder of the keys of hosts and of the tokens. */
  readonly folder: () => string
}

/** Runs a command on a host. Returns its exit status; `undefined` means `ok`. */
export type HostProgram<Name extends string = never> = (
  context: Context<Name>,
) => Promise<ExitName | undefined>
