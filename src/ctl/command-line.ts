import { parseArgs, type ParseArgsConfig } from 'node:util'
import { nearestName } from '../base/nearest-name.ts'
import { program } from '../base/program.ts'
import { escapeInvisible, printable, shellWord } from '../base/printable.ts'
import {
  type Command,
  type CommandLine,
  type CommandTable,
  globalNames,
  optionOf,
  optionsOf,
} from './command.ts'
import { Failure, exitCodes } from './exit-codes.ts'
import { OutputFailed, writeError } from '../program/standard-output.ts'
import { outputFailure } from './output.ts'
import { eachLine } from './layout.ts'

// A value of --output with such an ending is a file, any other is a format.
const archiveName = /\.(?:tgz|tar|tar\.gz|tar\.zst)$/
// A name that says another format than the file would have.
const otherFormat = /\.(?:tgz|tar|zip|7z|gz|zst|xz|bz2|lz4)$/i

/**
 * Parses a command line by the table of commands. Options may be anywhere; of several with one name the last counts.
 * @param argv without program and script
 * @throws Failure usage, with the nearest name where there is one
 */
export function parseCommandLine(argv: readonly string[], table: CommandTable): CommandLine {
  // All values of each option: whether they are a list depends on the command, which may come later.
  const given: Record<string, string[]> = {}
  const words: string[] = []
  let outputFile: string | undefined
  const formats: Pick<GivenOption, 'rawName' | 'value'>[] = []
  // The list that words belong to until the next option.
  let list: string[] | undefined
  // Number of the words before --.
  let wordsBefore: number | undefined
  for (const token of parseTokens(argv, table)) {
    const passing = findPassing(words, table)
    const isOwn =
      token.kind === 'option-terminator' || (token.kind === 'option' && ownOfPassing.includes(token.name))
    if (passing && wordsBefore !== words.length && !isOwn) throw lacksMark(passing, argv, token.index)
    if (token.kind === 'option-terminator') wordsBefore = words.length
    if (token.kind === 'positional') {
      const isNoun = words.length === 0 || (words.length === 1 && words[0] === 'help')
      if (list) list.push(token.value)
      else words.push(isNoun ? nounOf(token.value, table) : token.value)
    } else list = undefined
    if (token.kind !== 'option') continue
    const { name, rawName, inlineValue } = token
    // In this mode Node takes the next option as the value. No option begins with a digit, so -2h in --since -2h is a value.
    const isOption = token.value?.startsWith('-') === true && !/^-(\d|$)/.test(token.value) && !inlineValue
    const value = isOption ? undefined : token.value
    if (name === 'output' && archiveName.test(value ?? '')) {
      outputFile = value
      continue
    }
    const known = table.commands.find((command) => command.name === words.join(' '))
    // A format or a file: only the command says which.
    if (name === 'output' && known === undefined) formats.push({ rawName, value })
    else checkOption({ table, command: known, name, rawName, value })
    const values = (given[name] ??= [])
    values.push(value ?? '')
    if (takesList(words, name, table)) list = values
  }
  // Before all other checks, as in the programs of systemd.
  if (given.help !== undefined) return lineOf(findCommand(['help'], table), words, {})
  if (given.version !== undefined) return lineOf(findCommand(['version'], table), [], {})
  const command = findCommand(words, table)
  for (const format of formats) checkOption({ table, command, name: 'output', ...format })
  const rest = words.slice(command.name.split(' ').length)
  if (command.passesOn === undefined) checkArguments(command, rest)
  else if (wordsBefore === undefined) throw lacksMark(command, argv, argv.length)
  else if (given.output !== undefined)
    throw refuse(
      `${command.name} takes no --output; write the one of ${command.passesOn} behind --`,
      command.name,
    )
  const taken = optionsOf(table, command)
  for (const name of Object.keys(given)) {
    if (!taken.includes(name)) throw refuse(`${command.name} takes no --${name}`, command.name)
  }
  const isList = (name: string) => optionOf(table, name, command)?.isList === true
  const single = Object.entries(given).filter(([name]) => !isList(name))
  const lists = Object.fromEntries(Object.entries(given).filter(([name]) => isList(name)))
  const options = Object.fromEntries(single.map(([name, values]) => [name, values.at(-1)]))
  if (outputFile !== undefined && !endsAsArchive(outputFile, command))
    checkOption({ table, command, name: 'output', rawName: '--output', value: outputFile })
  // Of the command that takes lists of files, the archive is named by --output only.
  const isOnlyOutput = isList('file')
  if (outputFile !== undefined && !isOnlyOutput) options.file ??= outputFile
  const { file } = options
  if (file !== undefined && command.archive && otherFormat.test(file) && !endsAsArchive(file, command))
    throw refuse(`--file is ${printable(file)}; the archive is ${archiveOf(command.archive)}`, command.name)
  return {
    ...lineOf(command, rest, options),
    ...(Object.keys(lists).length > 0 ? { lists } : {}),
    ...(outputFile !== undefined && isOnlyOutput ? { outputFile } : {}),
  }
}

