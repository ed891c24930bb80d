// edgehostctl(1) and docs/edgehostctl.md, from the table of commands by which the program parses its command line.
import type { Command } from '../src/ctl/command.ts'
import { exitCodes } from '../src/ctl/exit-codes.ts'
import { flags, synopsis } from '../src/ctl/help.ts'
import { commandTable } from '../src/ctl/nouns.ts'
import { globalOptions, type Option } from '../src/ctl/options.ts'

const introduction =
  'Shows and manages an edge host. On the host itself it talks to the daemon over a socket that root alone may open: being root is the login. With --host it talks to any host over HTTPS, after a login with an account of that host.'

const trust = [
  'On the first contact with a host the SHA-256 fingerprint of its certificate is shown, and nothing is sent before the user has confirmed that it matches the one on the console of the host (above its login prompt, and in sudo edgehostctl status). Without a terminal, --fingerprint has to give the fingerprint.',
  'From then on the public key of the host is compared: a renewed certificate with the same key is accepted, a different key is refused with exit code 5. A host that was reinstalled has a new key: edgehostctl forget HOST.',
]

const files: readonly (readonly [string, string])[] = [
  ['/run/edgehostd/edgehostd.sock', 'The socket of the daemon.'],
  ['~/.config/edgehostctl/hosts/', 'The public keys of hosts. XDG_CONFIG_HOME is honoured.'],
  ['~/.config/edgehostctl/sessions/', 'The tokens of logins (0600).'],
]

const environment: readonly (readonly [string, string])[] = [
  ['EDGEHOSTCTL_HOST', 'The host if --host is not given.'],
  ['EDGEHOSTCTL_SOCKET', 'The socket if --socket is not given.'],
  ['NO_COLOR', 'If it is not empty, the output has no colours.'],
]

const { commands, options } = commandTable

const ownOptions = ({ options: own = {} }: Command) =>
  [...options.keys()].flatMap((name): [string, Option][] =>
    own[name] === undefined ? [] : [[name, own[name]]],
  )

/** All options; below an option, those of its name that mean something else in one command. */
const allOptions = [...options].flatMap(([name, option]): [string, Option][] => [
  [name, option],
  ...commands.flatMap(({ options: own = {} }): [string, Option][] =>
    own[name]?.isOfCommand === true ? [[name, own[name]]] : [],
  ),
])

/** The manual page, man(7). */
export function manualPage(): string {
  const term = (name: string, text: string) => ['.TP', `.B ${roff(name)}`, roff(text)]
  const optionTerm = ([name, option]: readonly [string, Option]) => term(flags(name, option), option.summary)
  return `${[
    '.TH EDGEHOSTCTL 1 "" "edgehostd" "User Commands"',
    '.SH NAME',
    'edgehostctl \\- show and manage an edge host',
    '.SH SYNOPSIS',
    '.B edgehostctl',
    '.RI [ OPTIONS ]',
    '.I COMMAND',
    '.RI [ ARGUMENTS ]',
    '.SH DESCRIPTION',
    roff(introduction),
    '.SH COMMANDS',
    ...commands.flatMap((command) => [
      ...term(synopsis(command), `${command.summary}.`),
      ...(command.details === undefined ? [] : [roff(command.details)]),
      ...ownOptions(command).flatMap((each) => ['.RS', ...optionTerm(each), '.RE']),
    ]),
    '.SH OPTIONS',
    'Of every command:',
    ...Object.entries<Option>(globalOptions).flatMap(optionTerm),
    '.SH TRUST',
    ...trust.flatMap((text) => ['.PP', roff(text)]),
    '.SH EXIT STATUS',
    ...Object.values(exitCodes).flatMap(({ code, meaning }) => term(String(code), meaning)),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => term(name, text)),
    '.SH FILES',
    ...files.flatMap(([name, text]) => term(name, text)),
    '.SH EXAMPLES',
    ...examples.flatMap(([line, text]) => term(line, text)),
    '.SH SEE ALSO',
    '.BR edgehostd (8),',
    '.BR hostnamectl (1),',
    '.BR journalctl (1)',
  ].join('\n')}\n`
}

const examples: readonly (readonly [string, string])[] = [
  ['sudo edgehostctl status', 'Show the state of this host.'],
  ['edgehostctl --host box login alice', 'Log in on the host box.'],
  ['edgehostctl --host box audit list --limit=200 -o json', 'The last 200 audit records as JSON.'],
  [
    'edgehostctl --host box --fingerprint "$SHA256" login alice --password-stdin < password',
    'The first login of a script.',
  ],
]

/** docs/edgehostctl.md. */
export function manualMarkdown(): string {
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const table = (head: string, rows: readonly (readonly [string, string])[]) => [
    `| ${head} | |`,
    '|---|---|',
    ...rows.map(([name, text]) => `| \`${cell(name)}\` | ${cell(text)} |`),
  ]
  return `${[
    '# edgehostctl',
    '',
    '<!-- Made by `make docs` from the table of commands; do not edit. -->',
    '',
    introduction,
    '',
    '## Commands',
    '',
    ...table(
      'Command',
      commands.map((command) => [
        [synopsis(command), ...ownOptions(command).map(([name]) => `[--${name}]`)].join(' '),
        [`${command.summary}.`, command.details ?? ''].join(' ').trim(),
      ]),
    ),
    '',
    '## Options',
    '',
    ...table(
      'Option',
      allOptions.map(([name, option]) => [flags(name, option), option.summary]),
    ),
    '',
    '## Trust',
    '',
    trust.join('\n\n'),
    '',
    '## Exit codes',
    '',
    ...table(
      'Code',
      Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
    ),
    '',
    '## Environment and files',
    '',
    ...table('Name', [...environment, ...files]),
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
