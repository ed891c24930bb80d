import { createClient } from './client.ts'
import type { CommandLine } from './command-line.ts'
import type { CommandName, DefinitionCommand } from './commands.ts'
import type { Program } from './context.ts'
import type { ExitName } from './exit-codes.ts'
import { configFolder } from './folder.ts'
import { createOutput, type Format } from './output.ts'
import { chooseTarget } from './target.ts'
import { createTerminal, readPaper } from './terminal.ts'
import { createTransport } from './transport.ts'

type Offline =
  | 'version'
  | 'help'
  | 'completion bash'
  | 'config check'
  | 'sessions revoke-all'
  | 'support'
  | DefinitionCommand
type Online = Exclude<CommandName, Offline>

/** Loaded one by one: what a command does not need is not compiled. */
const programs: Readonly<Record<Online, () => Promise<Program>>> = {
  status: async () => (await import('./status.ts')).status,
  login: async () => (await import('./login.ts')).login,
  logout: async () => (await import('./login.ts')).logout,
  forget: async () => (await import('./login.ts')).forget,
  'host show': async () => (await import('./host.ts')).showHost,
  'sessions list': async () => (await import('./sessions.ts')).listSessions,
  'sessions revoke': async () => (await import('./sessions.ts')).revokeSession,
  'audit list': async () => (await import('./audit.ts')).listAudits,
  'audit verify': async () => (await import('./audit.ts')).verifyAudits,
  'audit download': async () => (await import('./audit-download.ts')).downloadAudits,
  'api get': async () => (await import('./api.ts')).askApi('GET'),
  'api post': async () => (await import('./api.ts')).askApi('POST'),
  'api put': async () => (await import('./api.ts')).askApi('PUT'),
  'api patch': async () => (await import('./api.ts')).askApi('PATCH'),
  'api delete': async () => (await import('./api.ts')).askApi('DELETE'),
}

/** Runs a command that talks to a host. */
export async function runCommand(
  line: CommandLine,
  command: Online,
  environment: NodeJS.ProcessEnv,
): Promise<ExitName> {
  const { options } = line
  const folder = () => configFolder(environment)
  const target = chooseTarget(options, environment, folder)
  const terminal = createTerminal()
  const output = createOutput({
    format: (options.output ?? 'table') as Format,
    paper: readPaper(environment, options['no-color'] !== undefined),
  })
  const transport = createTransport(target, {
    expected: options.fingerprint,
    ask: (question) => terminal.ask(question),
    say: output.note,
  })
  const client = createClient({ target, transport, user: command === 'login' ? undefined : options.user })
  const program = await programs[command]()
  try {
    return (await program({ line, client, output, target, terminal, folder })) ?? 'ok'
  } finally {
    transport.close()
  }
}
