/** API keys of users; a hash of the key is kept, and its first characters. */
export const apiKeyTables = `
  CREATE TABLE api_key (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    user_uid TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    is_active INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX api_key_user ON api_key (user_uid);
`
