import { createClient } from './client.ts'
import type { CommandLine, CommandTable } from './command.ts'
import type { HostProgram } from './context.ts'
import type { ExitName } from './exit-codes.ts'
import { configFolder } from './folder.ts'
import { warnOfLifecycle } from './lifecycle.ts'
import { createOutput, type Format, type Output } from './output.ts'
import { understand } from './reply.ts'
import { chooseTarget } from './target.ts'
import { createTerminal, readPaper } from './terminal.ts'
import { createTransport } from './transport.ts'

/** Runs a command that talks to a host. */
export async function runOnHost<Name extends string>(
  line: CommandLine<Name>,
  program: HostProgram<Name>,
  { protocol }: CommandTable,
  environment: NodeJS.ProcessEnv,
): Promise<ExitName | undefined> {
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
  const watched = warnOfLifecycle(transport, output.note)
  const client = createClient({ target, transport: watched, user: options.user, protocol })
  try {
    return await program({ line, client, output: forReplies(output), target, terminal, protocol, folder })
  } finally {
    transport.close()
  }
}

/** Output for replies, whose fields are unchecked. */
const forReplies = (output: Output): Output => ({
  ...output,
  show: (reply, asText) => output.show(reply, (paper) => understand(() => asText(paper))),
})
