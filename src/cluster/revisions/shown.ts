import type { ClusterRecord } from '../cluster-store.ts'
import type { Outcome } from './outcomes.ts'
import type { Revision } from './revision.ts'
import type { RevisionStore } from './revision-store.ts'

const standing: readonly Outcome[] = ['waiting', 'held', 'applying', 'good']

/** The revision that the API shows, and that a write changes: the newest accepted one, unless it has failed; then the active one. */
export function shownRevision(
  revisions: Pick<RevisionStore, 'newest' | 'find'>,
  { generation }: Pick<ClusterRecord, 'generation'>,
): Revision {
  const newest = revisions.newest()
  const shown = newest && standing.includes(newest.outcome) ? newest : revisions.find(generation)
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
