import { program } from '../base/program.ts'
import { writeOutput } from '../program/standard-output.ts'
import { environmentNames } from './target.ts'
import { nextWords, pluralsOf } from './command-line.ts'
import type { CommandTable, Program } from './command.ts'
import { globalNames, optionsOf } from './command-table.ts'

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
