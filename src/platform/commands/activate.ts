import { existsSync } from 'node:fs'
import { printable } from '../../base/printable.ts'
import { program } from '../../base/program.ts'
import { readPassword } from '../../ctl/ask-account.ts'
import type { CommandLine, Program } from '../../ctl/command.ts'
import type { HostProgram } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { toFailure } from '../../ctl/reply.ts'
import { runOnHost } from '../../ctl/run-on-host.ts'
import { defaultSocket, environmentNames } from '../../ctl/target.ts'

type Line = CommandLine<'password-stdin'>

/** `activate LINK`. */
export const activate: Program<'password-stdin'> = async (line, table) =>
  runOnHost(withHostOfLink(line), setPassword, table, process.env)

/** The line with the platform of the link as its target, unless it names one, or root uses the socket of a platform that is here. */
function withHostOfLink(line: Line): Line {
  const { host, socket } = line.options
  const isNamed = [
    host,
    socket,
    process.env[environmentNames.host],
    process.env[environmentNames.socket],
  ].some(Boolean)
  const link = parseLink(line)
  const isSocketUsed = process.getuid?.() === 0 && existsSync(defaultSocket)
  if (isNamed || link.host === '' || isSocketUsed) return line
  return { ...line, options: { ...line.options, host: link.host } }
}

const setPassword: HostProgram<'password-stdin'> = async (context) => {
  const { client, line, output, target, terminal } = context
  const { path } = parseLink(line)
  // Accepts the key of the platform before a password is typed.
  await client.askPlain('GET', program.ping, undefined)
  const password = await readPassword(context, 'New password: ')
  if (line.options['password-stdin'] === undefined) {
    const again = await terminal.askSecretly('Repeat the new password: ')
    if (password !== again)
      throw new Failure('failed', 'the two passwords differ; nothing was changed, try again')
  }
  const reply = await client.askPlain('PATCH', path, { password })
  if (reply.status !== 204) throw toFailure(reply)
  const where = target.kind === 'host' ? target.name : 'HOST'
  output.note(`The password is set. Log in: ${program.ctl} --host ${where} login`)
  return undefined
}

/** @throws Failure usage for a text that is no such link */
function parseLink({ arguments: [text = ''] }: Line): { host: string; path: string } {
  const [, host = '', path] =
    /^(?:https:\/\/([^/]+))?(\/v1\/auth\/password\/[\w.~-]+\/activate)$/.exec(text) ?? []
  if (path === undefined)
    throw new Failure(
      'usage',
      `${printable(text)} is not a link to set a password; it has the form https://PLATFORM/v1/auth/password/TOKEN/activate`,
    )
  return { host, path }
}
