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

/**
 * How many events each host has and how many bytes they take, so that what is more goes when a report arrives. The row without a host is the
 * sum of all. The bytes are those of the texts, and some for the row and its entries in the indexes.
 */
export const eventShares = `
  ALTER TABLE event ADD COLUMN bytes INTEGER AS (
    200 + octet_length(uid) * 2 + octet_length(project_uid) * 2 + octet_length(edge_host_uid) * 3 + octet_length(edge_host_name)
    + octet_length(severity) + octet_length(reason) + octet_length(message) + octet_length(component) + octet_length(object_kind)
    + octet_length(object_name) + octet_length(object_uid));
  CREATE INDEX event_by_host ON event (edge_host_uid, seq);
  CREATE TABLE event_share (
    edge_host_uid TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO event_share SELECT edge_host_uid, count(*), sum(bytes) FROM event GROUP BY edge_host_uid;
  INSERT INTO event_share SELECT '', count(*), coalesce(sum(bytes), 0) FROM event;
  CREATE TRIGGER event_has_share AFTER INSERT ON event
  BEGIN
    INSERT INTO event_share (edge_host_uid, number, bytes) VALUES (NEW.edge_host_uid, 1, NEW.bytes)
      ON CONFLICT (edge_host_uid) DO UPDATE SET number = number + 1, bytes = bytes + excluded.bytes;
    UPDATE event_share SET number = number + 1, bytes = bytes + NEW.bytes WHERE edge_host_uid = '';
  END;
  CREATE TRIGGER event_has_share_no_more AFTER DELETE ON event
  BEGIN
    UPDATE event_share SET number = number - 1, bytes = bytes - OLD.bytes WHERE edge_host_uid IN (OLD.edge_host_uid, '');
    DELETE FROM event_share WHERE edge_host_uid = OLD.edge_host_uid AND number = 0;
  END;
`
