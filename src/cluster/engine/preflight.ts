import { existsSync } from 'node:fs'
import type { PreflightCodeName } from '../preflight/codes.ts'
import type { PreflightProblem } from '../problem.ts'
import { CommandFailed } from '../../system/runner.ts'
import { unsupportedIn } from '../change/version.ts'
import type { Wanted } from '../wanted.ts'
import type { KubeadmFiles } from './kubeadm-files.ts'
import { parsePackConfig, type PackConfig } from './pack-config.ts'
import { kubernetesPrograms, type Programs } from './programs.ts'
import type { RegistryFiles } from './registry-files.ts'
import { requiredFiles } from './required-files.ts'

export interface EnginePreflightOptions {
  readonly programs: Pick<Programs, 'find' | 'place'>
  readonly files: Pick<KubeadmFiles, 'make' | 'validate'>
  readonly registryFiles: () => Pick<RegistryFiles, 'problem'>
  /** Version of the host's containerd; undefined where it has none, which the check of the host says. */
  readonly containerdVersion: () => Promise<string | undefined>
  /** Whether a file is on the host. */
  readonly exists?: (path: string) => boolean
}

// The last version that supports containerd 1.
const lastWithContainerd1 = 35

/** Checks what kubeadm needs: its version, programs, registry and configuration, and the files that the API server reads. */
export function createEnginePreflight(options: EnginePreflightOptions) {
  const { programs, files, registryFiles, exists = existsSync } = options

  return async (wanted: Wanted, signal: AbortSignal): Promise<readonly PreflightProblem[]> => {
    const { kubernetes } = wanted
    // A program, which runs beside the other checks.
    const runtime = options.containerdVersion()
    const found: PreflightProblem[] = []
    const add = (
      code: PreflightCodeName,
      message: string,
      severity: PreflightProblem['severity'] = 'error',
    ) => found.push({ code, severity, message, pack: kubernetes.pack })

    const unsupported = unsupportedIn(kubernetes.version)
    if (unsupported !== undefined) add('KubernetesVersionUnsupported', unsupported)
    const containerd = await runtime
    if (containerd?.startsWith('1.') && minorOf(kubernetes.version) > lastWithContainerd1)
      add(
        'ContainerRuntimeOutdated',
        `Kubernetes ${kubernetes.version} does not support containerd ${containerd}; install containerd 2`,
        'warning',
      )
    const { problem } = registryFiles()
    if (problem !== undefined) add('RegistryUnusable', problem)
    let hasKubeadm = false
    for (const name of kubernetesPrograms) {
      const source = await programs.find(name, kubernetes.version)
      if (source.kind === 'missing') add(source.code, source.reason)
      else if (name === 'kubeadm') hasKubeadm = true
    }
    const invalid = (error: unknown) => {
      // A program that was not run, or not to its end, has said nothing of the configuration.
      if (error instanceof CommandFailed) return add('ProgramUnusable', error.message)
      return add(
        'KubernetesConfigInvalid',
        `cluster.config of the pack ${kubernetes.pack}: ${(error as Error).message}`,
      )
    }
    let config: PackConfig | undefined
    try {
      config = parsePackConfig(kubernetes)
      if (hasKubeadm) {
        const kubeadm = await programs.place('kubeadm', kubernetes.version)
        await files.validate(kubeadm, await files.make(kubeadm, wanted, signal), signal)
      }
    } catch (error) {
      invalid(error)
    }
    for (const { argument, path } of config ? requiredFiles(config) : [])
      if (!exists(path))
        add(
          'HostFileMissing',
          `the API server reads ${path} (${argument} in cluster.config of the pack ${kubernetes.pack}), and this host has no such file; put it there, since stages of packs are not run`,
        )
    if (kubernetes.stages.length > 0)
      add(
        'StagesNotRun',
        `stages of packs are not run; make what the cluster needs of it by hand: ${kubernetes.stages.join(', ')}`,
        'warning',
      )
    return found
  }
}

const minorOf = (version: string) => Number(version.split('.')[1])
