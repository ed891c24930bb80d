import { AppError } from '../errors/app-error.ts'
import type { ErrorKind } from '../errors/define-errors.ts'
import type { Database } from '../store/database.ts'
import type { ListResource } from '../lists/resource.ts'
import type { SqlField } from '../lists/sql.ts'

/** Tables with a name in each row that is unique in its scope. */
type NamedTable = 'cloud_account' | 'cloud_config' | 'cluster_profile' | 'edge_host' | 'pack'

/**
 * Finds the name in a scope that another one would be taken for: the same, or one that differs in case only, as `Press` and `press`. Names
 * that were stored before this rule stay, so the same name comes first.
 * @returns as it is stored; undefined where the name is free
 */
export type FindTaken = (projectUid: string, name: string) => string | undefined

export function createFindTaken({ sql }: Pick<Database, 'sql'>, table: NamedTable): FindTaken {
  const taken = sql.prepare(
    `SELECT name FROM ${table} WHERE project_uid = ? AND name = ? COLLATE NOCASE ORDER BY name <> ? LIMIT 1`,
  )
  return (projectUid, name) => {
    const row = taken.get(projectUid, name, name)
    return row && String(row.name)
  }
}

/**
 * The refusal of a name that is taken.
 * @param kind of error
 * @param what for example `host`
 * @param given in the request, and as it is stored
 * @param where for example `in this scope`
 */
export function nameTaken(
  kind: ErrorKind,
  what: string,
  given: { readonly name: string; readonly taken: string },
  where: string,
): AppError {
  const { name, taken } = given
  const differs = name === taken ? '' : `, and ${name} differs from it in case only; take another name`
  return new AppError(kind, `there is a ${what} named ${taken} ${where}${differs}`, {
    details: { field: 'metadata.name' },
  })
}

/**
 * A label. Neither keys nor values have quotes, so `"key":"value"` stands in the JSON of the labels if, and only if, the item has the label.
 */
const label = (key: string): SqlField => ({
  type: 'text',
  column: 'labels',
  isOrdered: false,
  part: (value) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
})

/** Filters by the labels in the column `labels`: `metadata.labels.KEY`. */
export const labelFilters: NonNullable<ListResource<SqlField>['families']> = [
  { prefix: 'metadata.labels.', placeholder: 'KEY', field: label },
]
