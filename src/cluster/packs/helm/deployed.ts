import type { Revision } from './cure.ts'

/** How a release comes to a chart with its values. */
export type Way =
  /** It was deployed so last. */
  | { readonly kind: 'keep' }
  /** It was deployed so before, and helm still has that revision. */
  | { readonly kind: 'rollback'; readonly revision: number }
  | { readonly kind: 'upgrade' }

const mark = 'edgehostd '

/** Description of the revisions of a chart with its values, by which they are known again. @param digest of `chartDigest` */
export const descriptionOf = (digest: string): string => mark + digest

/**
 * How a release comes to a chart with its values, by what helm says of it. helm keeps it in the cluster, so it is right also after the
 * cluster was restored.
 * @param history in any order, with the descriptions; after a cure
 */
export function wayTo(digest: string, history: readonly Revision[]): Way {
  if (digest === '') return { kind: 'upgrade' }
  const newestFirst = history.toSorted((one, other) => other.revision - one.revision)
  const deployed = newestFirst.filter(
    (each) =>
      (each.status === 'deployed' || each.status === 'superseded') && digestOf(each, history) === digest,
  )
  const [last] = newestFirst
  const [found] = deployed
  if (!last || !found) return { kind: 'upgrade' }
  return last === found && last.status === 'deployed'
    ? { kind: 'keep' }
    : { kind: 'rollback', revision: found.revision }
}

/** The digest of a revision; of one that helm has rolled back to another, that of the other one. */
function digestOf(
  { revision, description = '' }: Revision,
  history: readonly Revision[],
): string | undefined {
  if (description.startsWith(mark)) return description.slice(mark.length)
  const to = Number(/^Rollback to (\d+)$/.exec(description)?.[1])
  // One that is gone from the history is not known any more.
  const target = to < revision ? history.find((each) => each.revision === to) : undefined
  return target && digestOf(target, history)
}
