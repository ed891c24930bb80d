import { hash } from 'node:crypto'
import { hidden, type Compared } from '../../base/described-change.ts'
import { masked } from '../../base/mask.ts'
import { labelOfDefinition } from '../../definition/definition.ts'
import type { ClusterRecord } from '../cluster-store.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { Revision, RevisionStore } from './revisions.ts'

/** Start time of a revision; null where it has come, or there is none. */
export const scheduleOf = ({ outcome, scheduleAt }: Pick<Revision, 'outcome' | 'scheduleAt'>) =>
  outcome === 'waiting' || outcome === 'held' ? scheduleAt : null

/** A revision as GET gives it: the configuration with masked values, and the fields of the host itself. */
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
      name,
      id: uid,
      creationTimestamp: new Date(createdAt).toISOString(),
      lastModifiedTimestamp: new Date(at).toISOString(),
    },
    spec: {
      ...posted.spec,
      ...(scheduleAt === null ? {} : { scheduleAt: new Date(scheduleAt).toISOString() }),
    },
  }
}

/** Configuration of a revision for the audit trail; sensitive values are compared in plain text, where that can still be read. */
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

/** The ETag of a document of GET. */
export const etagOf = (document: ClusterConfiguration): string =>
  `"${hash('sha256', JSON.stringify(document)).slice(0, 32)}"`

/** The revision that the API shows, and that a write changes: the one that waits or is held, otherwise the active one. */
export function shownRevision(
  revisions: Pick<RevisionStore, 'pending' | 'find'>,
  { generation }: Pick<ClusterRecord, 'generation'>,
): Revision {
  const shown = revisions.pending() ?? revisions.find(generation)
  if (!shown) throw new Error(`revision ${generation} is not stored`)
  return shown
}

/** A revision in a line, for events. */
export function lineOf({
  generation,
  by,
  origin,
  summary: { definition, kubernetes },
}: Pick<Revision, 'generation' | 'by' | 'origin' | 'summary'>): string {
  const who = `${by ? ` of ${by}` : ''}${origin === 'rollback' ? ', a rollback' : ''}`
  return `revision ${generation}${who}: ${definition.name} ${definition.version}, Kubernetes ${kubernetes.version}`
}
