import type { ExitName } from './exit-codes.ts'
import type { GlobalOption, Option, Options } from './options.ts'
import type { SessionProtocol } from './session.ts'

/** A valid command line. `Name`: the options of its command beside the global ones. */
export interface CommandLine<Name extends string = never> {
  readonly command: Command
  readonly arguments: readonly string[]
  /** Values of options; an empty text for a switch. */
  readonly options: Readonly<Record<GlobalOption | Name, string | undefined>>
  /** Values of options that are lists; absent where the command line has none. */
  readonly lists?: Readonly<Record<string, readonly string[]>>
  /** The file of `--output FILE`, of a command that writes an archive. */
  readonly outputFile?: string
}

/** Runs a command. Returns how it ends; `undefined` means `ok`. The table is for help and completion. */
export type Program<Name extends string = never> = (
  line: CommandLine<Name>,
  table: CommandTable,
) => Promise<ExitName | undefined>

export type ArchiveEnding = '.tar' | '.tar.gz' | '.tgz' | '.tar.zst'

/** A command of the command line. */
export interface Command {
  /** The words that name it, one to three: `status`, `audit list`, `content registry show`. */
  readonly name: string
  /** Names of its arguments; an argument in brackets is optional. */
  readonly arguments?: readonly string[]
  readonly summary: string
  readonly details?: string
  /** Its own options, in the order of its help. */
  readonly options?: Options
  /** How the shell completes its first argument: by a file, or by what a program prints, see `offer` of names.ts. */
  readonly completes?: 'file' | (() => Promise<Program>)
  /** The endings of the archive that it writes, which `--output FILE` or its option `--file` names. */
  readonly archive?: readonly ArchiveEnding[]
  /** Loads its program, so that only the code of this command is compiled. */
  readonly load: () => Promise<Program>
}

/** The commands of a noun, which its file exports. */
export type Noun = readonly Command[]

/**
 * All commands: the parser, the help, the completion of the shell, the manual page and its document are made from
 * this table.
 */
export interface CommandTable {
  readonly commands: readonly Command[]
  /** All options, by their long names. */
  readonly options: ReadonlyMap<string, Option>
  /** How sessions on other machines are kept. */
  readonly protocol: SessionProtocol
}

/** Declares a command; its program can read only the options of the command. */
export const defineCommand = <Name extends string = never>(
  command: Omit<Command, 'options' | 'load'> & {
    readonly options?: Readonly<Record<Name, Option>>
    readonly load: () => Promise<Program<NoInfer<Name>>>
  },
): Command => command as Command
