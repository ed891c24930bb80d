/**
 * The schema, one entry a change, applied in order and never edited once released.
 * Times are milliseconds since 1970, UTC.
 */
export const migrations: readonly string[] = [
  // 1: identity of the host, accounts that have been here, sessions
  `
  CREATE TABLE host (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    facts_hash TEXT,
    modified_at INTEGER
  ) STRICT;
  CREATE TABLE account (
    name TEXT PRIMARY KEY,
    first_login_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE account_address (
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    last_success_at INTEGER NOT NULL,
    PRIMARY KEY (name, address)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE session (
    uid TEXT PRIMARY KEY,
    user_name TEXT NOT NULL,
    role TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    account_mark TEXT NOT NULL,
    refresh_hash TEXT NOT NULL,
    previous_hash TEXT,
    generation INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX session_user ON session (user_name);
  `,
]
