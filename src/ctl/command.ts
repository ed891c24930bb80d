import type { ExitName } from './exit-codes.ts'
import type { GlobalOption, Option, Options } from './options.ts'

/** A command line that can be done, of a command with these options beside the global ones. */
export interface CommandLine<Name extends string = never> {
  readonly command: Command
  readonly arguments: readonly string[]
  /** Values of options; of a switch the empty text. */
  readonly options: Readonly<Record<GlobalOption | Name, string | undefined>>
  /** Values of options that are lists, where there are any. */
  readonly lists?: Readonly<Record<string, readonly string[]>>
}

/** Does what a command line says; `ok` when it says nothing else. The table is for help and completion. */
export type Program<Name extends string = never> = (
  line: CommandLine<Name>,
  table: CommandTable,
) => Promise<ExitName | undefined>

/** A command of the command line. */
export interface Command {
  /** The words that name it, one or two: `status`, `audit list`. */
  readonly name: string
  /** Names of what follows it; one in brackets may be left out. */
  readonly arguments?: readonly string[]
  readonly summary: string
  readonly details?: string
  /** Those of its own, in the order of its help. */
  readonly options?: Options
  /** What the shell completes its argument with. */
  readonly completes?: 'file'
  /** Loads its program: what a command does not need is not compiled. */
  readonly load: () => Promise<Program>
}

/** The commands of a noun, which its file exports. */
export type Noun = readonly Command[]

/**
 * The sum of all nouns: the parser, the help, the completion of the shell, the manual page and docs/edgehostctl.md are
 * made from it.
 */
export interface CommandTable {
  readonly commands: readonly Command[]
  /** Every option there is, by its long name. */
  readonly options: ReadonlyMap<string, Option>
}

/** Declares a command whose program reads no other options than the command has. */
export const defineCommand = <Name extends string = never>(
  command: Omit<Command, 'options' | 'load'> & {
    readonly options?: Readonly<Record<Name, Option>>
    readonly load: () => Promise<Program<NoInfer<Name>>>
  },
): Command => command as Command
