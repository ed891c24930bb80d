import { program } from '../base/program.ts'
import { writeOutput } from '../program/standard-output.ts'
import type { Command, CommandTable, Program } from './command.ts'
import { findCommand, groupOf } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { globalOptions, versionOption, type Option, type Options } from './options.ts'
import { readPaper } from './terminal.ts'
import { wrap } from './text.ts'

const widest = 79
/** A description narrower than this is placed below its term. */
const narrowestText = 24

/** `help`. */
export const printHelp: Program = async ({ arguments: words, options }, table) => {
  const { columns } = readPaper(process.env, options['no-color'] !== undefined)
  writeOutput(helpText(words, table, columns))
  return undefined
}

/**
 * The help of the program, of a group of commands such as `audit`, or of one command.
 * @param columns of the terminal
 * @throws Failure usage, where there is no such command
 */
export function helpText(words: readonly string[], table: CommandTable, columns = Infinity): string {
  const width = Math.min(widest, columns)
  const lines = words.length === 0 ? overview(table, width) : describe(words, table, width)
  return `${lines.join('\n')}\n`
}

function overview({ commands }: CommandTable, width: number): string[] {
  return [
    ...wrap(`Usage: ${program.ctl} [OPTIONS] COMMAND [ARGUMENTS]`, width),
    '',
    ...wrap(
      `Shows and manages ${program.noun === 'host' ? 'an edge host' : 'a platform'}: this one over the socket of its daemon, as root and without a password; another one over HTTPS with --host.`,
      width,
    ),
    '',
    'Commands:',
    ...summaries(commands, width),
    '',
    'Options of every command:',
    ...flagLines({ ...globalOptions, version: versionOption }, width),
    '',
    'Exit codes:',
    ...columns(
      Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
      width,
    ),
    '',
    ...wrap(`See ${program.ctl}(1), and ${program.ctl} help COMMAND.`, width),
  ]
}

function describe(words: readonly string[], table: CommandTable, width: number): string[] {
  const group = groupOf(words, table)
  return group.length > 0
    ? describeGroup(words.join(' '), group, width)
    : describeCommand(findCommand(words, table), width)
}

function describeGroup(words: string, group: readonly Command[], width: number): string[] {
  return [
    ...wrap(`Usage: ${program.ctl} ${words} COMMAND [OPTIONS]`, width),
    '',
    'Commands:',
    ...summaries(group, width),
    '',
    'Options of every command:',
    ...flagLines(globalOptions, width),
    '',
    ...wrap(`For the options of a command: ${program.ctl} help ${group[0]?.name ?? words}`, width),
  ]
}

function describeCommand(command: Command, width: number): string[] {
  const { summary, details, options } = command
  return [
    ...wrap(`Usage: ${program.ctl} ${synopsis(command)}${options ? ' [OPTIONS]' : ''}`, width),
    '',
    ...wrap(`${summary}.`, width),
    ...(details === undefined ? [] : wrap(details, width)),
    '',
    ...(options ? ['Options:', ...flagLines(options, width), ''] : []),
    'Options of every command:',
    ...flagLines(globalOptions, width),
  ]
}

const summaries = (commands: readonly Command[], width: number): string[] =>
  columns(
    commands.map((command) => [synopsis(command), command.summary]),
    width,
  )

const flagLines = (options: Options, width: number): string[] =>
  columns(
    Object.entries(options).map(([name, option]) => [flags(name, option), option.summary]),
    width,
  )

/** A command with its arguments, for example `session revoke UID`. */
export const synopsis = ({ name, arguments: words = [] }: Command): string => [name, ...words].join(' ')

/** An option as it is typed, for example `-o, --output=FORMAT`. */
export const flags = (name: string, { short, value }: Option): string =>
  `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : `=${value}`}`

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
