/** The audit trail; the room `audit` uses these tables, as on hosts, which have no project and no uid of a user. */
export const auditTables = `
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    uid TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor_type TEXT NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    resource_name TEXT NOT NULL,
    resource_uid TEXT NOT NULL,
    message TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER,
    request_id TEXT NOT NULL,
    actor_uid TEXT NOT NULL,
    project_uid TEXT NOT NULL,
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL
  ) STRICT;
  CREATE INDEX audit_uid ON audit (uid);
  CREATE INDEX audit_at ON audit (at);
  CREATE INDEX audit_actor ON audit (actor);
  CREATE INDEX audit_actor_uid ON audit (actor_uid);
  CREATE INDEX audit_project ON audit (project_uid);
  CREATE INDEX audit_resource ON audit (resource_uid);
  CREATE INDEX audit_kind ON audit (kind);
  CREATE INDEX audit_action ON audit (action);
  CREATE TABLE audit_checkpoint (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    removed_to INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE audit_intent (
    uid TEXT PRIMARY KEY,
    entry TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
  WHEN OLD.seq > coalesce((SELECT removed_to FROM audit_checkpoint), 0)
  BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
`
