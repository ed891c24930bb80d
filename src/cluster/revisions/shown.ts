import type { ClusterRecord } from '../cluster-store.ts'
import type { Revision } from './revision.ts'
import type { RevisionStore } from './revision-store.ts'

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
