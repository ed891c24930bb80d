import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/client.ts'
import { showList } from '../../ctl/list.ts'
import { parseBody, requireFields, understand } from '../../ctl/reply.ts'
import { type Column, moment, oneLine } from '../../ctl/layout.ts'
import type { Project } from './schemas.ts'
import { findUid, projects, users } from '../commands/find.ts'
import { parseRoles } from '../users/commands-manage.ts'

const layout: readonly Column<Project>[] = [
  { title: 'NAME', read: ({ metadata }) => metadata.name, isFlexible: true },
  { title: 'USERS', read: ({ spec }) => String(spec.users.length) },
  { title: 'CREATED', read: ({ metadata }) => moment(metadata.creationTimestamp), isFlexible: true },
  { title: 'UID', read: ({ metadata }) => metadata.uid },
]

export const listProjects = showList<Project>(projects.path, layout)

export async function createProject({ client, line, output }: Context): Promise<undefined> {
  const [name = ''] = line.arguments
  const reply = await client.change('POST', projects.path, { metadata: { name } })
  const { uid } = parseBody<{ uid: string }>(reply, ['uid'])
  await output.show({ uid }, () => `${oneLine(uid)}\n`)
  return undefined
}

/** Replaces the roles of one user in the list of the project. */
export async function setProjectRoles({ client, line, output }: Context): Promise<undefined> {
  const [word = '', user = '', list = ''] = line.arguments
  const roles = parseRoles(list)
  const uid = await findUid(client, projects, word)
  const userId = await findUid(client, users, user)
  const path = `${projects.path}/${uid}`
  const project = await client.get<Project>(path, ['metadata', 'spec'])
  const { name } = requireFields<Project['metadata']>(project.metadata, ['name'])
  const others = understand(() => project.spec.users.filter((each) => each.userId !== userId))
  await client.change('PUT', path, {
    metadata: { name },
    spec: { users: roles.length === 0 ? others : [...others, { userId, roles }] },
  })
  output.note(`The roles of ${oneLine(user)} in the project ${oneLine(name)}: ${roles.join(', ') || 'none'}.`)
  return undefined
}

export async function deleteProject({ client, line, output, terminal }: Context<'yes'>): Promise<undefined> {
  const [word = ''] = line.arguments
  const uid = await findUid(client, projects, word)
  const { metadata } = await client.get<Project>(`${projects.path}/${uid}`, ['metadata'])
  const { name } = requireFields<Project['metadata']>(metadata, ['name'])
  if (line.options.yes === undefined) confirmDeletion(terminal, `The project ${oneLine(name)} will go.`)
  await client.change('DELETE', `${projects.path}/${uid}`)
  output.note(`The project ${oneLine(name)} is deleted.`)
  return undefined
}
