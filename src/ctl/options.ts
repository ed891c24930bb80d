import { program } from '../base/program.ts'
import { environmentNames } from './target.ts'

/** An option of the command line. */
export interface Option {
  readonly short?: string
  /** Name of its value; without one it is a switch. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly summary: string
  /** Whether all words up to the next option are its values, and it may be repeated: --pack packs/*. */
  readonly isList?: boolean
  /** Set where an option of this name has another meaning in this command than in others. */
  readonly isOfCommand?: true
  /** Completion of its value by the shell. */
  readonly completes?: 'file'
}

/** Options by their long names. */
export type Options = Readonly<Record<string, Option>>

/** Options that every command takes. */
export const globalOptions = {
  output: {
    short: 'o',
    value: 'FORMAT',
    choices: ['table', 'json', 'yaml'],
    summary: 'table for people (the default), json or yaml for programs.',
  },
  host: {
    value: 'HOST[:PORT]',
    summary: `Talk to this ${program.noun} over HTTPS instead of to this one over its socket; https://HOST:PORT is accepted too. Also: ${environmentNames.host}.`,
  },
  user: {
    value: 'USER',
    summary: 'The account; a session of a different account is refused.',
  },
  fingerprint: {
    value: 'SHA256',
    summary: 'On the first contact, accept a certificate with exactly this fingerprint, without a question.',
  },
  socket: {
    value: 'PATH',
    summary: `The socket of the daemon. Also: ${environmentNames.socket}.`,
    completes: 'file',
  },
  'no-color': { summary: 'No colours, even on a terminal. Also: NO_COLOR.' },
  help: { short: 'h', summary: 'Show how to use the command.' },
} as const satisfies Options

export type GlobalOption = keyof typeof globalOptions

/** `--version`, which needs no command. */
export const versionOption: Option = { summary: 'Print the version.' }

// Options of several nouns. Options of one noun are declared with it.

export const limit: Option = { value: 'N', summary: 'The largest number of items; 0 means all.' }

export const filter: Option = {
  value: 'EXPRESSION',
  summary:
    'Only items that match: PATH=VALUE, several with AND or OR between. The answer to another path names those that the list has.',
}

export const yes: Option = { summary: 'Do not ask.' }

export const file: Option = {
  value: 'FILE',
  summary: 'The file to write; - is standard output.',
  completes: 'file',
}

export const name: Option = {
  value: 'NAME',
  summary:
    'Name in lists. Default: of a definition the name of its infrastructure profile, of a bundle the name of its file or folder.',
}

export const passwordStdin: Option = {
  summary: 'Read the password from standard input, up to the end of its first line.',
}

/** Settings of a host that its cluster makes. */
export const hostSettings = {
  ntp: { value: 'SERVER...', summary: 'Names or addresses of the NTP servers.', isList: true },
  'ssh-key': {
    value: 'FILE...',
    summary: 'Files with public keys of OpenSSH, a line each; - is standard input.',
    isList: true,
    completes: 'file',
  },
  none: { summary: 'No NTP servers and no SSH keys.' },
} as const satisfies Record<string, Option>
