// The manual page and the document of a command line, from the table of commands by which the program parses it.
import { documentPath, program } from '../src/base/program.ts'
import type { Command, CommandTable } from '../src/ctl/command.ts'
import { exitCodes } from '../src/ctl/exit-codes.ts'
import { flags, synopsis } from '../src/ctl/help.ts'
import { globalOptions, type Option } from '../src/ctl/options.ts'
import { environmentNames } from '../src/ctl/target.ts'

/** What differs between the manuals of our command lines beside their commands. */
export interface ManualTexts {
  /** Completes "show and manage". */
  readonly subject: string
  readonly introduction: string
  /** How a user knows that a certificate is the right one. */
  readonly comparison: string
  readonly examples: readonly (readonly [string, string])[]
}

export interface ManualOptions extends ManualTexts {
  readonly table: CommandTable
}

/** The manual of edgehostctl. */
export const ofHost: ManualTexts = {
  subject: 'an edge host',
  introduction:
    'Shows and manages an edge host. On the host itself it talks to the daemon over a socket that root alone may open: being root is the login. With --host it talks to any host over HTTPS, after a login with an account of that host.',
  comparison:
    'matches the one on the console of the host (above its login prompt, and in sudo edgehostctl status)',
  examples: [
    ['sudo edgehostctl status', 'Show the state of this host.'],
    ['edgehostctl --host box login alice', 'Log in on the host box.'],
    ['edgehostctl --host box audit list --limit=200 -o json', 'The last 200 audit records as JSON.'],
    [
      'edgehostctl --host box --fingerprint "$SHA256" login alice --password-stdin < password',
      'The first login of a script.',
    ],
  ],
}

/** The manual of edgeplatformctl. */
export const ofPlatform: ManualTexts = {
  subject: 'the platform of edge hosts',
  introduction:
    'Shows and manages the platform that edge hosts connect to. On the machine of the platform it talks to the daemon over a socket that root alone may open: being root is the login. With --host it talks to the platform over HTTPS, after a login with a user of the platform or with an API key.',
  comparison: 'matches the one that sudo edgeplatformctl status shows on the machine of the platform',
  examples: [
    ['sudo edgeplatformctl status', 'Show the state of the platform.'],
    ['sudo edgeplatformctl user create --admin you@plant.example', 'Make the first administrator.'],
    ['edgeplatformctl --host platform.plant.example login you@plant.example', 'Log in on the platform.'],
    [
      'edgeplatformctl --host platform.plant.example token create north --project=north > token',
      'Make a token with which hosts are registered.',
    ],
    [
      'sudo edgeplatformctl backup /backup/platform.backup',
      'Write the whole platform into one encrypted file.',
    ],
  ],
}

const trustOf = (comparison: string) => [
  `On the first contact with a ${program.noun} the SHA-256 fingerprint of its certificate is shown, and nothing is sent before the user has confirmed that it ${comparison}. Without a terminal, --fingerprint has to give the fingerprint.`,
  `From then on the public key of the ${program.noun} is compared: a renewed certificate with the same key is accepted, a different key is refused with exit code 5. A ${program.noun} that was reinstalled has a new key: ${program.ctl} forget HOST.`,
]

const files: readonly (readonly [string, string])[] = [
  [`/run/${program.folder}/${program.folder}.sock`, 'The socket of the daemon.'],
  [`~/.config/${program.ctl}/hosts/`, `The public keys of ${program.noun}s. XDG_CONFIG_HOME is honoured.`],
  [`~/.config/${program.ctl}/sessions/`, 'The tokens of logins (0600).'],
  [documentPath(''), 'The documents that messages name.'],
]

const environment: readonly (readonly [string, string])[] = [
  [environmentNames.host, `The ${program.noun} if --host is not given.`],
  [environmentNames.socket, 'The socket if --socket is not given.'],
  ['NO_COLOR', 'If it is not empty, the output has no colours.'],
]

const ownOptionsOf = ({ options }: CommandTable, { options: own = {} }: Command) =>
  [...options.keys()].flatMap((name): [string, Option][] =>
    own[name] === undefined ? [] : [[name, own[name]]],
  )

