import { program } from '../base/program.ts'
import { hkdfSync, randomBytes } from 'node:crypto'
import type { Database } from '../store/database.ts'

/** Derives keys from the secret of the state folder. */
export interface Secrets {
  /**
   * The key for one purpose, 32 bytes (RFC 5869): the same at each start, and different for each purpose.
   * @param purpose a name that never changes
   */
  derive(purpose: string): Buffer
}

/** The table of the mark of the secret with which the database is used, by which a start sees the secret of another state. */
export const secretMarkTable = `
  CREATE TABLE secret_mark (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark BLOB NOT NULL
  ) STRICT;`

/** The mark of a secret: it says nothing of the secret, and nothing of its keys. */
const markOf = (secrets: Secrets): Buffer => secrets.derive('mark of the secret')

/** Whether the database was last used with another secret; false where it has no mark yet. */
export function isOfAnotherState({ sql }: Pick<Database, 'sql'>, secrets: Secrets): boolean {
  const row = sql.prepare('SELECT mark FROM secret_mark').get() as { readonly mark: Uint8Array } | undefined
  return row !== undefined && Buffer.compare(row.mark, markOf(secrets)) !== 0
}

/** Names the secret with which the database is used from now on. */
export function putSecretMark({ sql }: Pick<Database, 'sql'>, secrets: Secrets): void {
  sql
    .prepare(
      `INSERT INTO secret_mark (one, mark) VALUES (1, ?1)
        ON CONFLICT (one) DO UPDATE SET mark = ?1 WHERE mark IS NOT ?1`,
    )
    .run(markOf(secrets))
}

/** Creates a secret: 256 random bits. */
export const createSecret = (): Buffer => randomBytes(32)

/** The keys derived from a secret. */
export const createSecrets = (secret: Buffer): Secrets => ({
  derive: (purpose) => Buffer.from(hkdfSync('sha256', secret, '', `${program.daemon} ${purpose}`, 32)),
})
