// `ctl` is the command line, edgehostctl, a client of the API. Only `authoring`, `connect` and the folder `commands` of each room may use it. It
// uses `base`, `errors`, the `schemas.ts` of every room as types only, and three files that the import law names: `lists/page.ts`, which is as pure
// as `base`, `system/place-file.ts`, which writes a file that the user has named, and `program/remove-on-signal.ts`, which removes unfinished files
// at a signal. It writes its own files (`~/.config/edgehostctl`) synchronously.
//
// Each noun declares its commands in a file of the folder `commands` of its room, or of `ctl` where they belong to no room (`status`, `login`,
// `api`, `help`); the programs of a room's commands are beside that file. Such a folder may use `ctl`, and of its room the `schemas.ts` or
// `schemas/`, as types. `edgehostctl/nouns.ts` lists the nouns, and `ctl/command.ts` makes the table for parser, help, completion, manual page and
// `docs/edgehostctl.md`.
//
// edgeplatformctl is made of the same code: `edgeplatformctl/nouns.ts` lists its nouns, of the rooms of the platform, and names how its sessions
// are kept (`SessionProtocol` in `ctl/session.ts`). `base/program.ts` has the names, default port and socket. No code of a host's room is
// in its bundle. The commands of both programs for the audit trail are in `audit/commands`; each noun names the path of its API. Both
// command lines warn once in a command where a reply carries `Deprecation` or `Sunset` (`ctl/run-on-host.ts`).
//
// Some commands replace the process by another program, by execve(2), and start no child process: `config check` becomes `edgehostd
// --check-config`, `session revoke-all` becomes `edgehostd --end-sessions`, and `support` becomes `support.cjs`, which is not a client: it starts
// programs and reads the state of the daemon, whether the daemon runs or not. `definition`, `content build` and `content inspect` become
// `definition.cjs`, which packs and unpacks archives with the code of the daemon (room `authoring`). `cluster kubectl` becomes the kubectl of the
// cluster on its host; elsewhere it starts the one in PATH (`system/attached.ts`), since a file with the kubeconfig has to be removed after it.
//
// Nothing secret is sent before the key of the host is known: `ctl/transport.ts` gives the HTTP client only connections whose certificate it has
// accepted. Invocations share tokens under a lock (`ctl/folder.ts`), since a refresh token is valid once. edgehostctl starts without a cache of V8,
// and takes less than 1.3 times as long as `node -e 0`, because it loads only the program of the given command, and `yaml` is in a file of its own.

import type { ExitName } from './exit-codes.ts'
import { type GlobalOption, type Option, type Options, globalOptions, versionOption } from './options.ts'
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

/** Runs a command. Returns its exit status; `undefined` means `ok`. The table is for help and completion. */
export type Program<Name extends string = never> = (
  line: CommandLine<Name>,
  table: CommandTable,
) => Promise<ExitName | undefined>

type ArchiveEnding = '.tar' | '.tar.gz' | '.tgz' | '.tar.zst'

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
  /** Completion of its first argument by the shell: a file, or the output of a program, see `offer` of names.ts. */
  readonly completes?: 'file' | (() => Promise<Program>)
  /** The endings of the archive that it writes, which `--output FILE` or its option `--file` names. */
  readonly archive?: readonly ArchiveEnding[]
  /** The program that gets everything behind `--`, whatever it looks like; the command has no arguments or options of its own. */
  readonly passesOn?: string
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
  /** Protocol of the sessions on other machines. */
  readonly protocol: SessionProtocol
}

/** Declares a command; its program can read only the options of the command. */
export const defineCommand = <Name extends string = never>(
  command: Omit<Command, 'options' | 'load'> & {
    readonly options?: Readonly<Record<Name, Option>>
    readonly load: () => Promise<Program<NoInfer<Name>>>
  },
): Command => command as Command

/** Names of the options that every command takes. */
export const globalNames: readonly string[] = Object.keys(globalOptions)

/**
 * Makes the table from the commands of all nouns, in their order.
 * @throws Error where a command or an option is declared twice
 */
export function sumCommands(nouns: readonly Noun[], protocol: SessionProtocol): CommandTable {
  const commands = nouns.flat()
  checkNames(commands.map(({ name }) => name))
  const options = new Map<string, Option>()
  const declare = (declared: Options) => {
    for (const [name, option] of Object.entries(declared)) {
      if (option.isOfCommand === true) continue
      if ((options.get(name) ?? option) !== option)
        throw new Error(
          `the option --${name} is declared twice; declare options of several nouns in ctl/options.ts`,
        )
      options.set(name, option)
    }
  }
  declare(globalOptions)
  declare({ version: versionOption })
  for (const { options: own = {} } of commands) declare(own)
  for (const command of commands) checkOwnOptions(command, options)
  const shorts = [...options.values()].flatMap(({ short }) => short ?? [])
  const twice = findTwice(shorts)
  if (twice !== undefined) throw new Error(`the option -${twice} is declared twice`)
  return { commands, options, protocol }
}

/** An option with a meaning of its own has a value as its namesake, since it is parsed before the command is known. */
function checkOwnOptions({ name: command, options = {} }: Command, declared: CommandTable['options']): void {
  for (const [name, option] of Object.entries(options)) {
    const namesake = declared.get(name)
    if (option.isOfCommand !== true) continue
    if (namesake === undefined || globalNames.includes(name))
      throw new Error(`the option --${name} of ${command} has no namesake in another command`)
    if ((namesake.value === undefined) !== (option.value === undefined) || option.short !== namesake.short)
      throw new Error(`the option --${name} of ${command} is parsed in another way than its namesake`)
  }
}

function checkNames(names: readonly string[]): void {
  const twice = findTwice(names)
  if (twice !== undefined) throw new Error(`the command ${twice} is declared twice`)
  const group = names.find((name) => names.some((each) => each.startsWith(`${name} `)))
  if (group !== undefined) throw new Error(`${group} is declared as a command and as a group of commands`)
}

const findTwice = (names: readonly string[]): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index)

/** An option as a command means it; without a command, or where it does not take the option, as most commands do. */
export const optionOf = (
  { options }: CommandTable,
  name: string,
  command: Command | undefined,
): Option | undefined =>
  command?.options !== undefined && Object.hasOwn(command.options, name)
    ? command.options[name]
    : options.get(name)

/** Names of the options a command takes, the global ones first. */
export function optionsOf({ options }: CommandTable, { options: own = {} }: Command): string[] {
  return [...options.keys()].filter((name) => globalNames.includes(name) || Object.hasOwn(own, name))
}
