import { hash } from 'node:crypto'
import { hidden, type Compared } from '../../base/described-change.ts'
import { masked } from '../../base/mask.ts'
import { labelOfDefinition } from '../../definition/definition.ts'
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

/** What the audit trail compares of a revision; a sensitive value is compared by what it is, where that can still be read. */
export function comparedConfiguration(
  { name, deleteRequestedAt }: Pick<ClusterRecord, 'name' | 'deleteRequestedAt'>,
  { posted, plain, summary, scheduleAt }: Revision,
): Compared {
  const { metadata = {}, spec = {} } = posted
  const { clusterConfig, machinePoolConfig } = spec.cloudConfig?.spec ?? {}
  const plainOnes = plain?.spec?.profileVariables ?? []
  const { definition, kubernetes } = summary
  return {
    name,
    labels: metadata.labels,
    tags: metadata.tags,
    ...clusterConfig,
    pools: machinePoolConfig,
    isDeletionRequested: deleteRequestedAt !== null,
    definition: labelOfDefinition(definition),
    kubernetes: kubernetes.version,
    ...(scheduleAt === null ? {} : { scheduleAt: new Date(scheduleAt).toISOString() }),
    variables: (spec.profileVariables ?? []).map(({ name: variable, profileUid, value = '' }, index) => ({
      name: [profileUid, variable].filter(Boolean).join('.'),
      value: value === masked ? hidden(plainOnes[index]?.value ?? masked) : value,
    })),
  }
}

/** The ETag of a document that GET gives. */
export const etagOf = (document: ClusterConfiguration): string =>
  `"${hash('sha256', JSON.stringify(document)).slice(0, 32)}"`
