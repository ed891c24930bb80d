import type { CopyObserved } from '../observed.ts'
import type { Revision } from '../revisions/revision.ts'
import type { RevisionStore } from '../revisions/revision-store.ts'

/** The newest copy of the version of Kubernetes of a revision; undefined where none is kept. Pure. */
export const copyFor = (
  copies: readonly CopyObserved[],
  { summary }: Pick<Revision, 'summary'>,
): CopyObserved | undefined => copies.find(({ from }) => from === summary.kubernetes.version)

/**
 * Generations of the revisions that ran when copies were made: programs and images of them are needed as long as the copies. Pure.
 * @param revisions the newest first
 */
export const generationsOf = (
  copies: readonly CopyObserved[],
  revisions: readonly Pick<Revision, 'generation' | 'summary'>[],
): readonly number[] =>
  copies.flatMap(({ from, generation: before }) => {
    const found = revisions.find(
      ({ generation, summary }) => generation < before && summary.kubernetes.version === from,
    )
    return found ? [found.generation] : []
  })

/** What changes need to know of the copies on this host. */
export const createCopies = (
  engine: { copies(): Promise<readonly CopyObserved[]> },
  revisions: Pick<RevisionStore, 'list'>,
) => ({
  /** Generations to which a copy of Kubernetes can go back. */
  copies: async () => generationsOf(await engine.copies(), revisions.list()),
  /** When the copy was made to which a revision can go back; undefined where none is kept. */
  copyTime: async (revision: Pick<Revision, 'summary'>) => copyFor(await engine.copies(), revision)?.at,
})
