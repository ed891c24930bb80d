import { scopeCountsOf } from '../scope-counts.ts'

/** Events that hosts report; a host names each by a uid of its own, so that one that is sent again is known. */
export const eventTables = `
  CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    uid TEXT NOT NULL,
    project_uid TEXT NOT NULL,
    edge_host_uid TEXT NOT NULL,
    edge_host_name TEXT NOT NULL,
    at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    severity TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    component TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_name TEXT NOT NULL,
    object_uid TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX event_of_host ON event (edge_host_uid, uid);
  CREATE INDEX event_scope ON event (project_uid, seq);${scopeCountsOf('event')}
`
