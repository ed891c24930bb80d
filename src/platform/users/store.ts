import type { Role } from '../../base/role.ts'
import type { Database } from '../../store/database.ts'
import { requireBelowMost } from '../scope-counts.ts'
import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { User } from './schemas.ts'

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

/** A user as it is stored. Times are milliseconds since 1970; 0 is never. */
export interface UserRecord {
  readonly uid: string
  readonly email: string
  readonly firstName: string
  readonly lastName: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** PHC text; empty while there is no password. */
  readonly password: string
  readonly linkUntil: number
  readonly resetRequestedAt: number
  readonly lastSignInAt: number
  /** Counts up when every token of the user has to end. */
  readonly generation: number
  readonly createdAt: number
  readonly modifiedAt: number
  /** For the tenant. */
  readonly roles: readonly Role[]
}

type NewUser = Pick<
  UserRecord,
  'uid' | 'email' | 'firstName' | 'lastName' | 'labels' | 'annotations' | 'createdAt' | 'roles'
>

/** The users in the database. */
export interface UserStore {
  all(): readonly UserRecord[]
  find(uid: string): UserRecord | undefined
  /** Upper and lower case are the same. */
  findByEmail(email: string): UserRecord | undefined
  /** The user of a link that ends after `from`, and not after `until`. */
  findByLink(linkHash: string, from: number, until: number): UserRecord | undefined
  /** @throws AppError LimitReached */
  create(user: NewUser): void
  remove(uid: string): void
  setRoles(uid: string, roles: readonly Role[], now: number): void
  /** Sets the hash of a link; the earlier link ends. */
  setLink(uid: string, linkHash: string, until: number): void
  /** Sets a password, and ends links and tokens. */
  setPassword(uid: string, password: string, now: number): void
  noteReset(uid: string, now: number): void
  noteSignIn(uid: string, now: number): void
  /** Number of users other than this one with the role of an administrator for the tenant. */
  otherAdministrators(uid: string): number
}

interface Row {
  readonly uid: string
  readonly email: string
  readonly first_name: string
  readonly last_name: string
  readonly labels: string
  readonly annotations: string
  readonly password: string
  readonly link_until: number
  readonly reset_requested_at: number
  readonly last_sign_in_at: number
  readonly generation: number
  readonly created_at: number
  readonly modified_at: number
  readonly roles: string
}

/** Addresses that differ only in case reach one person. */
const emailKey = (email: string): string => email.toLowerCase()

export function createUserStore({ sql, transaction }: Database): UserStore {
  const select = `SELECT user.*, coalesce((SELECT json_group_array(role) FROM user_role
    WHERE user_uid = user.uid AND project_uid = ''), '[]') AS roles FROM user`
  const list = sql.prepare(`${select} ORDER BY uid`)
  const byUid = sql.prepare(`${select} WHERE uid = ?`)
  const byEmail = sql.prepare(`${select} WHERE email_key = ?`)
  const byLink = sql.prepare(
    `${select} WHERE link_hash = ? AND link_hash <> '' AND link_until > ? AND link_until <= ?`,
  )
  const insert = sql.prepare(
    `INSERT INTO user (uid, email, email_key, first_name, last_name, labels, annotations, password, link_hash, link_until,
      reset_requested_at, last_sign_in_at, generation, created_at, modified_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, '', '', 0, 0, 0, 1, ?, ?)`,
  )
  const count = sql.prepare('SELECT count(*) AS found FROM user')
  const remove = sql.prepare('DELETE FROM user WHERE uid = ?')
  const dropRoles = sql.prepare("DELETE FROM user_role WHERE user_uid = ? AND project_uid = ''")
  const addRole = sql.prepare(
    "INSERT OR IGNORE INTO user_role (user_uid, project_uid, role) VALUES (?, '', ?)",
  )
  const touch = sql.prepare('UPDATE user SET modified_at = ? WHERE uid = ?')
  const setLink = sql.prepare(
    'UPDATE user SET link_hash = ?, link_until = ?, reset_requested_at = 0 WHERE uid = ?',
  )
  const setPassword = sql.prepare(
    `UPDATE user SET password = ?, link_hash = '', link_until = 0, reset_requested_at = 0, generation = generation + 1,
      modified_at = ? WHERE uid = ?`,
  )
  const noteReset = sql.prepare('UPDATE user SET reset_requested_at = ? WHERE uid = ?')
  const noteSignIn = sql.prepare('UPDATE user SET last_sign_in_at = ? WHERE uid = ?')
  const others = sql.prepare(
    "SELECT count(DISTINCT user_uid) AS found FROM user_role WHERE project_uid = '' AND role = 'admin' AND user_uid <> ?",
  )
  const one = (row: unknown) => (row === undefined ? undefined : toRecord(row as Row))

  return {
    all: () => list.all().map((row) => toRecord(row as unknown as Row)),
    find: (uid) => one(byUid.get(uid)),
    findByEmail: (email) => one(byEmail.get(emailKey(email))),
    findByLink: (linkHash, from, until) => one(byLink.get(linkHash, from, until)),
    create({ uid, email, firstName, lastName, labels, annotations, createdAt, roles }) {
      transaction(() => {
        requireBelowMost('user', Number(count.get()?.found))
        const texts = [JSON.stringify(labels), JSON.stringify(annotations)] as const
        insert.run(uid, email, emailKey(email), firstName, lastName, ...texts, createdAt, createdAt)
        for (const role of roles) addRole.run(uid, role)
      })
    },
    remove: (uid) => void remove.run(uid),
    setRoles(uid, roles, now) {
      transaction(() => {
        dropRoles.run(uid)
        for (const role of roles) addRole.run(uid, role)
        touch.run(now, uid)
      })
    },
    setLink: (uid, linkHash, until) => void setLink.run(linkHash, until, uid),
    setPassword: (uid, password, now) => void setPassword.run(password, now, uid),
    noteReset: (uid, now) => void noteReset.run(now, uid),
    noteSignIn: (uid, now) => void noteSignIn.run(now, uid),
    otherAdministrators: (uid) => (others.get(uid) as { found: number }).found,
  }
}

const toRecord = (row: Row): UserRecord => ({
  uid: row.uid,
  email: row.email,
  firstName: row.first_name,
  lastName: row.last_name,
  labels: JSON.parse(row.labels) as Record<string, string>,
  annotations: JSON.parse(row.annotations) as Record<string, string>,
  password: row.password,
  linkUntil: row.link_until,
  resetRequestedAt: row.reset_requested_at,
  lastSignInAt: row.last_sign_in_at,
  generation: row.generation,
  createdAt: row.created_at,
  modifiedAt: row.modified_at,
  roles: JSON.parse(row.roles) as Role[],
})

/** Queryable fields of the list of users. */
export const userList: ListResource<MemoryField<UserRecord>> = {
  name: 'users',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ uid }) => uid },
    'metadata.name': { type: 'text', read: ({ email }) => email },
    'metadata.creationTimestamp': { type: 'time', read: ({ createdAt }) => createdAt },
    'spec.emailId': { type: 'text', read: ({ email }) => email },
    'spec.firstName': { type: 'text', read: ({ firstName }) => firstName },
    'spec.lastName': { type: 'text', read: ({ lastName }) => lastName },
    'spec.roles': { type: 'text', isOrdered: false, read: ({ roles }) => roles },
    'status.isActive': { type: 'boolean', read: ({ password }) => password !== '' },
    'status.isPasswordResetting': { type: 'boolean', read: (user) => user.resetRequestedAt > 0 },
    'status.lastSignIn': { type: 'time', read: ({ lastSignInAt }) => lastSignInAt },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: User,
}
