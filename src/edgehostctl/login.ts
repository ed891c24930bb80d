import type { Static } from 'typebox'
import type { CurrentUser } from '../auth/schemas.ts'
import { nameAccount, readPassword } from '../ctl/confirm.ts'
import type { Context } from '../ctl/client.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { tokenFields, type LoginAnswer, type Tokens } from './host-sessions.ts'
import { requireHost } from '../ctl/logout.ts'
import { errorOf, parseBody, requireFields, toFailure, understand } from '../ctl/reply.ts'
import { createSessions } from '../ctl/session.ts'
import { oneLine } from '../ctl/layout.ts'

const loginPath = '/v1/users/default/login?setCookie=false'
const resetPath = '/v1/users/default/password/reset'

/** Logs in and stores the tokens. */
export async function login(context: Context<'password-stdin'>): Promise<undefined> {
  const { client, line, output, protocol, terminal } = context
  const target = requireHost(context.target, 'login')
  const given = nameAccount(line)
  const sessions = createSessions(target, protocol)
  // Accepts the key of the host before a password is typed.
  await client.askPlain('GET', '/v1/ping', undefined)
  await sessions.prepare()
  const user = given ?? terminal.ask('User: ')?.trim()
  if (!user) throw new Failure('usage', 'the user name is missing; use edgehostctl login USER')
  const password = await readPassword(context, `Password of ${oneLine(user)} on ${target.name}: `)
  let reply = await client.askPlain('POST', loginPath, { username: user, password })
  if (reply.status === 401 && errorOf(reply)?.code === 'PasswordExpired') {
    const newPassword = await askNewPassword(context)
    const body = { username: user, oldPassword: password, newPassword }
    const changed = await client.askPlain('POST', resetPath, body)
    if (changed.status !== 204) throw toFailure(changed)
    reply = await client.askPlain('POST', loginPath, { username: user, password: newPassword })
  }
  if (reply.status !== 200) throw toFailure(reply)
  const { Token, IsFirstLogin } = parseBody<LoginAnswer>(reply, ['Token'])
  await sessions.put({ user, tokens: requireFields<Tokens>(Token, tokenFields) })
  const current = await client.get<Static<typeof CurrentUser>>('/v1/users/current', ['role', 'userName'])
  const first = IsFirstLogin ? '; the first login of this account on this host' : ''
  const account = understand(() => `${oneLine(current.userName)} (${oneLine(current.role)})`)
  output.note(`Logged in on ${target.name} as ${account}${first}.`)
  return undefined
}

async function askNewPassword({ line, terminal, output }: Context<'password-stdin'>): Promise<string> {
  const expired = 'the password is correct but has expired'
  if (line.options['password-stdin'] !== undefined)
    throw new Failure(
      'failed',
      `${expired}; log in on a terminal to choose a new one, or run passwd on the host`,
    )
  output.note(`edgehostctl: ${expired}.`)
  const first = await terminal.askSecretly('New password: ')
  const again = await terminal.askSecretly('Repeat the new password: ')
  if (first === undefined || first === '' || first !== again)
    throw new Failure('failed', 'the two passwords are empty or differ; nothing was changed, try again')
  return first
}
