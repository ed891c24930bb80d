/** What is there once: the tenant of this platform. */
export const tenantTables = `
  CREATE TABLE tenant (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    uid TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
`