// Options of ours that may stand before --; -o is an option of the other program.
const ownOfPassing = [...globalNames, 'version'].filter((name) => name !== 'output')

/** The command that words name, where it passes arguments to another program. */
const findPassing = (words: readonly string[], { commands }: CommandTable): Command | undefined =>
  commands.find(({ name, passesOn }) => passesOn !== undefined && name === words.join(' '))

/** @param at index of the first argument of the other program */
function lacksMark({ name, passesOn = '' }: Command, argv: readonly string[], at: number): Failure {
  const rest = at < argv.length ? argv.slice(at) : ['...']
  const line = [...argv.slice(0, at).filter((word) => word !== '--'), '--', ...rest]
  return refuse(
    `the arguments of ${passesOn} begin behind --: ${program.ctl} ${escapeInvisible(line.map(shellWord).join(' '))}`,
    name,
  )
}

const endsAsArchive = (file: string, { archive = [] }: Command): boolean =>
  archive.some((ending) => file.endsWith(ending))

function archiveOf(endings: readonly string[]): string {
  const [last, ...others] = endings.toReversed()
  return `a file that ends in ${others.length > 0 ? `${others.toReversed().join(', ')} or ` : ''}${last}`
}

const lineOf = (
  command: Command,
  words: readonly string[],
  options: Readonly<Partial<Record<string, string>>>,
): CommandLine => ({ command, arguments: words, options: options as CommandLine['options'] })

/** The first word of a command: nouns are singular, and their plural means the same, `users` as `user`. */
const nounOf = (word: string, table: CommandTable): string =>
  pluralsOf(table).includes(word) ? word.slice(0, -1) : word

/** The plurals of the nouns. */
export const pluralsOf = ({ commands }: CommandTable): string[] => [
  ...new Set(
    commands.map(({ name }) => name.split(' ')).flatMap(([noun = '', next]) => (next ? `${noun}s` : [])),
  ),
]

/** The commands of a group such as `audit` or `content registry`; empty where the words name no group. */
export const groupOf = (words: readonly string[], { commands }: CommandTable): Command[] =>
  words.length === 0 ? [] : commands.filter(({ name }) => name.startsWith(`${words.join(' ')} `))

/** What may come after words: the first words of all commands, the second words of a group. */
export function nextWords(words: readonly string[], table: CommandTable): string[] {
  const group = words.length === 0 ? table.commands : groupOf(words, table)
  return [...new Set(group.map(({ name }) => name.split(' ')[words.length] ?? ''))]
}

