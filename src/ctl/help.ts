import { commandNames, commands, options, optionsOf } from './commands.ts'
import type { Command, CommandName, Option, OptionName } from './commands.ts'
import { findCommand, groupOf } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { wrap } from './text.ts'

const widest = 79
/** A description narrower than this goes below its term. */
const narrowestText = 24

const globals = (Object.keys(options) as OptionName[]).filter(
  (name) => (options[name] as Option).isGlobal === true,
)

/**
 * How to use everything, a group of commands such as `audit`, or one command.
 * @param columns of the terminal
 * @throws Failure usage, where there is no such command
 */
export function helpText(words: readonly string[], columns = Infinity): string {
  const width = Math.min(widest, columns)
  const lines = words.length === 0 ? overview(width) : describe(words, width)
  return `${lines.join('\n')}\n`
}

function overview(width: number): string[] {
  return [
    ...wrap('Usage: edgehostctl [OPTIONS] COMMAND [ARGUMENTS]', width),
    '',
    ...wrap(
      'Shows and manages an edge host: this one over the socket of its daemon, as root and without a password; another one over HTTPS with --host.',
      width,
    ),
    '',
    'Commands:',
    ...summaries(commandNames, width),
    '',
    'Options of every command:',
    ...flagLines([...globals, 'version'], width),
    '',
    'Exit codes:',
    ...columns(
      Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
      width,
    ),
    '',
    ...wrap('See edgehostctl(1), and edgehostctl help COMMAND.', width),
  ]
}

function describe(words: readonly string[], width: number): string[] {
  const group = groupOf(words)
  return group.length > 0
    ? describeGroup(words.join(' '), group, width)
    : describeCommand(findCommand(words), width)
}

function describeGroup(words: string, group: readonly CommandName[], width: number): string[] {
  return [
    ...wrap(`Usage: edgehostctl ${words} COMMAND [OPTIONS]`, width),
    '',
    'Commands:',
    ...summaries(group, width),
    '',
    'Options of every command:',
    ...flagLines(globals, width),
    '',
    ...wrap(`For the options of a command: edgehostctl help ${group[0] ?? words}`, width),
  ]
}

function describeCommand(name: CommandName, width: number): string[] {
  const command: Command = commands[name]
  const own = command.options ?? []
  return [
    ...wrap(`Usage: edgehostctl ${synopsis(name)}${own.length > 0 ? ' [OPTIONS]' : ''}`, width),
    '',
    ...wrap(`${command.summary}.`, width),
    ...(command.details === undefined ? [] : wrap(command.details, width)),
    '',
    ...(own.length > 0 ? ['Options:', ...flagLines(own, width), ''] : []),
    'Options of every command:',
    ...flagLines(
      optionsOf(name).filter((each) => !own.includes(each)),
      width,
    ),
  ]
}

const summaries = (names: readonly CommandName[], width: number): string[] =>
  columns(
    names.map((name) => [synopsis(name), commands[name].summary]),
    width,
  )

const flagLines = (names: readonly OptionName[], width: number): string[] =>
  columns(
    names.map((name) => [flags(name), options[name].summary]),
    width,
  )

/** A command with its arguments, for example `sessions revoke UID`. */
export function synopsis(name: CommandName): string {
  return [name, ...commands[name].arguments].join(' ')
}

/** An option as it is typed, for example `-o, --output=FORMAT`. */
export function flags(name: OptionName): string {
  const { short, value }: Option = options[name]
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : `=${value}`}`
}

function columns(rows: readonly (readonly [string, string])[], width: number): string[] {
  const longest = Math.min(26, Math.max(...rows.map(([term]) => term.length)))
  const isBelow = width - longest - 4 < narrowestText
  const indent = ' '.repeat(isBelow ? 6 : longest + 4)
  return rows.flatMap(([term, text]) => {
    const lines = wrap(text, width - indent.length).map((line) => indent + line)
    if (isBelow || term.length > longest)
      return [...wrap(term, width - 2).map((line) => `  ${line}`), ...lines]
    return [`  ${term.padEnd(longest)}  ${(lines[0] ?? '').trimStart()}`, ...lines.slice(1)]
  })
}
