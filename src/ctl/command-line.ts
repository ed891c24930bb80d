import { parseArgs, type ParseArgsConfig } from 'node:util'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import { commandNames, commands, options, optionsOf } from './commands.ts'
import type { Command, CommandName, Option, OptionName } from './commands.ts'
import { Failure } from './exit-codes.ts'

/** A command line that can be done. */
export interface CommandLine {
  readonly command: CommandName
  readonly arguments: readonly string[]
  /** Values of options; of a switch the empty text. */
  readonly options: Readonly<Partial<Record<OptionName, string>>>
  /** Values of options that are lists, where there are any. */
  readonly lists?: Readonly<Partial<Record<OptionName, readonly string[]>>>
}

// What --output means by it, a file or a format, can be told apart.
const archiveName = /\.(?:tgz|tar|tar\.gz|tar\.zst)$/

/**
 * Reads a command line by the table of commands. Options may stand anywhere; the last one of a name counts.
 * @param argv without program and script
 * @throws Failure usage, with the nearest name where there is one
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const given: Partial<Record<OptionName, string>> = {}
  const lists: Partial<Record<OptionName, string[]>> = {}
  const words: string[] = []
  let outputFile: string | undefined
  // The list that words belong to until the next option.
  let list: string[] | undefined
  for (const token of readTokens(argv)) {
    if (token.kind === 'positional') (list ?? words).push(token.value)
    else list = undefined
    if (token.kind !== 'option') continue
    const { rawName, inlineValue } = token
    // Not strict, Node takes the next option for a value. None begins with a digit: --since -2h.
    const isOption = token.value?.startsWith('-') === true && !/^-(\d|$)/.test(token.value) && !inlineValue
    const value = isOption ? undefined : token.value
    if (token.name === 'output' && archiveName.test(value ?? '')) {
      outputFile = value
      continue
    }
    const name = checkOption(token.name, rawName, value)
    if ((options[name] as Option).isList !== true) given[name] = value ?? ''
    else {
      const values = (lists[name] ??= [])
      values.push(value ?? '')
      if (isCommand(words)) list = values
    }
  }
  // As every program of the family does.
  if (given.help !== undefined) return { command: 'help', arguments: words, options: {} }
  if (given.version !== undefined) return { command: 'version', arguments: [], options: {} }
  const command = findCommand(words)
  const rest = words.slice(command.split(' ').length)
  checkArguments(command, rest)
  const taken = optionsOf(command)
  if (outputFile !== undefined) {
    if (taken.includes('file')) given.file ??= outputFile
    else checkOption('output', '--output', outputFile)
  }
  for (const name of [...Object.keys(given), ...Object.keys(lists)] as OptionName[]) {
    if (!taken.includes(name)) throw refuse(`${command} takes no --${name}`, command)
  }
  const found = { command, arguments: rest, options: given }
  return Object.keys(lists).length > 0 ? { ...found, lists } : found
}

const isCommand = (words: readonly string[]): boolean => (commandNames as string[]).includes(words.join(' '))

/** The commands of a group such as `audit`; empty where the words name no group. */
export const groupOf = (words: readonly string[]): CommandName[] =>
  words.length === 1 ? commandNames.filter((name) => name.startsWith(`${words[0] ?? ''} `)) : []

/** The command that words begin with. */
export function findCommand(words: readonly string[]): CommandName {
  if (words.length === 0) throw refuse('a command is missing')
  const found = commandNames.find((name) => {
    const parts = name.split(' ')
    return parts.every((part, index) => part === words[index])
  })
  if (found) return found
  const [first = '', second] = words
  const firsts = [...new Set(commandNames.map((name) => name.split(' ')[0] ?? ''))]
  if (!firsts.includes(first))
    throw refuse(`unknown command ${printable(first)}${suggest(first, [...firsts, ...commandNames])}`)
  const seconds = commandNames.flatMap((name) =>
    name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : [],
  )
  if (second === undefined) throw refuse(`${first} needs one of: ${seconds.join(', ')}`, first)
  throw refuse(`unknown command ${first} ${printable(second)}${suggest(second, seconds, `${first} `)}`, first)
}

function readTokens(argv: readonly string[]) {
  const known: NonNullable<ParseArgsConfig['options']> = {}
  for (const [name, option] of Object.entries<Option>(options)) {
    const type = option.value === undefined ? 'boolean' : 'string'
    known[name] = option.short === undefined ? { type } : { type, short: option.short }
  }
  // Not strict: its messages know no nearest name.
  return parseArgs({ args: [...argv], options: known, strict: false, allowPositionals: true, tokens: true })
    .tokens
}

function checkOption(name: string, rawName: string, value: string | undefined): OptionName {
  if (!Object.hasOwn(options, name))
    throw refuse(`unknown option ${printable(rawName)}${suggest(name, Object.keys(options), '--')}`)
  const option: Option = options[name as OptionName]
  if (option.value === undefined && value !== undefined) throw refuse(`${rawName} takes no value`)
  if (option.value !== undefined && value === undefined)
    throw refuse(`${rawName} needs a value: ${option.value}`)
  if (option.choices && !option.choices.includes(value ?? ''))
    throw refuse(`${rawName} is ${printable(value ?? '')}; it must be one of: ${option.choices.join(', ')}`)
  return name as OptionName
}

function checkArguments(name: CommandName, given: readonly string[]): void {
  const wanted = (commands[name] as Command).arguments
  const missing = wanted.find((each, index) => !each.startsWith('[') && given[index] === undefined)
  if (missing !== undefined) throw refuse(`${name} needs ${missing}`, name)
  const extra = given[wanted.length]
  if (extra !== undefined && wanted.at(-1)?.endsWith('...]') !== true)
    throw refuse(`unexpected argument ${printable(extra)}`, name)
}

function suggest(name: string, known: readonly string[], prefix = ''): string {
  const near = nearestName(name, known)
  return near === undefined ? '' : `; did you mean ${prefix}${near}?`
}

function refuse(message: string, command?: string): Failure {
  const where = command === undefined ? 'edgehostctl help' : `edgehostctl help ${command}`
  return new Failure('usage', `${message}\nSee: ${where}`)
}
