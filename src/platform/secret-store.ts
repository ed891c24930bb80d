import { parseTime } from '../base/time.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { SQLInputValue } from 'node:sqlite'
import type { Database } from '../store/database.ts'
import { requireBelowMost } from './scope-counts.ts'

const longestLifeMs = 10 * 366 * 86_400_000

/**
 * The time at which a secret ends, from a body; milliseconds since 1970.
 * @throws AppError BadRequest for an invalid time, one that is over, or one more than ten years ahead
 */
export function expiryOf(text: string, now: number): number {
  const at = parseTime(text)
  if (at === undefined) throw refusedField('spec.expiry', 'is no time')
  if (at <= now) throw refusedField('spec.expiry', 'is over')
  if (at > now + longestLifeMs) throw refusedField('spec.expiry', 'is more than ten years ahead')
  return at
}

type Texts = Readonly<Record<string, string>>

/** A secret that the platform has given away, as it is stored: a registration token, or an API key. Times are milliseconds since 1970. */
export interface SecretRecord {
  readonly uid: string
  readonly name: string
  /** SHA-256, hex. */
  readonly hash: string
  /** Its first characters. */
  readonly shown: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly expiresAt: number
  readonly isActive: boolean
  readonly createdAt: number
  readonly modifiedAt: number
}

/** The secrets of one kind in the database. */
export interface SecretStore<Secret extends SecretRecord> {
  all(): readonly Secret[]
  find(uid: string): Secret | undefined
  findByHash(hash: string): Secret | undefined
  /** Upper and lower case are the same. */
  hasName(name: string): boolean
  /** @throws AppError LimitReached where there are as many as there may be */
  requireRoom(): void
  /** Creates a secret, or replaces all that may change. */
  put(secret: Secret): void
  remove(uid: string): void
}

/** The part of a table that only one kind has. */
interface SecretTable<Own extends string> {
  readonly table: string
  /** Field -> column; its values are texts and numbers. */
  readonly own: Readonly<Record<Own, string>>
  /** Own fields that `put` replaces; the others keep the value with which the secret was created. */
  readonly changing: readonly Own[]
}

type Row = Readonly<Record<string, string | number>>

export function createSecretStore<
  Own extends string,
  Secret extends SecretRecord & Record<Own, string | number>,
>({ sql }: Database, { table, own, changing }: SecretTable<Own>): SecretStore<Secret> {
  const fields = Object.keys(own) as Own[]
  const columns = [
    ...['uid', 'name', 'name_key', 'hash', 'shown', 'labels', 'annotations', 'expires_at', 'is_active'],
    ...['created_at', 'modified_at', ...fields.map((field) => own[field])],
  ]
  const replaced = [
    ...['labels', 'annotations', 'expires_at', 'is_active', 'modified_at'],
    ...changing.map((field) => own[field]),
  ]
  const list = sql.prepare(`SELECT * FROM ${table} ORDER BY uid`)
  const byUid = sql.prepare(`SELECT * FROM ${table} WHERE uid = ?`)
  const byHash = sql.prepare(`SELECT * FROM ${table} WHERE hash = ?`)
  const byName = sql.prepare(`SELECT 1 FROM ${table} WHERE name_key = ?`)
  const upsert = sql.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ON CONFLICT (uid) DO UPDATE SET ${replaced.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  )
  const count = sql.prepare(`SELECT count(*) AS found FROM ${table}`)
  const remove = sql.prepare(`DELETE FROM ${table} WHERE uid = ?`)

  function toSecret(row: Row): Secret {
    const common: SecretRecord = {
      uid: String(row.uid),
      name: String(row.name),
      hash: String(row.hash),
      shown: String(row.shown),
      labels: JSON.parse(String(row.labels)) as Texts,
      annotations: JSON.parse(String(row.annotations)) as Texts,
      expiresAt: Number(row.expires_at),
      isActive: row.is_active === 1,
      createdAt: Number(row.created_at),
      modifiedAt: Number(row.modified_at),
    }
    return { ...common, ...Object.fromEntries(fields.map((field) => [field, row[own[field]]])) } as Secret
  }

  const one = (row: unknown) => (row === undefined ? undefined : toSecret(row as Row))
  return {
    all: () => list.all().map((row) => toSecret(row as unknown as Row)),
    find: (uid) => one(byUid.get(uid)),
    findByHash: (hash) => one(byHash.get(hash)),
    requireRoom: () => requireBelowMost(table, Number(count.get()?.found)),
    hasName: (name) => byName.get(name.toLowerCase()) !== undefined,
    put(secret) {
      const { uid, name, hash, shown, labels, annotations, expiresAt, isActive, createdAt, modifiedAt } =
        secret
      const values: SQLInputValue[] = fields.map((field) => secret[field])
      upsert.run(
        ...[uid, name, name.toLowerCase(), hash, shown, JSON.stringify(labels), JSON.stringify(annotations)],
        ...[expiresAt, Number(isActive), createdAt, modifiedAt, ...values],
      )
    },
    remove: (uid) => void remove.run(uid),
  }
}
