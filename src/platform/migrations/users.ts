/** Users of the platform and their roles; an empty project uid is the tenant. */
export const userTables = `
  CREATE TABLE user (
    uid TEXT PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL UNIQUE,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    password TEXT NOT NULL,
    link_hash TEXT NOT NULL,
    link_until INTEGER NOT NULL,
    reset_requested_at INTEGER NOT NULL,
    last_sign_in_at INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX user_link ON user (link_hash) WHERE link_hash <> '';
  CREATE TABLE user_role (
    user_uid TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
    project_uid TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('admin', 'operator', 'viewer')),
    PRIMARY KEY (user_uid, project_uid, role)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX user_role_project ON user_role (project_uid, role);
  CREATE TABLE revoked_token (
    id TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`
