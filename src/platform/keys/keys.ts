import type { Ground } from '../../root/room.ts'
import type { Database } from '../../store/database.ts'
import { createSecretStore, type SecretRecord, type SecretStore, expiryOf } from '../secret-store.ts'
import { changedAnnotations, type CallerChanges, requireUnchanged } from '../requests/changes.ts'
import { hash, randomBytes } from 'node:crypto'
import { uuidAt } from '../../base/uid.ts'
import { formatTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { isDatabaseError } from '../../store/unwritable.ts'
import { platformErrors } from '../codes.ts'
import { ApiKey, type ApiKeyEntity, type ApiKeyUpdate } from './schemas.ts'
import type { UserRecord } from '../users/store.ts'

/** API keys of users; a hash of the key is kept, and its first characters. */
export const apiKeyTables = `
  CREATE TABLE api_key (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    user_uid TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    is_active INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX api_key_user ON api_key (user_uid);
`

/** A key as it is stored. */
interface KeyRecord extends SecretRecord {
  readonly userUid: string
  /** 0 is never. */
  readonly lastUsedAt: number
}

/** The API keys in the database. */
interface KeyStore extends SecretStore<KeyRecord> {
  noteUse(uid: string, now: number): void
}

function createKeyStore(database: Database): KeyStore {
  const noteUse = database.sql.prepare('UPDATE api_key SET last_used_at = ? WHERE uid = ?')
  const store = createSecretStore<'userUid' | 'lastUsedAt', KeyRecord>(database, {
    table: 'api_key',
    own: { userUid: 'user_uid', lastUsedAt: 'last_used_at' },
    changing: [],
  })
  return { ...store, noteUse: (uid, now) => void noteUse.run(now, uid) }
}

interface KeysOptions {
  readonly findUser: (uid: string) => UserRecord | undefined
  readonly changes: Pick<CallerChanges, 'gone'>
}

/** The API keys of users. */
export interface Keys {
  /** @param ownUid the user who makes it, for a key without a user. @throws AppError KeyExists, BadRequest */
  create(entity: ApiKeyEntity, ownUid: string | undefined): { readonly uid: string; readonly apiKey: string }
  all(): readonly KeyRecord[]
  /** @throws AppError NotFound */
  get(uid: string): KeyRecord
  /** @throws AppError NotFound, BadRequest */
  update(uid: string, update: ApiKeyUpdate): void
  /** @throws AppError NotFound */
  setActive(uid: string, isActive: boolean): void
  /** @throws AppError NotFound */
  remove(uid: string): void
  /** A key that is valid now; notes the use, once a minute. */
  findValid(apiKey: string): Pick<KeyRecord, 'uid' | 'userUid'> | undefined
  toApiKey(key: KeyRecord): ApiKey
}

const minuteMs = 60_000
const hashOf = (apiKey: string) => hash('sha256', apiKey, 'hex')

export function createKeys(ground: Ground, { findUser, changes }: KeysOptions): Keys {
  const { database, clock } = ground
  const { transaction } = database
  const store = createKeyStore(database)

  function get(uid: string): KeyRecord {
    const found = store.find(uid)
    if (!found) throw new AppError(generalErrors.NotFound, 'there is no API key with this uid')
    return found
  }

  /** A full disk must not keep a key from reading, or from deleting what fills it. */
  function noteUse(uid: string, now: number): void {
    try {
      store.noteUse(uid, now)
    } catch (error) {
      if (!isDatabaseError(error)) throw error
    }
  }

  const end = (uid: string) => changes.gone(({ sessionUid }) => sessionUid === uid)

  function toApiKey(key: KeyRecord): ApiKey {
    const user = findUser(key.userUid)
    return {
      metadata: {
        annotations: key.annotations,
        labels: key.labels,
        name: key.name,
        uid: key.uid,
        creationTimestamp: formatTime(key.createdAt),
        lastModifiedTimestamp: formatTime(key.modifiedAt),
      },
      spec: {
        expiry: formatTime(key.expiresAt),
        key: key.shown,
        user: { firstName: user?.firstName ?? '', lastName: user?.lastName ?? '', uid: key.userUid },
      },
      status: {
        isActive: key.isActive,
        ...(key.lastUsedAt > 0 ? { lastUsed: formatTime(key.lastUsedAt) } : {}),
      },
    }
  }

  return {
    all: store.all,
    get,
    toApiKey,
    create(entity, ownUid) {
      const { metadata, spec } = entity
      requireUnchanged(entity)
      const userUid = spec.userUid ?? ownUid
      if (userUid === undefined || !findUser(userUid))
        throw refusedField(
          'spec.userUid',
          userUid === undefined ? 'is missing' : 'is no user of this platform',
        )
      const now = clock.now()
      const uid = uuidAt(now)
      const apiKey = randomBytes(32).toString('base64url')
      const expiresAt = expiryOf(spec.expiry, clock.now())
      transaction(() => {
        if (store.hasName(metadata.name))
          throw new AppError(platformErrors.KeyExists, `there is an API key named ${metadata.name}`, {
            details: { field: 'metadata.name' },
          })
        store.requireRoom()
        store.put({
          uid,
          name: metadata.name,
          userUid,
          hash: hashOf(apiKey),
          shown: apiKey.slice(0, 8),
          labels: metadata.labels ?? {},
          annotations: metadata.annotations ?? {},
          expiresAt,
          isActive: true,
          lastUsedAt: 0,
          createdAt: now,
          modifiedAt: now,
        })
      })
      return { uid, apiKey }
    },
    update(uid, update) {
      transaction(() => {
        const before = get(uid)
        requireUnchanged(update, toApiKey(before))
        const { metadata = {}, spec } = update
        store.put({
          ...before,
          labels: metadata.labels ?? before.labels,
          annotations: changedAnnotations(before.annotations, metadata.annotations),
          expiresAt: spec?.expiry === undefined ? before.expiresAt : expiryOf(spec.expiry, clock.now()),
          modifiedAt: clock.now(),
        })
      })
    },
    setActive(uid, isActive) {
      transaction(() => store.put({ ...get(uid), isActive, modifiedAt: clock.now() }))
      if (!isActive) end(uid)
    },
    remove(uid) {
      get(uid)
      store.remove(uid)
      end(uid)
    },
    findValid(apiKey) {
      const key = store.findByHash(hashOf(apiKey))
      const now = clock.now()
      if (!key?.isActive || key.expiresAt <= now) return undefined
      // A commit for each request would be one sync of the disk for each.
      if (Math.abs(now - key.lastUsedAt) >= minuteMs) noteUse(key.uid, now)
      return key
    },
  }
}

/** Queryable fields of the list of keys. */
export const keyList: ListResource<MemoryField<KeyRecord>> = {
  name: 'apiKeys',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ uid }) => uid },
    'metadata.name': { type: 'text', read: ({ name }) => name },
    'metadata.creationTimestamp': { type: 'time', read: ({ createdAt }) => createdAt },
    'spec.expiry': { type: 'time', read: ({ expiresAt }) => expiresAt },
    'spec.user.uid': { type: 'text', read: ({ userUid }) => userUid },
    'status.isActive': { type: 'boolean', read: ({ isActive }) => isActive },
    'status.lastUsed': { type: 'time', read: ({ lastUsedAt }) => lastUsedAt },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: ApiKey,
}
