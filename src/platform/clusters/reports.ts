import { parseTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Seal } from '../../secrets/seal.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { ClusterCondition, ClusterHeartbeat, PackStatus } from './schemas.ts'
import type { ClusterHead, ClusterStore, ReportedCluster } from './store.ts'

/** Reports of hosts about their clusters. */
export interface ClusterReports {
  /** The cluster of a host. @throws AppError NotFound for one of another host too */
  ofHost(uid: string, hostUid: string): ReportedCluster
  /** Keeps a heartbeat. A cluster that shall be deleted and is gone from its host is forgotten. */
  heartbeat(cluster: ReportedCluster, heartbeat: ClusterHeartbeat): Promise<void>
  conditions(cluster: ReportedCluster, conditions: readonly ClusterCondition[]): void
  packs(cluster: ReportedCluster, packs: readonly PackStatus[]): void
  putKubeconfig(cluster: ReportedCluster, kubeconfig: string): void
  /** @throws AppError NotFound where the host has sent none, SecretReplaced */
  kubeconfig(cluster: Pick<ClusterHead, 'uid' | 'name'>): string
  /** The kubeconfig that the host has sent; undefined where there is none that can be read. */
  sentKubeconfig(uid: string): string | undefined
  /** When a cluster was last seen since the start, in milliseconds since 1970. */
  lastSeenAt(uid: string): number | undefined
}

// A platform that was restored is behind its hosts by the changes of days.
const farthest = 1_000_000

export function createClusterReports({
  store,
  seal,
  hasSpace,
  clock,
}: {
  readonly store: ClusterStore
  /** Seal of the kubeconfigs alone. */
  readonly seal: Seal
  /** Whether the disk has space for data that can wait. */
  readonly hasSpace: () => boolean
  readonly clock: Pick<Clock, 'now'>
}): Omit<ClusterReports, 'heartbeat'> & {
  /** @returns whether the cluster is gone from its host, as it shall be */
  takeHeartbeat(cluster: ReportedCluster, heartbeat: ClusterHeartbeat): boolean
} {
  const lastSeen = new Map<string, number>()

  /** Most reports change nothing, and a commit for each would wear out a disk. */
  function put(cluster: ReportedCluster, changes: Partial<ReportedCluster>): void {
    const before = cluster as unknown as Readonly<Record<string, unknown>>
    const isNew = Object.entries(changes).some(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    )
    if (isNew) store.report({ ...cluster, ...changes })
  }

  return {
    lastSeenAt: (uid) => lastSeen.get(uid),
    ofHost(uid, hostUid) {
      const cluster = store.findReported(uid)
      if (cluster?.hostUid === hostUid) return cluster
      throw new AppError(generalErrors.NotFound, 'this host has no cluster with this uid')
    },
    takeHeartbeat(cluster, { steps = [...cluster.steps], ...heartbeat }) {
      const { uid, deleteRequestedAt } = cluster
      for (const field of ['number', 'seenNumber'] as const)
        if ((heartbeat[field] ?? 0) > cluster.number + farthest)
          throw refusedField(
            field,
            `is more than ${farthest} beyond the number of the platform, ${cluster.number}`,
          )
      for (const [at, step] of steps.entries())
        for (const field of ['startTimestamp', 'endTimestamp', 'nextTryTimestamp'] as const)
          requireTime(`steps[${at}].${field}`, step[field])
      const { state = cluster.state } = heartbeat
      const isGone = isDeletionConfirmed(cluster, heartbeat)
      if (isGone) lastSeen.delete(uid)
      else {
        lastSeen.set(uid, clock.now())
        const next = { heartbeat, steps }
        const isStored = bytesOf(next) <= bytesOf(cluster) || hasSpace()
        put(cluster, {
          ...(isStored ? next : withoutTexts(heartbeat, cluster)),
          state: deleteRequestedAt === undefined ? state : 'Deleting',
        })
      }
      return isGone
    },
    conditions(cluster, conditions) {
      for (const [at, { lastTransitionTime, lastProbeTime }] of conditions.entries()) {
        requireTime(`[${at}].lastTransitionTime`, lastTransitionTime)
        requireTime(`[${at}].lastProbeTime`, lastProbeTime)
      }
      put(cluster, { conditions })
    },
    packs: (cluster, packs) => put(cluster, { packs }),
    putKubeconfig: ({ uid }, kubeconfig) => store.putKubeconfig(uid, seal.seal(kubeconfig)),
    sentKubeconfig(uid) {
      const sealed = store.kubeconfig(uid)
      return sealed && seal.open(sealed)
    },
    kubeconfig({ uid, name }) {
      const sealed = store.kubeconfig(uid)
      if (sealed === undefined)
        throw new AppError(
          generalErrors.NotFound,
          `the host of ${name} has not sent a kubeconfig yet; it does once Kubernetes answers`,
        )
      const opened = seal.open(sealed)
      if (opened !== undefined) return opened
      throw new AppError(platformErrors.SecretReplaced, `the kubeconfig of ${name} cannot be read any more`)
    },
  }
}

type Beat = Pick<ReportedCluster, 'heartbeat' | 'steps'>

const bytesOf = ({ heartbeat, steps }: Beat): number => Buffer.byteLength(JSON.stringify([heartbeat, steps]))

/** The stored part of a heartbeat on a full disk: its reserve is for the end of deletions, and the texts of many clusters would use it up. */
const withoutTexts = (heartbeat: NonNullable<Beat['heartbeat']>, stored: Beat): Beat => ({
  heartbeat: { ...heartbeat, message: stored.heartbeat?.message ?? '' },
  steps: stored.steps,
})

/** Lists show times as they came. @throws AppError BadRequest for an invalid time */
function requireTime(field: string, text: string | undefined): void {
  if (text !== undefined && parseTime(text) === undefined)
    throw refusedField(field, 'is no time of RFC 3339, as 2026-01-31T08:00:00Z')
}

/** An older number would belong to an earlier deletion, on a platform that was restored. */
const isDeletionConfirmed = (
  { deleteRequestedAt, number }: ClusterHead,
  { state, number: accepted = 0 }: Pick<ClusterHeartbeat, 'state' | 'number'>,
) => deleteRequestedAt !== undefined && state === 'Deleted' && accepted >= number
