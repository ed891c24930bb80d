import type { Client } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/text.ts'
import { equals, onlyOne, type Kind } from './find.ts'
import { findReadScopes, findScopes, listScopes, queryOf, type Scope } from './scopes.ts'

/** A kind of things with versions. */
export interface VersionedKind extends Pick<Kind, 'noun' | 'list' | 'path'> {
  /** The field of its version. */
  readonly version: string
}

export const packKind: VersionedKind = {
  ...{ noun: 'pack', list: 'pack list', path: '/v1/packs', version: 'spec.version' },
}
export const profileKind: VersionedKind = {
  ...{ noun: 'cluster profile', list: 'profile list', path: '/v1/clusterprofiles', version: 'spec.version' },
}

interface Named {
  readonly metadata: { readonly uid: string; readonly name: string }
}

/** Where something is. */
export interface Found<Item> {
  readonly scope: Scope
  readonly item: Item
  /** Its path, with the query that names its scope. @param rest follows the uid. @param query more of the query */
  pathOf(rest?: string, query?: Readonly<Record<string, string>>): string
}

/**
 * What a word names: by its uid or its name.
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
    ...{ path: kind.path, query: { filters }, limit: 0 },
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
    // What the tenant has is listed for the users of its projects too.
    const read = await findReadVersion<Item>(client, kind, word, undefined).catch(() => undefined)
    if (read?.scope.isOfTenant !== true) throw error
    throw new Failure(
      'failed',
      `the ${kind.noun} ${oneLine(word)} is of the whole tenant, so this needs a role for the tenant`,
      { cause: error },
    )
  }
}

/** The same for a read, which finds what the tenant has for the projects too. @throws Failure as `findItem` */
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