/** All options; below an option, those of its name that mean something else in one command. */
const allOptionsOf = ({ commands, options }: CommandTable) =>
  [...options].flatMap(([name, option]): [string, Option][] => [
    [name, option],
    ...commands.flatMap(({ options: own = {} }): [string, Option][] =>
      own[name]?.isOfCommand === true ? [[name, own[name]]] : [],
    ),
  ])

/** The manual page, man(7). */
export function manualPage({ table, subject, introduction, comparison, examples }: ManualOptions): string {
  const { commands } = table
  const { ctl } = program
  const term = (name: string, text: string) => ['.TP', `.B ${roff(name)}`, roff(text)]
  const optionTerm = ([name, option]: readonly [string, Option]) => term(flags(name, option), option.summary)
  return `${[
    `.TH ${ctl.toUpperCase()} 1 "" "${program.daemon}" "User Commands"`,
    '.SH NAME',
    `${ctl} \\- show and manage ${roff(subject)}`,
    '.SH SYNOPSIS',
    `.B ${ctl}`,
    '.RI [ OPTIONS ]',
    '.I COMMAND',
    '.RI [ ARGUMENTS ]',
    '.SH DESCRIPTION',
    roff(introduction),
    '.SH COMMANDS',
    ...commands.flatMap((command) => [
      ...term(synopsis(command), `${command.summary}.`),
      ...(command.details === undefined ? [] : [roff(command.details)]),
      ...ownOptionsOf(table, command).flatMap((each) => ['.RS', ...optionTerm(each), '.RE']),
    ]),
    '.SH OPTIONS',
    'Of every command:',
    ...Object.entries<Option>(globalOptions).flatMap(optionTerm),
    '.SH TRUST',
    ...trustOf(comparison).flatMap((text) => ['.PP', roff(text)]),
    '.SH EXIT STATUS',
    ...Object.values(exitCodes).flatMap(({ code, meaning }) => term(String(code), meaning)),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => term(name, text)),
    '.SH FILES',
    ...files.flatMap(([name, text]) => term(name, text)),
    '.SH EXAMPLES',
    ...examples.flatMap(([line, text]) => term(line, text)),
    '.SH SEE ALSO',
    ...(program.noun === 'host' ? ['.BR edgehostd (8),'] : []),
    '.BR hostnamectl (1),',
    '.BR journalctl (1)',
  ].join('\n')}\n`
}

/** The document of docs/. */
export function manualMarkdown({ table, introduction, comparison, examples }: ManualOptions): string {
  const { commands } = table
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const rowsOf = (head: string, rows: readonly (readonly [string, string])[]) => [
    `| ${head} | |`,
    '|---|---|',
    ...rows.map(([name, text]) => `| \`${cell(name)}\` | ${cell(text)} |`),
  ]
  return `${[
    `# ${program.ctl}`,
    '',
    '<!-- Made by `make docs` from the table of commands; do not edit. -->',
    '',
    introduction,
    '',
    '## Commands',
    '',
    ...rowsOf(
      'Command',
      commands.map((command) => [
        [synopsis(command), ...ownOptionsOf(table, command).map(([name]) => `[--${name}]`)].join(' '),
        [`${command.summary}.`, command.details ?? ''].join(' ').trim(),
      ]),
    ),
    '',
    '## Options',
    '',
    ...rowsOf(
      'Option',
      allOptionsOf(table).map(([name, option]) => [flags(name, option), option.summary]),
    ),
    '',
    '## Trust',
    '',
    trustOf(comparison).join('\n\n'),
    '',
    '## Exit codes',
    '',
    ...rowsOf(
      'Code',
      Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
    ),
    '',
    '## Environment and files',
    '',
    ...rowsOf('Name', [...environment, ...files]),
    '',
    '## Examples',
    '',
    '```sh',
    ...examples.map(([line, text]) => `${line}   # ${text}`),
    '```',
  ].join('\n')}\n`
}

/** Escapes a text for roff, groff_char(7): hyphens can be copied, and nothing in it is an escape or a request. */
const roff = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('~', '\\(ti')
    .replace(/^([.'])/, '\\&$1')
