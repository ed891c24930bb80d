/** An option of the command line. */
export interface Option {
  readonly short?: string
  /** Name of its value; without one it is a switch. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly summary: string
  /** Whether every command takes it. */
  readonly isGlobal?: boolean
  /** Whether it takes everything up to the next option, and may be given again: --pack packs/*. */
  readonly isList?: boolean
  /** What the shell completes its value with. */
  readonly completes?: 'file'
}

/** Every option there is. */
export const options = {
  output: {
    short: 'o',
    value: 'FORMAT',
    choices: ['table', 'json', 'yaml'],
    summary: 'table for people (the default), json or yaml for programs.',
    isGlobal: true,
  },
  host: {
    value: 'HOST[:PORT]',
    summary:
      'Talk to this host over HTTPS instead of to this one over its socket; https://HOST:PORT is taken too. Also: EDGEHOSTCTL_HOST.',
    isGlobal: true,
  },
  user: {
    value: 'USER',
    summary: 'The account; a session of a different account is refused.',
    isGlobal: true,
  },
  fingerprint: {
    value: 'SHA256',
    summary: 'On the first contact, accept a certificate with exactly this fingerprint, without a question.',
    isGlobal: true,
  },
  socket: {
    value: 'PATH',
    summary: 'The socket of the daemon. Also: EDGEHOSTCTL_SOCKET.',
    isGlobal: true,
    completes: 'file',
  },
  'no-color': { summary: 'No colours, even on a terminal. Also: NO_COLOR.', isGlobal: true },
  help: { short: 'h', summary: 'Show how to use the command.', isGlobal: true },
  version: { summary: 'Print the version.' },
  'password-stdin': { summary: 'Read the password from standard input, up to the end of its first line.' },
  limit: { value: 'N', summary: 'The largest number of items; 0 means all.' },
  filter: { value: 'EXPRESSION', summary: 'Only items that match, for example spec.actor.uid=alice.' },
  since: {
    value: 'TIME',
    summary:
      'Only records from this time on, as journalctl takes it: 2026-01-31, "2026-01-31 08:00", yesterday, "2 hours ago", -2h.',
  },
  until: { value: 'TIME', summary: 'Only records up to this time.' },
  head: {
    value: 'NUMBER:HASH',
    summary:
      'Number and hash of an earlier record, as an hourly line of the journal has them; the trail must contain it.',
  },
  file: {
    value: 'FILE',
    summary: 'The file to write; - is standard output.',
    completes: 'file',
  },
  profile: {
    value: 'FILE...',
    summary: 'Cluster profiles as the platform exports them, JSON or YAML.',
    isList: true,
    completes: 'file',
  },
  pack: {
    value: 'DIR...',
    summary: 'Folders, each a pack with its pack.json or a folder of packs.',
    isList: true,
    completes: 'file',
  },
  preset: {
    value: 'PACK:NAME...',
    summary: 'Presets of packs, each applied to the values that the profiles give the pack.',
    isList: true,
  },
  name: { value: 'NAME', summary: 'Name of the definition; by default that of its infrastructure profile.' },
  release: {
    value: 'VERSION',
    summary: 'Version of the definition; by default that of its infrastructure profile.',
  },
  data: { value: 'FILE', summary: 'The JSON body; - is standard input.', completes: 'file' },
} as const satisfies Record<string, Option>

export type OptionName = keyof typeof options

export const isSwitch = (name: OptionName): boolean => (options[name] as Option).value === undefined

/** A command of the command line. */
export interface Command {
  /** Names of what follows it; one in brackets may be left out. */
  readonly arguments: readonly string[]
  readonly summary: string
  readonly details?: string
  readonly options?: readonly OptionName[]
  /** What the shell completes its argument with. */
  readonly completes?: 'file'
}

const body = ['data'] as const

/**
 * Every command, by the words that name it. The parser, the help, the completion of the shell, the manual page and
 * docs/edgehostctl.md are made from this table.
 */
