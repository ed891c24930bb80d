import type { Ground } from '../../root/room.ts'
import { formatTime } from '../../base/time.ts'
import { allOf, auditListOf, listColumns, selectBy } from '../../audit/search.ts'
import type { AuditRecord } from '../../audit/record.ts'
import type { Page } from '../../lists/page.ts'
import type { ListQuery } from '../../lists/query.ts'
import { createSqlList } from '../../lists/sql-list.ts'
import type { SqlText } from '../../lists/sql.ts'
import { Audit, type AuditsQuery } from './schemas.ts'
import type { ProjectRecord } from '../projects/store.ts'
import type { UserRecord } from '../users/store.ts'

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

interface AuditsOptions {
  /** Number of records. */
  readonly count: () => number
  readonly tenantUid: string
  readonly findUser: (uid: string) => UserRecord | undefined
  readonly findProject: (uid: string) => ProjectRecord | undefined
}

/** The audit trail of the platform as administrators read it. */
export interface Audits {
  /** @throws AppError BadRequest */
  page(query: ListQuery, wanted: AuditsQuery): Promise<Page<Audit>>
}

export function createAudits(ground: Ground, own: AuditsOptions): Audits {
  const { database, read } = ground
  const { count, tenantUid, findUser, findProject } = own
  const list = createSqlList<Audit>({
    resource: auditList,
    table: 'audit',
    columns: listColumns,
    count,
    sql: database.sql,
    read,
    toItem: (row) => toAudit(row as unknown as AuditRecord),
  })

  // Of users and projects that were deleted, the record itself has the rest.
  function userOf({ actorUid: uid, actor: emailId }: AuditRecord) {
    const { firstName = '', lastName = '' } = findUser(uid) ?? {}
    return { emailId, firstName, lastName, uid }
  }

  const projectOf = (uid: string) => ({ name: findProject(uid)?.name ?? '', uid })

  function toAudit(record: AuditRecord): Audit {
    const { seq, uid, at, actorType, actor, address, role, action, message, outcome, projectUid } = record
    const { kind, resourceName, resourceUid, requestId, status } = record
    return {
      metadata: { creationTimestamp: formatTime(at), number: seq, uid },
      spec: {
        actionMsg: message,
        actionType: action,
        actor: {
          actorType,
          ...(actorType === 'user' ? { user: userOf(record) } : { serviceName: actor }),
          ...(projectUid && { project: projectOf(projectUid) }),
          ...(address && { address }),
          ...(role && { role }),
        },
        outcome,
        resource: { kind, ...(resourceName && { name: resourceName }), uid: resourceUid },
        ...(requestId && { requestId }),
        ...(status !== null && { status }),
      },
    }
  }

  return {
    page: async (query, wanted) => list.page(query, conditionOf(wanted, tenantUid)),
  }
}

const selection = selectBy({
  userUid: 'actor_uid',
  projectUid: 'project_uid',
  resourceKind: 'kind',
  resourceUid: 'resource_uid',
  actionType: 'action',
})

const conditionOf = (wanted: AuditsQuery, tenantUid: string): SqlText | undefined =>
  allOf([
    ...selection.conditionsOf(wanted),
    // Every record is of the one tenant.
    ...(wanted.tenantUid ? [['? = 1', wanted.tenantUid === tenantUid ? 1 : 0] as const] : []),
  ])

/** The parameters that a page token is bound to. */
export const boundOf = (wanted: AuditsQuery): (string | undefined)[] => [
  ...selection.boundOf(wanted),
  wanted.tenantUid || undefined,
]

/** Queryable fields of the list of audits. */
export const auditList = auditListOf(
  {
    'metadata.creationTimestamp': { type: 'time', column: 'at' },
    'spec.actor.project.uid': { type: 'text', column: 'project_uid' },
    'spec.actor.user.uid': { type: 'text', column: 'actor_uid' },
    'spec.resource.uid': { type: 'text', column: 'resource_uid' },
  },
  Audit,
)
