import type { Client } from '../../ctl/client.ts'
import type { HostProgram } from '../../ctl/context.ts'
import { parseLimit } from '../../ctl/limit.ts'
import { filterOf, noteRest } from '../../ctl/list.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { findUid, projects } from './find.ts'
import type { Project } from '../schemas/projects.ts'

/** A place where hosts, their events, packs and profiles are. */
export interface Scope {
  /** Empty for the tenant itself. */
  readonly uid: string
  readonly name: string
  /** Whether it is the tenant, as users with roles in projects only may read it: by naming the project. */
  readonly isOfTenant?: boolean
}

/** An item, and where it is. */
export interface ScopeRow<Item> {
  readonly scope: Scope
  readonly item: Item
}

/** Items of several scopes. */
export interface FoundInScopes<Item> {
  readonly items: readonly ScopeRow<Item>[]
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

/** The scopes in which packs and profiles can be read: those of `findScopes`, and the tenant for each user. */
export async function findReadScopes(client: Client, project: string | undefined): Promise<Scope[]> {
  const scopes = await findScopes(client, project)
  const [first] = scopes
  if (project !== undefined || first === undefined || first.uid === '') return scopes
  return [{ uid: first.uid, name: '', isOfTenant: true }, ...scopes]
}

/** The query that names a scope. */
export const queryOf = ({ uid, isOfTenant = false }: Scope): Readonly<Record<string, string>> => ({
  ...(uid === '' ? {} : { ProjectUid: uid }),
  ...(isOfTenant ? { ofTenant: 'true' } : {}),
})

/**
 * Lists the items of scopes, one scope after the other.
 * @param limit of each scope; 0 for all items
 */
export async function listScopes<Item>(
  client: Client,
  scopes: readonly Scope[],
  list: { readonly path: string; readonly query: Readonly<Record<string, string>>; readonly limit: number },
): Promise<FoundInScopes<Item>> {
  const items: ScopeRow<Item>[] = []
  let count = 0
  for (const scope of scopes) {
    const found = await client.list<Item>(list.path, { ...list.query, ...queryOf(scope) }, list.limit)
    for (const item of found.items) items.push({ scope, item })
    count += found.listmeta.count
  }
  return { items, count }
}

/**
 * A command that shows the items of the scopes of `--project` as a table: all, or those of `--filter` and `--limit`.
 * @param scopesOf which scopes these are
 */
export const showScopes =
  <Item>(
    path: string,
    layout: readonly Column<ScopeRow<Item>>[],
    scopesOf = findScopes,
  ): HostProgram<'project' | 'limit' | 'filter'> =>
  async ({ client, line, output }) => {
    const limit = parseLimit(line, 0)
    const found = await listScopes<Item>(client, await scopesOf(client, line.options.project), {
      ...{ path, query: { ...filterOf(line) }, limit },
    })
    const rows = limit === 0 ? found.items : found.items.slice(0, limit)
    const items = rows.map(({ item }) => item)
    await output.show({ items, listmeta: { count: found.count, limit: items.length } }, ({ columns }) =>
      renderTable(rows, layout, columns),
    )
    if (items.length < found.count) noteRest(output, items.length, found.count)
    return undefined
  }
