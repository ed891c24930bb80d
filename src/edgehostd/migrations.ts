import { guessTables } from '../credentials/guess-store.ts'
import { secretMarkTable } from '../secrets/secrets.ts'
import type { Migrations } from '../store/structure.ts'

/**
 * The schema of edgehostd: the one that its former versions were folded into, and one entry for each later change, applied in order
 * and never edited once released. Times are milliseconds since 1970, UTC.
 */
export const migrations: Migrations = {
  first: 20,
  install: 'a package that was built at c80bc925 or later',
  steps: [
    `
  -- The identity of this host, and what it is made of as it was read the last time.
  CREATE TABLE host (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    facts_hash TEXT,
    modified_at INTEGER
  ) STRICT;
  CREATE TABLE inventory (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    read_at INTEGER NOT NULL,
    devices TEXT NOT NULL,
    hardware TEXT NOT NULL
  ) STRICT;
  -- Accounts that have logged in, and sessions; their indexes are in memory.
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
  CREATE INDEX account_address_address ON account_address (address);
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
    generation INTEGER NOT NULL,
    account_source TEXT NOT NULL DEFAULT 'directory',
    role_source TEXT NOT NULL DEFAULT 'directory'
  ) STRICT, WITHOUT ROWID;
  -- Failures and locks of guessing, on a clock of their own.
  ${guessTables}
  -- The audit trail: the chain, the last record that retention removed, and changes that have begun. The hash of a record without an actor's or
  -- a project's uid is that of the time before these columns.
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
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL,
    actor_uid TEXT NOT NULL DEFAULT '',
    project_uid TEXT NOT NULL DEFAULT ''
  ) STRICT;
  CREATE INDEX audit_uid ON audit (uid);
  CREATE INDEX audit_at ON audit (at);
  CREATE INDEX audit_actor ON audit (actor);
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
  -- Definitions, one a slot; until when published bundles have been offered as an update; and the key that signs uploads.
  CREATE TABLE definition (
    slot TEXT PRIMARY KEY CHECK (slot IN ('embedded', 'overridden', 'update', 'platform')),
    uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    file_name TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    source TEXT NOT NULL,
    problems TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE definition_offered (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    published_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE signing_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    fingerprint TEXT NOT NULL,
    since INTEGER NOT NULL
  ) STRICT;
  -- What happened to the cluster, which stays when it is deleted, and the conditions of the newest one; numbers are not used again.
  CREATE TABLE cluster_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    cluster_uid TEXT NOT NULL,
    reason TEXT NOT NULL,
    severity TEXT NOT NULL,
    message TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_name TEXT NOT NULL,
    object_namespace TEXT NOT NULL,
    step TEXT NOT NULL
  ) STRICT;
  CREATE INDEX cluster_event_cluster ON cluster_event (cluster_uid, id);
  CREATE INDEX cluster_event_at ON cluster_event (at, id);
  CREATE TABLE cluster_condition (
    cluster_uid TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    transition_at INTEGER NOT NULL,
    probe_at INTEGER NOT NULL,
    PRIMARY KEY (cluster_uid, type)
  ) STRICT, WITHOUT ROWID;
  -- The cluster of this host, its steps, and the requests that created it.
  CREATE TABLE cluster (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    uid TEXT NOT NULL,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    folder TEXT NOT NULL,
    summary TEXT NOT NULL,
    posted TEXT NOT NULL,
    sealed BLOB NOT NULL,
    mark BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    delete_requested_at INTEGER,
    ran_generation INTEGER NOT NULL DEFAULT 0,
    standing TEXT NOT NULL,
    seen TEXT NOT NULL,
    good_generation INTEGER NOT NULL DEFAULT 0,
    renewal TEXT
  ) STRICT;
  CREATE TABLE cluster_step (
    position INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    pack TEXT NOT NULL,
    kind TEXT NOT NULL,
    timeout_ms INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
    failures INTEGER NOT NULL,
    reason TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    retry_ms INTEGER,
    cursor INTEGER NOT NULL,
    is_deletion INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE cluster_request (
    key TEXT PRIMARY KEY,
    mark BLOB NOT NULL,
    uid TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- What was accepted for the cluster; goingBack is a way back that is a revision of its own. The platform's number is that of a revision that
  -- the platform wanted.
  CREATE TABLE cluster_revision (
    generation INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('create', 'update', 'rollback', 'goingBack')),
    folder TEXT NOT NULL,
    summary TEXT NOT NULL,
    posted TEXT NOT NULL,
    sealed BLOB NOT NULL,
    mark BLOB NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    schedule_at INTEGER,
    ended_at INTEGER,
    platform_number INTEGER
  ) STRICT;
  -- The packs of the cluster: what of them is applied, and the objects that are theirs; and the namespaces that were made for packs.
  CREATE TABLE cluster_pack (
    id TEXT PRIMARY KEY,
    applied_digest TEXT NOT NULL,
    part_digest TEXT NOT NULL,
    done_steps TEXT NOT NULL,
    available_digest TEXT NOT NULL,
    inventory TEXT NOT NULL,
    releases TEXT NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    charts TEXT NOT NULL DEFAULT '[]'
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE cluster_namespace (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  -- The events of this host that its platform does not have yet.
  CREATE TABLE platform_event (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    is_normal INTEGER NOT NULL,
    entity TEXT NOT NULL
  ) STRICT;
  CREATE INDEX platform_event_normal ON platform_event (seq) WHERE is_normal = 1;
  CREATE TABLE platform_event_gap (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
  ) STRICT;
  `,
    `
  -- Times for which the active revision has been applied, JSON.
  ALTER TABLE cluster ADD COLUMN progress TEXT;
  `,
    `
  -- Reboots and shutdowns that users have asked for: the open one and the last; and the present boot of the host, with how it came back, JSON.
  CREATE TABLE host_stop (
    uid TEXT PRIMARY KEY,
    action TEXT NOT NULL CHECK (action IN ('reboot', 'shutdown')),
    state TEXT NOT NULL CHECK (state IN ('planned', 'going', 'done', 'failed')),
    message TEXT NOT NULL,
    by TEXT NOT NULL,
    is_forced INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    planned_at INTEGER,
    went_at INTEGER,
    reason TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- The last reset of this host: its plan, JSON, and the phase that is next; null once it is done.
  CREATE TABLE host_reset (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    uid TEXT NOT NULL,
    by TEXT NOT NULL,
    plan TEXT NOT NULL,
    phase TEXT,
    reason TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE TABLE host_boot (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    back TEXT
  ) STRICT;
  -- Changes of the network of this host, JSON.
  CREATE TABLE network_change (
    uid TEXT PRIMARY KEY,
    change TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- Public keys that accounts have set themselves, JSON.
  CREATE TABLE account_ssh_keys (name TEXT PRIMARY KEY, keys TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
    `
  -- The link by which the service speaks, where one is chosen, and its address at that time, which the choice goes along with.
  CREATE TABLE management_link (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL,
    address TEXT NOT NULL
  ) STRICT;
  -- The proxies and authorities of this host, sealed JSON; the networks that need no proxy, JSON; a mark of what is in place, and why the last try failed.
  CREATE TABLE host_configuration (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    uid TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    ranges TEXT NOT NULL,
    placed TEXT NOT NULL,
    reason TEXT NOT NULL
  ) STRICT;
  `,
    secretMarkTable,
    `
  -- User data that was given to this host: what no other part of it keeps, JSON.
  CREATE TABLE host_user_data (one INTEGER PRIMARY KEY CHECK (one = 1), uid TEXT NOT NULL, tags TEXT NOT NULL) STRICT;
  `,
    `
  -- What of it is secret, sealed JSON: the login to a registry, and stages that have not run; how far these are, JSON.
  ALTER TABLE host_user_data ADD COLUMN sealed BLOB;
  ALTER TABLE host_user_data ADD COLUMN stages TEXT;
  `,
  ],
}