export const commands = {
  status: {
    arguments: [],
    summary: 'How this host is, on one screen, and what to do next',
  },
  login: {
    arguments: ['[USER]'],
    summary: 'Log in on the host of --host with an account of its operating system',
    details:
      'Asks for the password without an echo. The tokens are kept under ~/.config/edgehostctl, readable only by their owner, and are renewed automatically. If the password has expired, a new one is asked for.',
    options: ['password-stdin'],
  },
  logout: { arguments: [], summary: 'End the session on the host of --host and forget its tokens' },
  forget: {
    arguments: ['HOST[:PORT]'],
    summary: 'Forget the public key of a host, and the session there',
    details: 'For a host that was reinstalled. The next contact shows its fingerprint and asks.',
  },
  'host show': { arguments: [], summary: 'What the machine is: hardware, network, DNS, NTP' },
  'sessions list': {
    arguments: [],
    summary: 'Who is logged in; an administrator sees everyone',
    options: ['limit', 'filter'],
  },
  'sessions revoke': { arguments: ['UID'], summary: 'End a session' },
  'sessions revoke-all': {
    arguments: [],
    summary: 'End every session of this host, also after its state was restored from a backup',
    details:
      'Needs root, and no daemon that runs. A restored database brings back sessions that had ended. This removes the secret in the state folder that all tokens depend on; the next start of the daemon makes another one, and everyone has to log in again. If the daemon runs, restart it.',
  },
  'config check': {
    arguments: ['[FILE]'],
    summary: 'Every problem of the configuration of this host, with file and line',
    details: 'The same as edgehostd --check-config; FILE stands in for /etc/edgehostd/config.yaml.',
    completes: 'file',
  },
  'audit list': {
    arguments: [],
    summary: 'Who did what, newest first; the last 50 without --limit',
    options: ['limit', 'filter', 'since', 'until'],
  },
  'audit verify': {
    arguments: [],
    summary: 'Whether the audit trail is whole and unaltered',
    options: ['head'],
  },
  'audit download': {
    arguments: [],
    summary: 'The whole audit trail as a tar archive of NDJSON files',
    options: ['file'],
  },
  'api get': { arguments: ['PATH'], summary: 'Ask the API for a path and print the reply as it came' },
  'api post': { arguments: ['PATH'], summary: 'POST to a path of the API', options: body },
  'api put': { arguments: ['PATH'], summary: 'PUT to a path of the API', options: body },
  'api patch': { arguments: ['PATH'], summary: 'PATCH a path of the API', options: body },
  'api delete': { arguments: ['PATH'], summary: 'DELETE a path of the API', options: body },
  'definition build': {
    arguments: [],
    summary: 'Pack exported profiles and packs into a definition archive',
    details:
      'Needs no host. --output FILE, a name that ends in .tgz or .tar.zst, means the same as --file FILE; the name says how it is compressed. The same files give the same bytes.',
    options: ['profile', 'pack', 'preset', 'file', 'name', 'release'],
  },
  'definition inspect': {
    arguments: ['FILE'],
    summary: 'What is in a definition archive: profiles, packs, images, variables',
    details:
      'Needs no host. Every sum in the archive is checked; sensitive defaults are masked. Images are those that packs list and manifests name; those that only the values of charts or lines of templates show are marked as guessed.',
    completes: 'file',
  },
  'definition validate': {
    arguments: ['FILE'],
    summary: 'Every problem of a definition archive, with its place',
    details: 'Needs no host. Exit code 1 when there is an error; warnings alone are 0.',
    completes: 'file',
  },
  support: {
    arguments: [],
    summary: 'Everything that helps to understand this host in one archive, secrets masked',
    details:
      'Configuration, journal, unit state, facts, metrics, versions, database statistics and the head of the audit trail, as a .tar.zst for root only to read. Needs root, but no running daemon; what could not be read is listed. The last 20000 lines of the journal.',
    options: ['file'],
  },
  version: { arguments: [], summary: 'Print the version' },
  'completion bash': {
    arguments: [],
    summary: 'Print the completion of bash: source <(edgehostctl completion bash)',
  },
  help: {
    arguments: ['[COMMAND...]'],
    summary: 'Show how to use edgehostctl, a group of commands or one command',
  },
} as const satisfies Record<string, Command>

export type CommandName = keyof typeof commands

/** Commands about files, for which no host is asked. */
export type DefinitionCommand = Extract<CommandName, `definition ${string}`>

export const isDefinitionCommand = (name: CommandName): name is DefinitionCommand =>
  name.startsWith('definition ')

export const commandNames = Object.keys(commands) as CommandName[]

/** Options a command takes, those of all commands included. */
export function optionsOf(name: CommandName): OptionName[] {
  const own: readonly OptionName[] = (commands[name] as Command).options ?? []
  return (Object.keys(options) as OptionName[]).filter(
    (option) => own.includes(option) || (options[option] as Option).isGlobal === true,
  )
}
