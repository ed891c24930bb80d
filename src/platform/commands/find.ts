import { program } from '../../base/program.ts'
import { printable } from '../../base/printable.ts'
import type { Client, HostProgram } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parseLimit, filterOf, noteRest } from '../../ctl/list.ts'
import { renderTable, type Column, oneLine, moment } from '../../ctl/layout.ts'
import type { Project } from '../projects/schemas.ts'
import type { SpectroCluster } from '../clusters/schemas.ts'

const uidSyntax = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A kind of item that a word may name. */
export interface Kind {
  /** For messages: `user`. */
  readonly noun: string
  /** The command that lists all of them. */
  readonly list: string
  readonly path: string
  /** The field that the word is a value of, where it is no uid. */
  readonly field: string
}

export const users: Kind = { noun: 'user', list: 'user list', path: '/v1/users', field: 'spec.emailId' }
export const projects: Kind = {
  noun: 'project',
  list: 'project list',
  path: '/v1/projects',
  field: 'metadata.name',
}
export const apiKeys: Kind = {
  noun: 'API key',
  list: 'apikey list',
  path: '/v1/apiKeys',
  field: 'metadata.name',
}
export const tokens: Kind = {
  noun: 'token',
  list: 'token list',
  path: '/v1/edgehosts/tokens',
  field: 'metadata.name',
}

interface WithUid {
  readonly metadata: { readonly uid: string }
}

/**
 * The uid of the item that a word names, by uid or name.
 * @throws Failure where nothing, or more than one, has the name
 */
export async function findUid(client: Client, kind: Kind, word: string): Promise<string> {
  if (uidSyntax.test(word)) return word
  const { items } = await client.list<WithUid>(kind.path, { filters: equals(kind.field, word) }, 0)
  return onlyOne(
    kind,
    word,
    items.map(({ metadata: { uid } }) => uid),
  )
}

/** The one uid of the items with a name. @throws Failure */
export function onlyOne(
  { noun, list }: Pick<Kind, 'noun' | 'list'>,
  word: string,
  uids: readonly string[],
): string {
  const [uid] = uids
  if (uid === undefined)
    throw new Failure('failed', `there is no ${noun} ${printable(word)}; see: ${program.ctl} ${list}`)
  if (uids.length > 1)
    throw new Failure(
      'failed',
      `more than one ${noun} has the name ${printable(word)}; name one by its uid: ${uids.join(', ')}`,
    )
  return uid
}

/** A filter for one value. */
export const equals = (field: string, value: string): string =>
  `${field}="${value.replaceAll(/["\\]/g, '\\$&')}"`

/** A scope of hosts, their events, packs and profiles. */
export interface Scope {
  /** Empty for the tenant itself. */
  readonly uid: string
  readonly name: string
  /** Whether it is the tenant, as users with roles in projects only may read it: by naming the project. */
  readonly isOfTenant?: boolean
}

/** An item and its scope. */
export interface ScopeRow<Item> {
  readonly scope: Scope
  readonly item: Item
}

/** Items of several scopes. */
export interface FoundInScopes<Item> {
  readonly items: readonly ScopeRow<Item>[]
  /** Number in all scopes. */
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

/** The scopes in which packs and profiles can be read: the ones of `findScopes`, and the tenant for each user. */
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
 * A command that shows the items of the scopes of `--project` as a table: all, or by `--filter` and `--limit`.
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
      path,
      query: { ...filterOf(line) },
      limit,
    })
    const rows = limit === 0 ? found.items : found.items.slice(0, limit)
    const items = rows.map(({ item }) => item)
    await output.show({ items, listmeta: { count: found.count, limit: items.length } }, ({ columns }) =>
      renderTable(rows, layout, columns),
    )
    if (items.length < found.count) noteRest(output, items.length, found.count)
    return undefined
  }

/** A kind of things with versions. */
export interface VersionedKind extends Pick<Kind, 'noun' | 'list' | 'path'> {
  /** The field of its version. */
  readonly version: string
}

export const packKind: VersionedKind = {
  noun: 'pack',
  list: 'pack list',
  path: '/v1/packs',
  version: 'spec.version',
}
export const profileKind: VersionedKind = {
  noun: 'cluster profile',
  list: 'profile list',
  path: '/v1/clusterprofiles',
  version: 'spec.version',
}

interface Named {
  readonly metadata: { readonly uid: string; readonly name: string }
}

/** An item with its path. */
export interface Found<Item> {
  readonly scope: Scope
  readonly item: Item
  /** Its path, with the query that names its scope. @param rest follows the uid. @param query more of the query */
  pathOf(rest?: string, query?: Readonly<Record<string, string>>): string
}

