import type { Database } from '../../store/database.ts'
import { createSecretStore, type SecretRecord, type SecretStore, expiryOf } from '../secret-store.ts'
import { changedAnnotations, requireUnchanged } from '../requests/changes.ts'
import { hash, randomBytes } from 'node:crypto'
import { uuidAt } from '../../base/uid.ts'
import { formatTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { ProjectRecord } from '../projects/store.ts'
import { EdgeToken, type EdgeTokenEntity, type EdgeTokenUpdate } from './schemas.ts'

/** A registration token as it is stored. */
interface TokenRecord extends SecretRecord {
  /** Project of its hosts; empty is the tenant. */
  readonly projectUid: string
  /** 0 is any number. */
  readonly maximumHosts: number
  /** Number of hosts registered with it. */
  readonly hosts: number
}

/** The registration tokens in the database. */
export interface TokenStore extends SecretStore<TokenRecord> {
  countHost(uid: string): void
}

export function createTokenStore(database: Database): TokenStore {
  const count = database.sql.prepare('UPDATE registration_token SET hosts = hosts + 1 WHERE uid = ?')
  const store = createSecretStore<'projectUid' | 'maximumHosts' | 'hosts', TokenRecord>(database, {
    table: 'registration_token',
    own: { projectUid: 'project_uid', maximumHosts: 'maximum_hosts', hosts: 'hosts' },
    changing: ['projectUid', 'maximumHosts'],
  })
  return { ...store, countHost: (uid) => void count.run(uid) }
}

interface RegistrationTokensOptions {
  readonly store: TokenStore
  readonly findProject: (uid: string) => ProjectRecord | undefined
  readonly transaction: <T>(work: () => T) => T
  readonly clock: Clock
}

/** The tokens with which hosts are registered. */
export interface RegistrationTokens {
  /** @throws AppError TokenExists, BadRequest */
  create(entity: EdgeTokenEntity): { readonly uid: string; readonly token: string }
  all(): readonly TokenRecord[]
  /** @throws AppError NotFound */
  get(uid: string): TokenRecord
  /** @throws AppError NotFound, BadRequest */
  update(uid: string, update: EdgeTokenUpdate): void
  /** @throws AppError NotFound */
  setActive(uid: string, isActive: boolean): void
  /** Hosts that were registered with it stay. @throws AppError NotFound */
  remove(uid: string): void
  /** The token that a host presents, if one more host may use it now. */
  findUsable(token: string): TokenRecord | undefined
  toEdgeToken(record: TokenRecord): EdgeToken
}

const weekMs = 7 * 86_400_000
const shownCharacters = 8

export function createRegistrationTokens(options: RegistrationTokensOptions): RegistrationTokens {
  const { store, findProject, transaction, clock } = options

  function get(uid: string): TokenRecord {
    const found = store.find(uid)
    if (!found) throw new AppError(generalErrors.NotFound, 'there is no registration token with this uid')
    return found
  }

  /** The project that a request names. @param before the project without a name */
  function projectFor(
    { defaultProjectUid: uid, defaultProject }: NonNullable<EdgeTokenUpdate['spec']>,
    before: string,
  ): string {
    if (uid === undefined && (defaultProject?.uid ?? before) !== before)
      throw refusedField('spec.defaultProject', 'names no other project; write spec.defaultProjectUid')
    if (uid !== undefined && uid !== '' && !findProject(uid))
      throw refusedField('spec.defaultProjectUid', 'is no project of this platform')
    return uid ?? before
  }

  function toEdgeToken(token: TokenRecord): EdgeToken {
    const project = findProject(token.projectUid)
    return {
      metadata: {
        annotations: token.annotations,
        labels: token.labels,
        name: token.name,
        uid: token.uid,
        creationTimestamp: formatTime(token.createdAt),
        lastModifiedTimestamp: formatTime(token.modifiedAt),
      },
      spec: {
        ...(project ? { defaultProject: { name: project.name, uid: project.uid } } : {}),
        expiry: formatTime(token.expiresAt),
        maximumHosts: token.maximumHosts,
        token: token.shown,
      },
      status: { hosts: token.hosts, isActive: token.isActive },
    }
  }

  return {
    all: store.all,
    get,
    toEdgeToken,
    create(entity) {
      requireUnchanged(entity)
      const { metadata, spec = {} } = entity
      const now = clock.now()
      const uid = uuidAt(now)
      const token = randomBytes(24).toString('base64url')
      const expiresAt = spec.expiry === undefined ? now + weekMs : expiryOf(spec.expiry, now)
      transaction(() => {
        if (store.hasName(metadata.name))
          throw new AppError(
            platformErrors.TokenExists,
            `there is a registration token named ${metadata.name}`,
            { details: { field: 'metadata.name' } },
          )
        store.requireRoom()
        store.put({
          uid,
          name: metadata.name,
          projectUid: projectFor(spec, ''),
          hash: hashOf(token),
          shown: token.slice(0, shownCharacters),
          labels: metadata.labels ?? {},
          annotations: metadata.annotations ?? {},
          expiresAt,
          isActive: true,
          maximumHosts: spec.maximumHosts ?? 0,
          hosts: 0,
          createdAt: now,
          modifiedAt: now,
        })
      })
      return { uid, token }
    },
    update(uid, update) {
      transaction(() => {
        const before = get(uid)
        requireUnchanged(update, toEdgeToken(before))
        const { metadata = {}, spec = {} } = update
        const now = clock.now()
        store.put({
          ...before,
          labels: metadata.labels ?? before.labels,
          annotations: changedAnnotations(before.annotations, metadata.annotations),
          projectUid: projectFor(spec, before.projectUid),
          expiresAt: spec.expiry === undefined ? before.expiresAt : expiryOf(spec.expiry, now),
          maximumHosts: spec.maximumHosts ?? before.maximumHosts,
          modifiedAt: now,
        })
      })
    },
    setActive(uid, isActive) {
      transaction(() => store.put({ ...get(uid), isActive, modifiedAt: clock.now() }))
    },
    remove(uid) {
      get(uid)
      store.remove(uid)
    },
    findUsable(token) {
      const found = store.findByHash(hashOf(token))
      if (!found?.isActive || found.expiresAt <= clock.now()) return undefined
      return found.maximumHosts === 0 || found.hosts < found.maximumHosts ? found : undefined
    },
  }
}

const hashOf = (token: string) => hash('sha256', token, 'hex')

/** Queryable fields of the list of registration tokens. */
export const tokenList: ListResource<MemoryField<TokenRecord>> = {
  name: 'registration tokens',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ uid }) => uid },
    'metadata.name': { type: 'text', read: ({ name }) => name },
    'metadata.creationTimestamp': { type: 'time', read: ({ createdAt }) => createdAt },
    'spec.defaultProject.uid': { type: 'text', read: ({ projectUid }) => projectUid },
    'spec.expiry': { type: 'time', read: ({ expiresAt }) => expiresAt },
    'status.isActive': { type: 'boolean', read: ({ isActive }) => isActive },
    'status.hosts': { type: 'integer', read: ({ hosts }) => hosts },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: EdgeToken,
}
