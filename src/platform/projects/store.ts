import type { Role } from '../../base/role.ts'
import type { Database } from '../../store/database.ts'

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

type Texts = Readonly<Record<string, string>>

/** A project as it is stored. Times are milliseconds since 1970. */
export interface ProjectRecord {
  readonly uid: string
  readonly name: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly createdAt: number
  readonly modifiedAt: number
  readonly users: readonly { readonly userId: string; readonly roles: readonly Role[] }[]
}

/** The projects in the database. */
export interface ProjectStore {
  all(): readonly ProjectRecord[]
  /** Projects in which a user has a role. */
  allOf(userUid: string): readonly ProjectRecord[]
  find(uid: string): ProjectRecord | undefined
  has(uid: string): boolean
  /** Upper and lower case are the same. */
  hasName(name: string): boolean
  /** Creates a project, or replaces all but its uid, name and creation time. */
  put(project: ProjectRecord): void
  /** Removes a project and the roles in it. */
  remove(uid: string): void
  /** The roles of a user in a project. */
  rolesOf(userUid: string, projectUid: string): readonly Role[]
}

interface Row {
  readonly uid: string
  readonly name: string
  readonly labels: string
  readonly annotations: string
  readonly created_at: number
  readonly modified_at: number
}

export function createProjectStore({ sql, transaction }: Database): ProjectStore {
  const list = sql.prepare('SELECT * FROM project ORDER BY uid')
  const listOf = sql.prepare(
    'SELECT * FROM project WHERE uid IN (SELECT project_uid FROM user_role WHERE user_uid = ?) ORDER BY uid',
  )
  const byUid = sql.prepare('SELECT * FROM project WHERE uid = ?')
  const byName = sql.prepare('SELECT 1 FROM project WHERE name_key = ?')
  const upsert = sql.prepare(
    `INSERT INTO project (uid, name, name_key, labels, annotations, created_at, modified_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (uid) DO UPDATE SET labels = excluded.labels, annotations = excluded.annotations, modified_at = excluded.modified_at`,
  )
  const remove = sql.prepare('DELETE FROM project WHERE uid = ?')
  const dropRoles = sql.prepare('DELETE FROM user_role WHERE project_uid = ?')
  const addRole = sql.prepare(
    'INSERT OR IGNORE INTO user_role (user_uid, project_uid, role) VALUES (?, ?, ?)',
  )
  const users = sql.prepare(
    'SELECT user_uid, json_group_array(role) AS roles FROM user_role WHERE project_uid = ? GROUP BY user_uid',
  )
  const roles = sql.prepare('SELECT role FROM user_role WHERE user_uid = ? AND project_uid = ?')

  const toRecord = (row: Row): ProjectRecord => ({
    uid: row.uid,
    name: row.name,
    labels: JSON.parse(row.labels) as Texts,
    annotations: JSON.parse(row.annotations) as Texts,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    users: (users.all(row.uid) as unknown as { user_uid: string; roles: string }[]).map((each) => ({
      userId: each.user_uid,
      roles: JSON.parse(each.roles) as Role[],
    })),
  })

  return {
    all: () => list.all().map((row) => toRecord(row as unknown as Row)),
    allOf: (userUid) => listOf.all(userUid).map((row) => toRecord(row as unknown as Row)),
    find(uid) {
      const row = byUid.get(uid)
      return row && toRecord(row as unknown as Row)
    },
    has: (uid) => byUid.get(uid) !== undefined,
    hasName: (name) => byName.get(name.toLowerCase()) !== undefined,
    put({ uid, name, labels, annotations, createdAt, modifiedAt, users: members }) {
      transaction(() => {
        const texts = [JSON.stringify(labels), JSON.stringify(annotations)] as const
        upsert.run(uid, name, name.toLowerCase(), ...texts, createdAt, modifiedAt)
        dropRoles.run(uid)
        for (const { userId, roles: given } of members)
          for (const role of given) addRole.run(userId, uid, role)
      })
    },
    remove(uid) {
      transaction(() => {
        dropRoles.run(uid)
        remove.run(uid)
      })
    },
    rolesOf: (userUid, projectUid) =>
      (roles.all(userUid, projectUid) as unknown as { role: Role }[]).map(({ role }) => role),
  }
}
