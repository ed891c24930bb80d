import { join } from 'node:path'
import { kubernetesCommands } from './step-lines.ts'
import type { ClusterPaths } from './paths.ts'
import { kubernetesPrograms } from '../needs/needs.ts'

/**
 * Failure in the last lines of kubeadm; one line. Its checks say `[ERROR Name]: reason`, a phase says `error execution phase NAME: reason`.
 * @param output with the lines of standard error
 */
export function kubeadmFailure(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('To see the stack trace'))
  const matches = (form: RegExp) => [...new Set(lines.flatMap((line) => form.exec(line)?.[1] ?? []))]
  const checks = matches(/^\[ERROR [^\]]+\]: (.+)$/)
  const errors = matches(/^(?:error: )?(?:error execution phase \S+: |error: )(.+)$/)
  // In between is the chain of those who passed the error on.
  const images = lines.flatMap((line) => {
    const [, image, reason] = /^failed to pull image "([^"]+)": .*?([^:]+)$/.exec(line) ?? []
    return image === undefined ? [] : [`${image}: ${String(reason).trim()}`]
  })
  const found = [checks, images, errors].find(({ length }) => length > 0) ?? []
  return found.length > 0 ? found.join('; ') : (lines.at(-1) ?? 'kubeadm gave no reason')
}

type Folders = Readonly<Record<(typeof kubernetesPrograms)[number], string>>

/** Program and environment of the kubeadm of these folders, which finds the kubelet and kubectl of its version. */
export const kubeadmIn = (folders: Folders) => ({
  program: join(folders.kubeadm, 'kubeadm'),
  environment: {
    PATH: [...kubernetesPrograms.map((name) => folders[name]), '/usr/sbin:/usr/bin:/sbin:/bin'].join(':'),
  },
})

/** Runs the kubeadm of these folders. Parameters and result as of `runKubeadm`. */
export async function runKubeadmIn(
  folders: Folders,
  args: readonly string[],
  print: (line: string) => void,
  more: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const { program, environment } = kubeadmIn(folders)
  const { exitCode, tail } = await kubernetesCommands.stream(program, args, print, {
    ...environment,
    ...more,
  })
  return exitCode === 0 ? undefined : kubeadmFailure(tail)
}

/**
 * Runs the kubeadm in use, which finds the kubelet beside it.
 * @param print gets each line
 * @param more of its environment
 * @returns its failure; undefined for none
 */
export function runKubeadm(
  { programs }: Pick<ClusterPaths, 'programs'>,
  args: readonly string[],
  print: (line: string) => void,
  more: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const current = (name: string) => join(programs, name, 'current')
  const folders = { kubeadm: current('kubeadm'), kubelet: current('kubelet'), kubectl: current('kubectl') }
  return runKubeadmIn(folders, args, print, more)
}
