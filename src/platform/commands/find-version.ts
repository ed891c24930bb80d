import type { Client } from '../../ctl/client.ts'
import { equals, onlyOne, type Kind } from './find.ts'
import { findScopes, listScopes, queryOf, type Scope } from './scopes.ts'

/** A kind of things with versions. */
export interface VersionedKind extends Pick<Kind, 'noun' | 'list' | 'path'> {
  /** The field of its version. */
  readonly version: string
}

export const packKind: VersionedKind = {
  ...{ noun: 'pack', list: 'packs list', path: '/v1/packs', version: 'spec.version' },
}
export const profileKind: VersionedKind = {
  ...{ noun: 'cluster profile', list: 'profiles list', path: '/v1/clusterprofiles', version: 'spec.version' },
}

interface Versioned {
  readonly metadata: { readonly uid: string; readonly name: string }
}

/** Where something is. */
export interface FoundVersion<Item> {
  readonly scope: Scope
  readonly item: Item
  /** Its path, with the query that names its scope. @param rest follows the uid. @param query more of the query */
  pathOf(rest?: string, query?: Readonly<Record<string, string>>): string
}

/**
 * What a word names: by its uid, its name, or `NAME@VERSION`.
 * @throws Failure where nothing, or more than one, has the name
 */
export async function findVersion<Item extends Versioned>(
  client: Client,
  kind: VersionedKind,
  word: string,
  project: string | undefined,
): Promise<FoundVersion<Item>> {
  const at = word.lastIndexOf('@')
  const named =
    at > 0
      ? [`${equals('metadata.name', word.slice(0, at))}AND${equals(kind.version, word.slice(at + 1))}`]
      : []
  const filters = [equals('metadata.uid', word), equals('metadata.name', word), ...named].join('OR')
  const scopes = await findScopes(client, project)
  const { items } = await listScopes<Item>(client, scopes, {
    ...{ path: kind.path, query: { filters }, limit: 0 },
  })
  const uid = onlyOne(
    kind,
    word,
    items.map(({ item }) => item.metadata.uid),
  )
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
