import type { Ground } from '../../root/room.ts'
import { isDeepStrictEqual } from 'node:util'
import { changedAnnotations, type CallerChanges, requireUnchanged } from '../requests/changes.ts'
import { formatTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { platformErrors } from '../codes.ts'
import type { DesiredIndex } from '../clusters/downloads.ts'
import type { Job } from '../../root/room.ts'
import type { ProjectRecord } from '../projects/store.ts'
import type { EdgeHostDevice, EdgeHostMeta, EdgeHostFacts, EdgeHostMetaUpdate } from './schemas.ts'
import { createHeartbeats, silenceOf, type Heartbeats, type Silence } from './heartbeats.ts'
import {
  hostIndexes,
  hostList,
  hostMetadataList,
  metadataColumns,
  toMetadata,
  createHostStore,
  hostColumns,
  toHostRecord,
  type HostRecord,
} from './store.ts'
import { createHostLogin, type HostLogin, createHostTokens, createNonces } from './login.ts'
import { createRegistration, type Registration } from './registration.ts'
import { createRegistrationTokens, type RegistrationTokens, createTokenStore } from '../tokens/tokens.ts'

interface HostPartsOptions {
  readonly tenantUid: string
  readonly findProject: (uid: string) => ProjectRecord | undefined
  readonly clusterOn: DesiredIndex['clusterOn']
  readonly changes: Pick<CallerChanges, 'gone'>
  /** @throws AppError InsufficientStorage where the disk has space for no more than its reserve serves */
  readonly requireSpace: () => void
}

/** Edge hosts: their registration, their logins, and their records. */
export interface HostParts {
  readonly tokens: RegistrationTokens
  readonly registration: Registration
  readonly login: HostLogin
  /** The host of a token; its first use shows that the host has stored the generation. */
  authenticate(token: string): HostRecord | undefined
  find(uid: string): HostRecord | undefined
  /** Name of the project of a host; undefined for one of the tenant. */
  projectNameOf(host: HostRecord): string | undefined
  /** The host with the id that it gives itself. */
  findByOwnId(hostUid: string): HostRecord | undefined
  readonly beat: Heartbeats['beat']
  /** Whether a host answers; undefined for one that is gone. */
  silenceOf(host: HostRecord | undefined): Silence
  /**
   * Replaces the reported facts of a host, with the labels that it names, and adds or replaces annotations, until an operator has set them.
   * @throws AppError NotFound, BadRequest for another `hostUid`, and for other labels or annotations than an operator has set, InsufficientStorage where the record would grow on a full disk
   */
  report(uid: string, facts: EdgeHostFacts): void
  /**
   * Replaces labels, and adds or replaces annotations.
   * @throws AppError NotFound, BadRequest for another name, uid, time of creation or status
   */
  describe(uid: string, projectUid: string, update: EdgeHostMetaUpdate): void
  readonly jobs: readonly Job[]
  stop(): void
  readonly list: SqlList<EdgeHostDevice>
  /** Rows for the table of hosts of a user interface. */
  readonly metadata: SqlList<EdgeHostMeta>
  /** The condition of both lists for a scope. */
  inScope(projectUid: string): SqlCondition
  /** Hosts of a scope without a cluster. */
  unusedIn(projectUid: string): SqlCondition
  /** @throws AppError NotFound for a host of another scope too */
  get(uid: string, projectUid: string): HostRecord
  /** @throws AppError NotFound, HostInUse */
  remove(uid: string, projectUid: string): void
  /** Lets the next login in, whatever its generation. @throws AppError NotFound */
  acceptNext(uid: string, projectUid: string): void
  toDevice(host: HostRecord): EdgeHostDevice
  /** Names of resources that block the deletion of a project. */
  usesOf(projectUid: string): readonly string[]
}

/** Creates the parts in the order of their dependencies. */
export async function createHostParts(
  ground: Pick<Ground, 'database' | 'read' | 'secrets' | 'clock' | 'log'>,
  own: HostPartsOptions,
): Promise<HostParts> {
  const { database, read, secrets, clock, log } = ground
  const { tenantUid, findProject, clusterOn, changes, requireSpace } = own
  const { sql, transaction } = database
  const store = createHostStore(database)
  const tokenStore = createTokenStore(database)
  const tokens = createRegistrationTokens({ store: tokenStore, findProject, transaction, clock })
  const hostTokens = await createHostTokens({ key: secrets.derive('token of a host'), clock })
  const nonces = createNonces({ clock })
  const heartbeats = createHeartbeats({ database, clock, log })

  function get(uid: string, projectUid: string): HostRecord {
    const host = store.find(uid)
    if (host?.projectUid !== projectUid) throw notFound()
    return host
  }

  function change(host: HostRecord, changes: Partial<HostRecord>): void {
    store.put({ ...host, ...changes, modifiedAt: clock.now() })
  }

  const toDevice = (host: HostRecord): EdgeHostDevice => {
    const { device, service, hostAddress, macAddress, hostChecksum } = host.reported
    const cluster = clusterOn(host.uid)
    return {
      aclmeta: { projectUid: host.projectUid, tenantUid },
      metadata: {
        annotations: host.annotations,
        labels: host.labels,
        name: host.name,
        uid: host.uid,
        creationTimestamp: formatTime(host.createdAt),
        lastModifiedTimestamp: formatTime(host.modifiedAt),
      },
      spec: {
        device,
        host: {
          hostUid: host.hostUid,
          hostAddress,
          ...(macAddress === undefined ? {} : { macAddress }),
          ...(hostChecksum === undefined ? {} : { hostChecksum }),
          hostIdentity: { mode: 'signature', publicKey: host.publicKey },
        },
        service,
        type: 'edge-native',
      },
      status: {
        ...(host.health ? { health: healthOf(host.health) } : {}),
        ...(cluster ? { inUseClusters: [cluster] } : {}),
        ...(host.isTwice ? { isDuplicate: true } : {}),
        state: cluster ? 'in-use' : 'ready',
      },
    }
  }

  return {
    tokens,
    toDevice,
    get,
    registration: createRegistration({ hosts: store, tokens, tokenStore, transaction, clock }),
    login: createHostLogin({ hosts: store, nonces, makeToken: hostTokens.make, transaction, changes, clock }),
    authenticate(token) {
      const claims = hostTokens.read(token)
      const host = claims && store.find(claims.sub)
      // A token of an earlier login, or of a host that exists twice.
      if (host?.last !== claims?.gen || !host || host.isTwice) return undefined
      if (!host.isUsed) store.put({ ...host, isUsed: true })
      return host
    },
    find: store.find,
    projectNameOf: ({ projectUid }) => findProject(projectUid)?.name,
    findByOwnId: store.findByHostUid,
    beat: heartbeats.beat,
    silenceOf: (host) => silenceOf(host, clock.now(), host !== undefined && heartbeats.isHeard(host.uid)),
    jobs: [heartbeats.job],
    stop: heartbeats.stop,
    report(uid, { metadata, spec: { device, service = {}, host: reported } }) {
      transaction(() => {
        const host = store.find(uid)
        if (!host) throw notFound()
        if (reported.hostUid !== undefined && reported.hostUid !== host.hostUid)
          throw refusedField('spec.host.hostUid', `cannot be changed; it is ${host.hostUid}`)
        requireUnchanged({ metadata: metadata ?? {} }, toDevice(host))
        const { hostAddress, macAddress, hostChecksum } = reported
        const { labels = host.labels } = metadata ?? {}
        const annotations = changedAnnotations(host.annotations, metadata?.annotations)
        if (host.isDescribed) {
          requireDescribed('metadata.labels', host.labels, labels)
          requireDescribed('metadata.annotations', host.annotations, annotations)
        }
        const next = {
          labels,
          annotations,
          reported: { device, service, hostAddress, macAddress, hostChecksum },
        }
        if (bytesOf(next) > bytesOf(host)) requireSpace()
        change(host, next)
      })
    },
    describe(uid, projectUid, { metadata, status }) {
      transaction(() => {
        const host = get(uid, projectUid)
        const current = toDevice(host)
        requireUnchanged(
          { metadata, status: withoutReports(status) },
          { ...current, status: withoutReports(current.status) },
        )
        const { labels = host.labels, annotations } = metadata
        change(host, {
          labels,
          annotations: changedAnnotations(host.annotations, annotations),
          isDescribed: true,
        })
      })
    },
    list: createSqlList({
      resource: hostList,
      table: 'edge_host',
      columns: hostColumns,
      count: store.counts.all,
      sql,
      indexes: hostIndexes,
      read,
      toItem: (row) => toDevice(toHostRecord(row)),
    }),
    metadata: createSqlList({
      resource: hostMetadataList,
      table: 'edge_host',
      columns: metadataColumns,
      count: store.counts.all,
      sql,
      indexes: hostIndexes,
      read,
      toItem: (row) => toMetadata(row, clusterOn(String(row.uid)) !== undefined),
    }),
    inScope: store.counts.condition,
    unusedIn: (projectUid) => ({
      sql: 'project_uid = ? AND uid NOT IN (SELECT host_uid FROM cluster)',
      values: [projectUid],
    }),
    remove(uid, projectUid) {
      const { name } = get(uid, projectUid)
      const cluster = clusterOn(uid)
      if (cluster)
        throw new AppError(
          platformErrors.HostInUse,
          `${name} has the cluster ${cluster.name}; delete that first`,
          { details: { clusterUid: cluster.uid } },
        )
      store.remove(uid, clock.now())
      changes.gone((caller) => caller.uid === uid)
    },
    acceptNext(uid, projectUid) {
      transaction(() => store.put({ ...get(uid, projectUid), isNextAccepted: true }))
    },
    usesOf(projectUid) {
      const named = tokenStore.all().filter((token) => token.projectUid === projectUid)
      return [
        ...store.counts.usesOf(projectUid, 'edge host'),
        ...named.map(({ name }) => `the registration token ${name}`),
      ]
    },
  }
}

/** Size of the reported facts in the database, about. */
const bytesOf = ({
  labels,
  annotations,
  reported,
}: Pick<HostRecord, 'labels' | 'annotations' | 'reported'>) =>
  Buffer.byteLength(JSON.stringify([labels, annotations, reported]))

/** @throws AppError BadRequest for labels or annotations that an operator has not set */
function requireDescribed(field: string, set: HostRecord['labels'], given: HostRecord['labels']): void {
  if (!isDeepStrictEqual({ ...set }, { ...given }))
    throw refusedField(field, 'were set by an operator, and a host does not change them; leave them out')
}

const notFound = () => new AppError(generalErrors.NotFound, 'there is no host with this uid in this scope')

/** A status as a reply gave it is accepted a minute later too, when the host has reported more. */
const withoutReports = (status: unknown): unknown => {
  if (typeof status !== 'object' || status === null || Array.isArray(status)) return status
  return Object.fromEntries(Object.entries(status).filter(([name]) => name !== 'health' && name !== 'packs'))
}

const healthOf = ({ at, ...health }: NonNullable<HostRecord['health']>) => ({
  ...health,
  lastHeartbeatTimestamp: formatTime(at),
})