/** The command that words begin with. */
export function findCommand(words: readonly string[], table: CommandTable): Command {
  if (words.length === 0) throw refuse('a command is missing')
  const found = table.commands.find(({ name }) =>
    name.split(' ').every((part, index) => part === words[index]),
  )
  if (found) return found
  const group = longestGroup(words, table)
  const next = nextWords(group, table)
  const wrong = words[group.length]
  const name = group.join(' ')
  if (wrong === undefined) throw refuse(`${name} needs one of: ${next.join(', ')}`, name)
  if (name !== '')
    throw refuse(`unknown command ${name} ${printable(wrong)}${suggest(wrong, next, `${name} `)}`, name)
  const known = [...next, ...table.commands.map((command) => command.name)]
  throw refuse(`unknown command ${printable(wrong)}${suggest(wrong, known)}`)
}

/** Whether words behind an option are its values: it is a list, and the command has the arguments that it needs. */
function takesList(words: readonly string[], option: string, table: CommandTable): boolean {
  for (let length = words.length; length > 0; length -= 1) {
    const name = words.slice(0, length).join(' ')
    const command = table.commands.find((each) => each.name === name)
    if (!command) continue
    const needed = command.arguments?.filter((each) => !each.startsWith('[')).length ?? 0
    return words.length - length >= needed && optionOf(table, option, command)?.isList === true
  }
  return false
}

/** As many of the words as name a group. */
function longestGroup(words: readonly string[], table: CommandTable): readonly string[] {
  const end = words.findIndex((_, index) => groupOf(words.slice(0, index + 1), table).length === 0)
  return end < 0 ? words : words.slice(0, end)
}

function parseTokens(argv: readonly string[], { options }: CommandTable) {
  const known: NonNullable<ParseArgsConfig['options']> = {}
  for (const [name, option] of options) {
    const type = option.value === undefined ? 'boolean' : 'string'
    known[name] = option.short === undefined ? { type } : { type, short: option.short }
  }
  // Not strict, since its messages would not suggest the nearest name.
  return parseArgs({ args: [...argv], options: known, strict: false, allowPositionals: true, tokens: true })
    .tokens
}

interface GivenOption {
  readonly table: CommandTable
  /** Where it is known already. */
  readonly command: Command | undefined
  readonly name: string
  /** As it was typed. */
  readonly rawName: string
  readonly value: string | undefined
}

function checkOption({ table, command, name, rawName, value }: GivenOption): void {
  const option = optionOf(table, name, command)
  if (!option)
    throw refuse(`unknown option ${printable(rawName)}${suggest(name, [...table.options.keys()], '--')}`)
  if (option.value === undefined && value !== undefined) throw refuse(`${rawName} takes no value`)
  if (option.value !== undefined && value === undefined)
    throw refuse(`${rawName} needs a value: ${option.value}`)
  if (option.choices && !option.choices.includes(value ?? '')) {
    const endings = name === 'output' ? command?.archive : undefined
    const file = endings ? `, or ${archiveOf(endings)}` : ''
    throw refuse(
      `${rawName} is ${printable(value ?? '')}; it must be one of: ${option.choices.join(', ')}${file}`,
    )
  }
}

function checkArguments({ name, arguments: wanted = [] }: Command, given: readonly string[]): void {
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
  const where = `${program.ctl} help${command === undefined ? '' : ` ${command}`}`
  return new Failure('usage', `${message}\nSee: ${where}`)
}

/** The process of a command line. It loads only the code of the given command. */
export function runCommandLine(table: CommandTable): void {
  main(table).catch((error: unknown) => {
    const failure = error instanceof OutputFailed ? outputFailure(error) : error
    if (!(failure instanceof Failure)) throw failure
    if (failure.message !== '') writeError(`${program.ctl}: ${eachLine(failure.message)}\n`)
    process.exitCode = exitCodes[failure.exitName].code
  })
}

async function main(table: CommandTable): Promise<void> {
  const line = parseCommandLine(process.argv.slice(2), table)
  const run = await line.command.load()
  process.exitCode = exitCodes[(await run(line, table)) ?? 'ok'].code
}
