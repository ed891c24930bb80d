import { userSessions } from './user-sessions.ts'
import { parseBody, toFailure } from '../ctl/reply.ts'
import { createSessions } from '../ctl/session.ts'
import { program } from '../base/program.ts'
import { nameAccount, readPassword } from '../ctl/confirm.ts'
import type { Context, HostProgram } from '../ctl/client.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { requireHost } from '../ctl/logout.ts'
import { readBody } from '../ctl/request-body.ts'
import { oneLine } from '../ctl/layout.ts'
import { existsSync } from 'node:fs'
import { printable } from '../base/printable.ts'
import type { CommandLine, Program } from '../ctl/command.ts'
import { runOnHost } from '../ctl/run-on-host.ts'
import { defaultSocket, environmentNames } from '../ctl/target.ts'

/** Logs in and stores the token, or the API key. */
export async function login(context: Context<'password-stdin' | 'api-key-file'>): Promise<undefined> {
  const { client, line, output, protocol, terminal } = context
  const target = requireHost(context.target, 'login')
  const sessions = createSessions(target, protocol)
  const keyFile = line.options['api-key-file']
  const given = nameAccount(line)
  // Accepts the key of the platform before a secret is typed.
  await client.askPlain('GET', program.ping, undefined)
  await sessions.prepare()
  if (keyFile !== undefined) {
    if (given !== undefined || line.options['password-stdin'] !== undefined)
      throw new Failure('usage', '--api-key-file excludes a user and a password: the key has its own user')
    return keepKey(context, keyFile)
  }
  const user = given ?? terminal.ask('E-mail: ')?.trim()
  if (!user) throw new Failure('usage', `the e-mail address is missing; use ${program.ctl} login EMAIL`)
  const password = await readPassword(context, `Password of ${oneLine(user)} on ${target.name}: `)
  const reply = await client.askPlain('POST', '/v1/auth/authenticate', { emailId: user, password })
  if (reply.status !== 200) throw toFailure(reply)
  await sessions.put({ user, tokens: userSessions.tokensOf(reply) })
  output.note(`Logged in on ${target.name} as ${oneLine(user)}.`)
  return undefined
}

/** Stores an API key that the platform accepts. */
async function keepKey({ client, output, protocol, target: any }: Context, file: string): Promise<undefined> {
  const target = requireHost(any, 'login')
  const apiKey = readBody(file, '--api-key-file').toString().trim()
  // What a header field may contain (RFC 9110, 5.5), without spaces.
  if (!/^[\x21-\x7e]{1,512}$/.test(apiKey))
    throw new Failure('usage', '--api-key-file: the file does not contain an API key, which is one word')
  const session = { user: 'API key', tokens: { apiKey } }
  const reply = await client.askPlain('GET', '/v1/users/info', undefined, protocol.headers(session))
  if (reply.status !== 200) throw toFailure(reply)
  const { emailId } = parseBody<{ emailId: string }>(reply, ['emailId'])
  await createSessions(target, protocol).put(session)
  output.note(`The API key of ${oneLine(emailId)} is used on ${target.name} from now on.`)
  return undefined
}

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

/** A link of the API, or of the page in a browser. @throws Failure usage for a text that is no such link */
function parseLink({ arguments: [text = ''] }: Line): { host: string; path: string } {
  const [, host = '', token] =
    /^(?:https:\/\/([^/]+))?\/v1\/auth\/password\/([\w.~-]+)\/activate$/.exec(text) ??
    /^https:\/\/([^/]+)\/#\/password\/([\w.~-]+)$/.exec(text) ??
    []
  if (token === undefined)
    throw new Failure(
      'usage',
      `${printable(text)} is not a link to set a password; it has the form https://PLATFORM/v1/auth/password/TOKEN/activate or https://PLATFORM/#/password/TOKEN`,
    )
  return { host, path: `/v1/auth/password/${token}/activate` }
}
