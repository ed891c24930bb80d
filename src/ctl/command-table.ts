import type { Command, CommandTable, Noun } from './command.ts'
import type { SessionProtocol } from './session.ts'
import { globalOptions, versionOption, type Option, type Options } from './options.ts'

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

/** Names of the options a command takes, those of every command first. */
export function optionsOf({ options }: CommandTable, { options: own = {} }: Command): string[] {
  return [...options.keys()].filter((name) => globalNames.includes(name) || Object.hasOwn(own, name))
}
