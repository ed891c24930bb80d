import { AppError } from '../errors/app-error.ts'
import type { SqlCondition } from '../lists/sql-list.ts'
import type { Database } from '../store/database.ts'
import { platformErrors } from './codes.ts'

/**
 * Limit of the rows of a kind in a project, and in the tenant for itself; tokens, users and projects have one number. A body bounds the size
 * of each row, so this bounds the data that the holder of one token, key or role can make the platform store. Far above what a plant has.
 */
const mostRows: Readonly<Record<string, readonly [most: number, what: string]>> = {
  edge_host: [10_000, 'edge hosts'],
  pack: [5_000, 'packs'],
  cluster_profile: [5_000, 'cluster profiles'],
  cloud_account: [200, 'cloud accounts'],
  cloud_config: [1_000, 'cloud configurations'],
  registration_token: [1_000, 'registration tokens'],
  api_key: [1_000, 'API keys'],
  user: [10_000, 'users'],
  project: [1_000, 'projects'],
}

/** @throws AppError LimitReached where a table has as many rows, in a scope or in all, as it may have */
export function requireBelowMost(table: string, count: number): void {
  const [most, what] = mostRows[table] ?? [Infinity, '']
  if (count >= most)
    throw new AppError(
      platformErrors.LimitReached,
      `there are ${count} ${what}, and no more are taken; delete some that are not needed`,
    )
}

/**
 * @param what `packs`
 * @throws AppError LimitReached where a scope would take more on the disk than it may
 */
export function requireBytes(
  what: string,
  { taken, more, limit }: { readonly taken: number; readonly more: number; readonly limit: number },
): void {
  if (taken + more > limit)
    throw new AppError(
      platformErrors.LimitReached,
      `the ${what} of this scope take ${taken} bytes, and ${more} more would be above the ${limit} that are kept; delete some that are not needed`,
    )
}

/** Number of rows of a table, without counting them. */
export interface ScopeCounts {
  all(): number
  /** @param projectUid empty for the tenant */
  in(projectUid: string): number
  /** The rows of a scope, for a list. @param projectUid empty for the tenant */
  condition(projectUid: string): SqlCondition
  /** @throws AppError LimitReached where the scope has as many rows as it may have */
  requireRoom(projectUid: string): void
  /** The rows that block the deletion of a project, `2 packs`; nothing where it has none. */
  usesOf(projectUid: string, one: string, many?: string): readonly string[]
}

/**
 * The part of a migration that keeps the number of rows of each scope for a table with a column `project_uid`. A row must not move to another
 * scope.
 */
export const scopeCountsOf = (table: string) => `
  CREATE TABLE ${table}_count (
    project_uid TEXT PRIMARY KEY,
    number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER ${table}_is_counted AFTER INSERT ON ${table}
  BEGIN
    INSERT INTO ${table}_count (project_uid, number) VALUES (NEW.project_uid, 1)
      ON CONFLICT (project_uid) DO UPDATE SET number = number + 1;
  END;
  CREATE TRIGGER ${table}_is_counted_no_more AFTER DELETE ON ${table}
  BEGIN UPDATE ${table}_count SET number = number - 1 WHERE project_uid = OLD.project_uid; END;`

/** Reads the counts of `scopeCountsOf`. */
export function createScopeCounts({ sql }: Pick<Database, 'sql'>, table: string): ScopeCounts {
  const all = sql.prepare(`SELECT coalesce(sum(number), 0) AS found FROM ${table}_count`)
  const one = sql.prepare(`SELECT number AS found FROM ${table}_count WHERE project_uid = ?`)
  const numberOf = (row: unknown) => (row as { readonly found: number } | undefined)?.found ?? 0
  const countIn = (projectUid: string) => numberOf(one.get(projectUid))
  return {
    all: () => numberOf(all.get()),
    in: countIn,
    requireRoom: (projectUid) => requireBelowMost(table, countIn(projectUid)),
    condition: (projectUid) => ({
      sql: 'project_uid = ?',
      values: [projectUid],
      count: () => countIn(projectUid),
    }),
    usesOf(projectUid, one, many = `${one}s`) {
      const number = countIn(projectUid)
      return number > 0 ? [`${number} ${number === 1 ? one : many}`] : []
    },
  }
}
