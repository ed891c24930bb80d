import { StepFailed } from '../../step.ts'
import { readNote } from '../note.ts'
import type { ClusterPaths } from '../paths.ts'
import type { kubernetesPrograms } from '../programs.ts'

/** Folders of the programs of the next version of Kubernetes, which are laid out and not in use. */
export interface NextPrograms {
  readonly version: string
  readonly folders: Readonly<Record<(typeof kubernetesPrograms)[number], string>>
}

/** @throws StepFailed where those of this version are not laid out */
export async function readNextPrograms(
  { next }: Pick<ClusterPaths, 'next'>,
  version: string,
): Promise<NextPrograms> {
  const noted = await readNote<NextPrograms>(next.programs)
  if (noted !== undefined && noted !== 'damaged' && noted.version === version) return noted
  throw new StepFailed(
    `${next.programs} does not name the programs of Kubernetes ${version}; apply the change again: edgehostctl cluster apply`,
  )
}
