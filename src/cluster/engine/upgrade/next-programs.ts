import { join } from 'node:path'
import { StepFailed } from '../../step.ts'
import { commands } from '../commands.ts'
import { kubeadmFailure } from '../kubeadm-failure.ts'
import { readNote } from '../note.ts'
import type { ClusterPaths } from '../paths.ts'
import { kubernetesPrograms } from '../programs.ts'

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

/** Program and environment of the next kubeadm, which finds the kubelet and kubectl of its version. */
export const nextKubeadm = ({ folders }: NextPrograms) => ({
  program: join(folders.kubeadm, 'kubeadm'),
  environment: {
    PATH: [...kubernetesPrograms.map((name) => folders[name]), '/usr/sbin:/usr/bin:/sbin:/bin'].join(':'),
  },
})

/** Runs the next kubeadm. @param print gets each line @returns why it failed; undefined if it did not */
export async function runNextKubeadm(
  programs: NextPrograms,
  args: readonly string[],
  print: (line: string) => void,
): Promise<string | undefined> {
  const { program, environment } = nextKubeadm(programs)
  const { exitCode, tail } = await commands.stream(program, args, print, environment)
  return exitCode === 0 ? undefined : kubeadmFailure(tail)
}
