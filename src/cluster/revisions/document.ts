import { hash } from 'node:crypto'
import type { ClusterRecord } from '../cluster-store.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { Revision } from './revision.ts'

/** When a revision will be begun; null where its time has come, or it has none. */
export const scheduleOf = ({ outcome, scheduleAt }: Pick<Revision, 'outcome' | 'scheduleAt'>) =>
  outcome === 'waiting' || outcome === 'held' ? scheduleAt : null

/** A revision as GET gives it: the configuration with masked values, and what the host itself says of it. */
export function documentOf(
  { uid, name, createdAt }: Pick<ClusterRecord, 'uid' | 'name' | 'createdAt'>,
  revision: Pick<Revision, 'posted' | 'at' | 'outcome' | 'scheduleAt'>,
): ClusterConfiguration {
  const { posted, at } = revision
  const scheduleAt = scheduleOf(revision)
  return {
    ...posted,
    metadata: {
      ...posted.metadata,
      ...{ name, id: uid, creationTimestamp: new Date(createdAt).toISOString() },
      lastModifiedTimestamp: new Date(at).toISOString(),
    },
    spec: {
      ...posted.spec,
      ...(scheduleAt === null ? {} : { scheduleAt: new Date(scheduleAt).toISOString() }),
    },
  }
}

/** The ETag of a document that GET gives. */
export const etagOf = (document: ClusterConfiguration): string =>
  `"${hash('sha256', JSON.stringify(document)).slice(0, 32)}"`
