import { commandNames, commands, options, optionsOf } from './commands.ts'
import type { Command, Option, OptionName } from './commands.ts'

/** The completion of bash; works without the package bash-completion. */
export function bashCompletion(): string {
  const firsts = [...new Set(commandNames.map((name) => name.split(' ')[0] ?? ''))]
  const groups = firsts.filter((first) => commandNames.some((name) => name.startsWith(`${first} `)))
  const valued = (Object.keys(options) as OptionName[]).filter((name) => 'value' in options[name])
  const spelled = (name: OptionName) => {
    const { short }: Option = options[name]
    return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
  }
  const values = valued.flatMap((name) => {
    const { choices, completes }: Option = options[name]
    const reply = choices
      ? `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$word"))`
      : completes
        ? 'COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null'
        : 'COMPREPLY=()'
    return [`    ${spelled(name).join(' | ')}) ${reply}; return ;;`]
  })
  return `# bash completion of edgehostctl, made from its table of commands.
_edgehostctl() {
  local word=\${COMP_WORDS[COMP_CWORD]} before= command= each index skip= candidates=
  ((COMP_CWORD > 0)) && before=\${COMP_WORDS[COMP_CWORD - 1]}
  # bash takes --output=json apart at the =.
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
    # And host:5080 at the colon.
    if [[ $each == : ]]; then
      skip=yes
      continue
    fi
    case $each in
    ${valued.flatMap(spelled).join(' | ')}) skip=yes ;;
    -*) ;;
    *) command+=\${command:+ }$each ;;
    esac
  done
  case $command in
  '') candidates='${firsts.join(' ')}' ;;
${groups.map((first) => `  ${first}) candidates='${seconds(first)}' ;;`).join('\n')}
  help) candidates='${firsts.join(' ')}' ;;
${groups.map((first) => `  'help ${first}') candidates='${seconds(first)}' ;;`).join('\n')}
${commandNames
  .filter((name) => (commands[name] as Command).completes === 'file')
  .map(
    (name) =>
      `  '${name}') [[ $word == -* ]] || { COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null; return; } ;;`,
  )
  .join('\n')}
  esac
  if [[ $word == -* ]]; then
    case $command in
${commandNames.map((name) => `    '${name}'*) candidates='${flagsOf(optionsOf(name))}' ;;`).join('\n')}
    *) candidates='${flagsOf((Object.keys(options) as OptionName[]).filter((name) => (options[name] as Option).isGlobal))} --version' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -F _edgehostctl edgehostctl
`
}

const seconds = (first: string) =>
  commandNames
    .flatMap((name) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []))
    .join(' ')

const flagsOf = (names: readonly OptionName[]) => names.map((name) => `--${name}`).join(' ')
