import { program } from '../../base/program.ts'
import { nameAccount, readPassword } from '../../ctl/ask-account.ts'
import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { requireHost } from '../../ctl/logout.ts'
import { readBody } from '../../ctl/read-body.ts'
import { parseBody, toFailure } from '../../ctl/reply.ts'
import { createSessions } from '../../ctl/session.ts'
import { oneLine } from '../../ctl/text.ts'
import { userSessions } from './user-sessions.ts'

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
  const { userUid } = parseBody<{ userUid: string }>(reply, ['userUid'])
  await createSessions(target, protocol).put(session)
  output.note(`The API key of user ${oneLine(userUid)} is used on ${target.name} from now on.`)
  return undefined
}
