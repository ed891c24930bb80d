import { scopeCountsOf } from '../scope-counts.ts'

/** Packs; the files of each are in the folder `packs/<uid>` of the state. */
export const packTables = `
  CREATE TABLE pack (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    display_name TEXT NOT NULL,
    layer TEXT NOT NULL,
    addon_type TEXT NOT NULL,
    more TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX pack_scope ON pack (project_uid, created_at, uid);
  CREATE UNIQUE INDEX pack_name ON pack (project_uid, name, version);${scopeCountsOf('pack')}
`
