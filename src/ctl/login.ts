import { readFileSync } from 'node:fs'
import type { Static } from 'typebox'
import type { CurrentUser } from '../auth/schemas.ts'
import type { CommandLine } from './command.ts'
import { Failure } from './exit-codes.ts'
import { removePrivate } from './folder.ts'
import { errorOf, parseBody, requireFields, toFailure, understand } from './reply.ts'
import type { Context } from './context.ts'
import { createSessions, tokenFields, type LoginAnswer, type Tokens } from './session.ts'
import { parseHost, type HostTarget, type Target } from './target.ts'
import { oneLine } from './text.ts'

const loginPath = '/v1/users/default/login?setCookie=false'
const resetPath = '/v1/users/default/password/reset'

/** Logs in and stores the tokens. */
export async function login(context: Context<'password-stdin'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const target = requireHost(context.target, 'login')
  const given = nameAccount(line)
  const sessions = createSessions(target)
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

function nameAccount({ arguments: [argument], options: { user } }: CommandLine): string | undefined {
  if (argument !== undefined && user !== undefined && argument !== user)
    throw new Failure(
      'usage',
      `login ${oneLine(argument)} contradicts --user ${oneLine(user)}; name one account`,
    )
  return argument ?? user
}

async function readPassword(
  { line, terminal }: Context<'password-stdin'>,
  question: string,
): Promise<string> {
  if (line.options['password-stdin'] !== undefined) {
    const [first = ''] = readFileSync(0, 'utf8').split('\n')
    return requirePassword(first.replace(/\r$/, ''))
  }
  const typed = await terminal.askSecretly(question)
  if (typed === undefined)
    throw new Failure('usage', 'there is no terminal to ask for the password on; use --password-stdin')
  return requirePassword(typed)
}

function requirePassword(password: string): string {
  if (password === '') throw new Failure('failed', 'the password is empty')
  return password
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

/** Ends the session on the host and removes its tokens here, also when the host does not answer. */
export async function logout({ client, output, target: anyTarget }: Context): Promise<undefined> {
  const target = requireHost(anyTarget, 'logout')
  const sessions = createSessions(target)
  if (!sessions.read()) throw new Failure('notLoggedIn', `not logged in on ${target.name}`)
  try {
    const { status } = await client.ask({ method: 'POST', path: '/v1/users/default/logout' })
    if (status >= 500)
      output.note(`edgehostctl: ${target.name} could not end the session now; it will expire`)
  } finally {
    await sessions.remove()
  }
  output.note(`Logged out on ${target.name}.`)
  return undefined
}

/** Removes the key and the session of a host. */
export async function forget({ line, output, folder }: Context): Promise<undefined> {
  const target = parseHost(line.arguments[0] ?? '', folder())
  // The tokens first, so that none are left without their key.
  await createSessions(target).remove()
  if (!removePrivate(target.keyFile)) throw new Failure('failed', `no key of ${target.name} is saved`)
  output.note(`The key of ${target.name} has been removed.`)
  return undefined
}

function requireHost(target: Target, command: string): HostTarget {
  if (target.kind === 'host') return target
  throw new Failure(
    'usage',
    `the local socket needs no login: root, who may open ${target.path}, is an administrator.\nFor another host: edgehostctl --host HOST ${command}`,
  )
}
