import { printable } from '../../base/printable.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import type { User } from './schemas.ts'
import { program } from '../../base/program.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/client.ts'
import { showList } from '../../ctl/list.ts'
import { parseBody, requireFields } from '../../ctl/reply.ts'
import { type Column, moment, oneLine } from '../../ctl/layout.ts'
import { findUid, users } from '../commands/find.ts'

type Role = User['spec']['roles'][number]

const names: readonly string[] = ['admin', 'operator', 'viewer'] satisfies readonly Role[]

/**
 * Roles as they are typed: `operator`, `admin,viewer`, or `none`.
 * @throws Failure usage
 */
export function parseRoles(text: string): Role[] {
  const roles = text === 'none' ? [] : text.split(',')
  const wrong = roles.find((role) => !names.includes(role))
  if (wrong !== undefined)
    throw new Failure(
      'usage',
      `${printable(wrong) || 'an empty text'} is not a role; roles are ${names.join(', ')}, or none`,
    )
  return [...new Set(roles)] as Role[]
}

const layout: readonly Column<User>[] = [
  { title: 'E-MAIL', read: ({ spec }) => spec.emailId, isFlexible: true },
  { title: 'ROLES', read: ({ spec }) => spec.roles.join(', '), isFlexible: true },
  { title: 'STATE', read: stateOf, isFlexible: true },
  {
    title: 'LAST SIGN-IN',
    read: ({ status }) => status.lastSignIn && moment(status.lastSignIn),
    isFlexible: true,
  },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]

function stateOf({ status: { isActive, isPasswordResetting } }: User): string {
  if (isPasswordResetting) return 'asks for a link'
  return isActive ? 'active' : 'no password yet'
}

export const listUsers = showList<User>(users.path, layout)

type CreateOptions = 'admin' | 'role' | 'first-name' | 'last-name'

export async function createUser({ client, line, output }: Context<CreateOptions>): Promise<undefined> {
  const { admin, role, 'first-name': firstName, 'last-name': lastName } = line.options
  if (admin !== undefined && role !== undefined && role !== 'admin')
    throw new Failure('usage', `--admin contradicts --role=${role}; give one of them`)
  const [emailId = ''] = line.arguments
  const given = admin === undefined ? role : 'admin'
  const spec = {
    emailId,
    roles: given === undefined ? [] : [given],
    ...(firstName === undefined ? {} : { firstName }),
    ...(lastName === undefined ? {} : { lastName }),
  }
  const { uid } = parseBody<{ uid: string }>(await client.change('POST', users.path, { spec }), ['uid'])
  const user = await client.get<User>(`${users.path}/${encodeURIComponent(uid)}`, ['status'])
  const { activationLink } = user.status
  // A session of an API key gets no way to a password.
  if (activationLink === undefined) {
    await output.show({ uid }, () => '')
    output.note(
      `The user ${oneLine(emailId)} is made. The link to set a password is shown only after a login with a password: ${program.ctl} user activation ${oneLine(emailId)}`,
    )
    return undefined
  }
  await output.show({ uid, activationLink }, () => `${oneLine(activationLink)}\n`)
  explainLink(output, emailId)
  return undefined
}

export async function renewLink({ client, line, output }: Context): Promise<undefined> {
  const [user = ''] = line.arguments
  const uid = await findUid(client, users, user)
  const reply = await client.change('POST', `${users.path}/${uid}/activation`)
  const { activationLink } = parseBody<{ activationLink: string }>(reply, ['activationLink'])
  await output.show({ uid, activationLink }, () => `${oneLine(activationLink)}\n`)
  explainLink(output, user)
  return undefined
}

const explainLink = (output: Context['output'], user: string) =>
  output.note(
    `This link lets ${oneLine(user)} set a password. It is valid for a day, works once, and is a secret until then: ${program.ctl} activate LINK`,
  )

export async function setRoles({ client, line, output }: Context): Promise<undefined> {
  const [user = '', list = ''] = line.arguments
  const roles = parseRoles(list)
  const uid = await findUid(client, users, user)
  await client.change('PUT', `${users.path}/${uid}/roles`, { roles })
  output.note(`The roles of ${oneLine(user)} for the tenant: ${roles.join(', ') || 'none'}.`)
  return undefined
}

export async function deleteUser({ client, line, output, terminal }: Context<'yes'>): Promise<undefined> {
  const [word = ''] = line.arguments
  const uid = await findUid(client, users, word)
  const user = await client.get<User>(`${users.path}/${uid}`, ['spec'])
  const { emailId } = requireFields<User['spec']>(user.spec, ['emailId'])
  if (line.options.yes === undefined)
    confirmDeletion(terminal, `The user ${oneLine(emailId)} and its API keys will go, and its tokens end.`)
  await client.change('DELETE', `${users.path}/${uid}`)
  output.note(`The user ${oneLine(emailId)} is deleted.`)
  return undefined
}
