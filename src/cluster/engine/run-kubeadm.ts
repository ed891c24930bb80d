import { commands } from './commands.ts'
import { kubeadmFailure } from './kubeadm-failure.ts'
import type { ClusterPaths } from './paths.ts'
import { currentProgram, kubernetesPrograms } from './programs.ts'

/**
 * Runs the kubeadm in use, which finds the kubelet beside it.
 * @param print gets each line
 * @param more of its environment
 * @returns why it failed; undefined if it did not
 */
export async function runKubeadm(
  { programs }: Pick<ClusterPaths, 'programs'>,
  args: readonly string[],
  print: (line: string) => void,
  more: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const folders = kubernetesPrograms.map((name) => `${programs}/${name}/current`)
  const environment = { PATH: `${folders.join(':')}:/usr/sbin:/usr/bin:/sbin:/bin`, ...more }
  const result = await commands.stream(currentProgram(programs, 'kubeadm'), args, print, environment)
  return result.exitCode === 0 ? undefined : kubeadmFailure(result.tail)
}