/**
 * The item that a word names, by its uid or its name.
 * @param more filters that find it too
 * @throws Failure where nothing, or more than one, has the name
 */
export async function findItem<Item extends Named>(
  client: Client,
  kind: Pick<Kind, 'noun' | 'list' | 'path'>,
  word: string,
  scopes: readonly Scope[],
  more: readonly string[] = [],
): Promise<Found<Item>> {
  const filters = [equals('metadata.uid', word), equals('metadata.name', word), ...more].join('OR')
  const { items } = await listScopes<Item>(client, scopes, {
    path: kind.path,
    query: { filters },
    limit: 0,
  })
  // Others may have it as their name.
  const isNamed = items.some(({ item }) => item.metadata.uid === word)
  const uids = items.map(({ item }) => item.metadata.uid)
  const uid = isNamed ? word : onlyOne(kind, word, uids)
  const found = items.find(({ item }) => item.metadata.uid === uid)
  if (!found) throw new Error(`${uid} was found and is not there`)
  return {
    ...found,
    pathOf(rest = '', query = {}) {
      const all = new URLSearchParams({ ...query, ...queryOf(found.scope) }).toString()
      return `${kind.path}/${encodeURIComponent(uid)}${rest}${all === '' ? '' : `?${all}`}`
    },
  }
}

/** The same for things with versions, which `NAME@VERSION` names too. @throws Failure as `findItem` */
export async function findVersion<Item extends Named>(
  client: Client,
  kind: VersionedKind,
  word: string,
  project: string | undefined,
): Promise<Found<Item>> {
  try {
    return await findVersionIn<Item>(client, kind, word, await findScopes(client, project))
  } catch (error) {
    // Items of the tenant are listed for the users of its projects too.
    const read = await findReadVersion<Item>(client, kind, word, undefined).catch(() => undefined)
    if (read?.scope.isOfTenant !== true) throw error
    throw new Failure(
      'failed',
      `the ${kind.noun} ${oneLine(word)} is of the whole tenant, so this needs a role for the tenant`,
      { cause: error },
    )
  }
}

/** The same for a read, which finds items of the tenant for the projects too. @throws Failure as `findItem` */
export async function findReadVersion<Item extends Named>(
  client: Client,
  kind: VersionedKind,
  word: string,
  project: string | undefined,
): Promise<Found<Item>> {
  return findVersionIn(client, kind, word, await findReadScopes(client, project))
}

/** `findVersion` in these scopes. */
export function findVersionIn<Item extends Named>(
  client: Client,
  kind: VersionedKind,
  word: string,
  scopes: readonly Scope[],
): Promise<Found<Item>> {
  const at = word.lastIndexOf('@')
  const named =
    at > 0
      ? [`${equals('metadata.name', word.slice(0, at))}AND${equals(kind.version, word.slice(at + 1))}`]
      : []
  return findItem(client, kind, word, scopes, named)
}

export const clusterKind = { noun: 'cluster', list: 'cluster list', path: '/v1/spectroclusters' } as const

/** The cluster that a word names, by its uid or its name. @throws Failure */
export async function findCluster(
  client: Client,
  word: string,
  project: string | undefined,
): Promise<Found<SpectroCluster>> {
  return findItem(client, clusterKind, word, await findScopes(client, project))
}

/** The condition with the outcome of the last change that the host has dealt with; undefined before its first report. */
export const desiredOf = ({ status }: SpectroCluster) =>
  status.conditions.find(({ type }) => type === 'Wanted')

/** The condition of the newest change; one of an earlier change says nothing about it. A host of an older version does not name the change. */
export function desiredNow(cluster: SpectroCluster): ReturnType<typeof desiredOf> {
  const desired = desiredOf(cluster)
  return (desired?.observedGeneration ?? cluster.spec.number) < cluster.spec.number ? undefined : desired
}

/** Why the state of a cluster is old: its host does not answer. Undefined where it does. */
export const silenceOf = ({ status }: SpectroCluster): string | undefined =>
  status.conditions.find(({ type, status: is }) => type === 'HostSilent' && is === 'True')?.message

/** When the host of a cluster acts on a change, for a message. @param does for example `deletes the cluster line-1` */
export function whenHostActs(cluster: SpectroCluster, does: string): string {
  const host = oneLine(cluster.spec.edgeHost.name)
  const { lastProbeTime } = cluster.status.conditions.find(({ type }) => type === 'HostSilent') ?? {}
  const last =
    lastProbeTime === undefined ? 'has never been seen' : `was last seen at ${moment(lastProbeTime)}`
  return silenceOf(cluster) === undefined
    ? `The host ${host} gets it with its next heartbeat, and ${does}.`
    : `The host ${host} does not answer and ${last}: nothing happens there until it is seen again. Then it ${does}.`
}
