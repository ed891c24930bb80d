import { program } from '../base/program.ts'
import { writeOutput } from '../program/standard-output.ts'
import { type Program, type Command, type CommandTable, globalNames, optionsOf } from './command.ts'
import { findCommand, groupOf, nextWords, pluralsOf } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { globalOptions, versionOption, type Option, type Options } from './options.ts'
import { readPaper } from './terminal.ts'
import { wrap } from './layout.ts'
import { environmentNames } from './target.ts'

// Baked in by the build.
declare const __VERSION__: string

/** `version`. */
export const printVersion: Program = async () => {
  writeOutput(`${program.ctl} ${__VERSION__}\n`)
  return undefined
}

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

/** `completion bash`. */
export const printCompletion: Program = async (_line, table) => {
  writeOutput(bashCompletion(table))
  return undefined
}

/** The completion of bash; works without the package bash-completion. */
export function bashCompletion(table: CommandTable): string {
  const { commands, options } = table
  const firsts = nextWords([], table)
  const groups = groupNames(table).map((group) => ({
    group,
    next: nextWords(group.split(' '), table).join(' '),
  }))
  const valued = [...options].flatMap(([name, { short, value, choices, completes }]) => {
    const spelled = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
    return value === undefined ? [] : [{ spelled, choices, completes }]
  })
  const values = valued.map(({ spelled, choices, completes }) => {
    const reply = choices
      ? `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$word"))`
      : completes
        ? 'COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null'
        : 'COMPREPLY=()'
    return `    ${spelled.join(' | ')}) ${reply}; return ;;`
  })
  return `# bash completion of ${program.ctl}, made from its table of commands.
_${program.ctl}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before= command= each index skip= candidates=
  ((COMP_CWORD > 0)) && before=\${COMP_WORDS[COMP_CWORD - 1]}
  # bash splits --output=json at the =.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $before in
${values.join('\n')}
  esac
  for ((index = 1; index < COMP_CWORD; index++)); do
    each=\${COMP_WORDS[index]}
    if [[ $skip ]]; then
      [[ $each == = ]] || skip=
      continue
    fi
    # bash also splits host:5080 at the colon.
    if [[ $each == : ]]; then
      skip=yes
      continue
    fi
    case $each in
    ${valued.flatMap(({ spelled }) => spelled).join(' | ')}) skip=yes ;;
    -*) ;;
    ${pluralsOf(table).join(' | ')})
      [[ $command && $command != help ]] || each=\${each%s}
      command+=\${command:+ }$each
      ;;
    *) command+=\${command:+ }$each ;;
    esac
  done
  case $command in
  '') candidates='${firsts.join(' ')}' ;;
${groups.map(({ group, next }) => `  '${group}') candidates='${next}' ;;`).join('\n')}
  help) candidates='${firsts.join(' ')}' ;;
${groups.map(({ group, next }) => `  'help ${group}') candidates='${next}' ;;`).join('\n')}
${commands
  .filter(({ completes }) => completes === 'file')
  .map(
    ({ name }) =>
      `  '${name}') [[ $word == -* ]] || { COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null; return; } ;;`,
  )
  .join('\n')}
${commands
  .filter(({ completes }) => typeof completes === 'function')
  .map(({ name }) => `  '${name}') [[ $word == -* ]] || { _${program.ctl}_names ${name}; return; } ;;`)
  .join('\n')}
  esac
  if [[ $word == -* ]]; then
    case $command in
${commands.map((command) => `    '${command.name}'*) candidates='${flagsOf(optionsOf(table, command))}' ;;`).join('\n')}
    *) candidates='${flagsOf(globalNames)} --version' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
# Names of this machine alone: another one could ask for a password.
_${program.ctl}_names() {
  COMPREPLY=()
  [[ \${${environmentNames.host}-} || " \${COMP_WORDS[*]} " == *' --host'* ]] && return
  COMPREPLY=($(compgen -W "$(timeout 2 "\${COMP_WORDS[0]}" completion names "$@" 2>/dev/null </dev/null)" -- "$word"))
}
complete -F _${program.ctl} ${program.ctl}
`
}

/** `audit`, `content`, `content registry`. */
const groupNames = ({ commands }: CommandTable): string[] => [
  ...new Set(
    commands.flatMap(({ name }) => {
      const words = name.split(' ')
      return words.slice(1).map((_, index) => words.slice(0, index + 1).join(' '))
    }),
  ),
]

const flagsOf = (names: readonly string[]) => names.map((name) => `--${name}`).join(' ')
