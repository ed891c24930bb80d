import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createReader, type Reader } from '../../store/reader.ts'

/**
 * SQL: whether an entry has its name and tag. Of the bundles with the same tag, the newest has it; of one bundle that lists a tag
 * twice, the later entry. The query reads `entry` and `bundle`, joined.
 */
export const hasTag = `(entry.name <> '' AND entry.tag <> '' AND NOT EXISTS (
  SELECT 1 FROM entry AS other JOIN bundle AS newer ON newer.id = other.bundle AND newer.is_published = 1
  WHERE other.name = entry.name AND other.tag = entry.tag
    AND (newer.publication, newer.uid, other.id) > (bundle.publication, bundle.uid, entry.id)))`

/** The file of the index: a copy of the records in a form that can be searched. */
export interface IndexDatabase {
  readonly sql: DatabaseSync
  /** Runs `work` in one transaction; an exception rolls back and is rethrown. */
  transaction<T>(work: () => T): T
  /** Runs queries in another thread. */
  readonly read: Reader['read']
  close(): void
}

// A file of another number is thrown away: an index needs no migration.
const schemaVersion = 3

/** SQL: the entries of published bundles; a condition may follow with AND. */
export const publishedEntries = 'FROM entry JOIN bundle ON bundle.id = entry.bundle WHERE is_published = 1'

/** SQL: the name of an entry without its host. */
export const pathOfName = "substr(name, instr(name, '/') + 1)"

// Digests of blobs are hex, without `sha256:`. Times are milliseconds since 1970, UTC.
const schema = `
  CREATE TABLE boot (id TEXT NOT NULL) STRICT;
  CREATE TABLE bundle (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    mark TEXT NOT NULL,
    is_published INTEGER NOT NULL,
    facts TEXT NOT NULL,
    index_digest TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    publication INTEGER NOT NULL,
    image_count INTEGER NOT NULL,
    architectures TEXT NOT NULL
  ) STRICT;
  CREATE INDEX bundle_index ON bundle (index_digest);
  CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    bundle INTEGER NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    title TEXT NOT NULL,
    version TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    more TEXT NOT NULL
  ) STRICT;
  CREATE INDEX entry_bundle ON entry (bundle, id);
  CREATE INDEX entry_name ON entry (name, tag);
  CREATE INDEX entry_path ON entry (${pathOfName}, tag) WHERE name <> '';
  CREATE INDEX entry_digest ON entry (digest);
  CREATE INDEX entry_title ON entry (title) WHERE title <> '';
  CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    hex TEXT NOT NULL UNIQUE,
    size_bytes INTEGER NOT NULL,
    damaged_at INTEGER,
    -- Of indexes and manifests only.
    document_type TEXT,
    subject TEXT,
    artifact_type TEXT,
    annotations TEXT
  ) STRICT;
  CREATE INDEX blob_damaged ON blob (damaged_at) WHERE damaged_at IS NOT NULL;
  CREATE INDEX blob_subject ON blob (subject, hex) WHERE subject IS NOT NULL;
  CREATE TABLE bundle_blob (
    bundle INTEGER NOT NULL,
    blob INTEGER NOT NULL,
    PRIMARY KEY (bundle, blob)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX bundle_blob_blob ON bundle_blob (blob);
  PRAGMA user_version = ${schemaVersion};
`

/**
 * Opens the file of the index, or makes an empty one where it is missing, damaged, of another version of the daemon, or of another
 * boot. It is never synced, since a wait for the disk would stop the event loop: after a power cut it lacks writes, after
 * a kill it does not.
 * @param bootId of the kernel
 */
export function openIndexDatabase(file: string, bootId: string): IndexDatabase {
  try {
    return open(file, bootId)
  } catch (error) {
    if ((error as { errcode?: number }).errcode === undefined && !(error instanceof Outdated)) throw error
    removeIndexDatabase(file)
    return open(file, bootId)
  }
}

export function removeIndexDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}

class Outdated extends Error {}

function open(file: string, bootId: string): IndexDatabase {
  const sql = new DatabaseSync(file)
  try {
    sql.exec('PRAGMA busy_timeout = 5; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL')
    const { user_version: version } = sql.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version === 0) {
      sql.exec(`BEGIN; ${schema} COMMIT`)
      sql.prepare('INSERT INTO boot VALUES (?)').run(bootId)
    } else if (version !== schemaVersion || sql.prepare('SELECT id FROM boot').get()?.id !== bootId)
      throw new Outdated()
  } catch (error) {
    sql.close()
    throw error
  }
  const reader = createReader(sql)
  const [begin, commit] = [sql.prepare('BEGIN IMMEDIATE'), sql.prepare('COMMIT')]
  return {
    sql,
    transaction(work) {
      begin.run()
      try {
        const result = work()
        commit.run()
        return result
      } catch (error) {
        if (sql.isTransaction) sql.exec('ROLLBACK')
        throw error
      }
    },
    read: reader.read,
    close() {
      void reader.close()
      sql.close()
    },
  }
}
