import type { Client } from '../../ctl/client.ts'
import { findUid, projects } from './find.ts'
import type { Project } from '../schemas/projects.ts'

/** A place where hosts and their events are. */
export interface Scope {
  /** Empty for the tenant itself. */
  readonly uid: string
  readonly name: string
}

/** Items of several scopes. */
export interface FoundInScopes<Item> {
  readonly items: readonly { readonly scope: Scope; readonly item: Item }[]
  /** How many there are in all scopes. */
  readonly count: number
}

/**
 * The scopes of a command: the project of `--project`, or the tenant itself and every project. A user with roles in projects only has these
 * alone.
 */
export async function findScopes(client: Client, project: string | undefined): Promise<Scope[]> {
  if (project !== undefined) return [{ uid: await findUid(client, projects, project), name: project }]
  const { items } = await client.list<Project>(projects.path, {}, 0)
  const ofProjects = items.map(({ metadata: { uid, name } }) => ({ uid, name }))
  const { status } = await client.ask({ method: 'GET', path: '/v1/edgehosts?limit=1' })
  return status === 403 && ofProjects.length > 0 ? ofProjects : [{ uid: '', name: '' }, ...ofProjects]
}

/** The query that names a scope. */
export const queryOf = ({ uid }: Scope): Readonly<Record<string, string>> =>
  uid === '' ? {} : { ProjectUid: uid }

/**
 * Lists the items of scopes, one scope after the other.
 * @param limit of each scope; 0 for all items
 */
export async function listScopes<Item>(
  client: Client,
  scopes: readonly Scope[],
  list: { readonly path: string; readonly query: Readonly<Record<string, string>>; readonly limit: number },
): Promise<FoundInScopes<Item>> {
  const items: { scope: Scope; item: Item }[] = []
  let count = 0
  for (const scope of scopes) {
    const found = await client.list<Item>(list.path, { ...list.query, ...queryOf(scope) }, list.limit)
    for (const item of found.items) items.push({ scope, item })
    count += found.listmeta.count
  }
  return { items, count }
}
