import { commandNames, commands, options, optionsOf } from './commands.ts'
import type { Command, CommandName, Option, OptionName } from './commands.ts'
import { findCommand } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { wrap } from './text.ts'

const width = 79

/** How to use everything, or one command. */
export function helpText(words: readonly string[]): string {
  return words.length === 0 ? overview() : describe(findCommand(words))
}

function overview(): string {
  const globals = (Object.keys(options) as OptionName[]).filter((name) => (options[name] as Option).isGlobal)
  return [
    'Usage: edgehostctl [OPTIONS] COMMAND [ARGUMENTS]',
    '',
    'Shows and manages an edge host: this one over the socket of its daemon, as root',
    'and without a password; another one over HTTPS with --host.',
    '',
    'Commands:',
    ...columns(commandNames.map((name) => [synopsis(name), commands[name].summary])),
    '',
    'Options of every command:',
    ...columns([...globals, 'version' as const].map((name) => [flags(name), options[name].summary])),
    '',
    'Exit codes:',
    ...columns(Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning])),
    '',
    'See edgehostctl(1), and edgehostctl help COMMAND.',
    '',
  ].join('\n')
}

function describe(name: CommandName): string {
  const command: Command = commands[name]
  const own = command.options ?? []
  return [
    `Usage: edgehostctl ${synopsis(name)}${own.length > 0 ? ' [OPTIONS]' : ''}`,
    '',
    ...wrap(`${command.summary}.`, width),
    ...(command.details === undefined ? [] : wrap(command.details, width)),
    '',
    ...(own.length > 0
      ? ['Options:', ...columns(own.map((each) => [flags(each), options[each].summary])), '']
      : []),
    'Options of every command:',
    ...columns(
      optionsOf(name)
        .filter((each) => !own.includes(each))
        .map((each) => [flags(each), options[each].summary]),
    ),
    '',
  ].join('\n')
}

/** A command with its arguments, for example `sessions revoke UID`. */
export function synopsis(name: CommandName): string {
  return [name, ...commands[name].arguments].join(' ')
}

/** An option as it is typed, for example `-o, --output=FORMAT`. */
export function flags(name: OptionName): string {
  const { short, value }: Option = options[name]
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : `=${value}`}`
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const longest = Math.min(26, Math.max(...rows.map(([term]) => term.length)))
  return rows.flatMap(([term, text]) => {
    const [first = '', ...rest] = wrap(text, width - longest - 4)
    const indent = ' '.repeat(longest + 4)
    const lines = rest.map((line) => indent + line)
    if (term.length > longest) return [`  ${term}`, indent + first, ...lines]
    return [`  ${term.padEnd(longest)}  ${first}`, ...lines]
  })
}
