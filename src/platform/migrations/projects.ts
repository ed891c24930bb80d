/** Projects of the tenant. */
export const projectTables = `
  CREATE TABLE project (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`
