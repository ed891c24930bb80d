import { isRecord } from '../../base/json.ts'
import { mapAt, type PackConfig, type YamlMap, parsePackConfig } from './pack-config.ts'
import { kubernetesFiles } from './paths.ts'
import { existsSync } from 'node:fs'
import type { PreflightCodeName, PreflightProblem } from '../desired/preflight-codes.ts'
import { CommandFailed } from '../../system/runner.ts'
import { unsupportedIn } from '../desired/version.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { KubeadmFiles } from './kubeadm-files.ts'
import { kubernetesPrograms } from '../needs/needs.ts'
import type { Programs } from './programs.ts'
import type { RegistryFiles } from './containerd.ts'

/** A file that the API server needs at its start, and that has to be on the host before. */
export interface RequiredFile {
  /** The argument that names it, for example `--audit-policy-file`. */
  readonly argument: string
  /** Path on the host. */
  readonly path: string
}

/** Arguments of the API server that name a file which it reads: kube-apiserver --help. */
const fileArguments: readonly string[] = [
  'admission-control-config-file',
  'audit-policy-file',
  'audit-webhook-config-file',
  'authentication-config',
  'authentication-token-webhook-config-file',
  'authorization-config',
  'authorization-policy-file',
  'authorization-webhook-config-file',
  'cloud-config',
  'egress-selector-config-file',
  'encryption-provider-config',
  'oidc-ca-file',
  'token-auth-file',
  'tracing-config-file',
]

// kubeadm makes the files in it.
const ownFolder = `${kubernetesFiles.certificates}/`

/** Files that the arguments of the API server need; in a pack, `stages` would make them. */
export function requiredFiles({ clusterConfiguration }: PackConfig): readonly RequiredFile[] {
  const apiServer = mapAt(clusterConfiguration, 'apiServer')
  const volumes = Array.isArray(apiServer.extraVolumes)
    ? (apiServer.extraVolumes as unknown[]).filter(isRecord)
    : []
  return argumentsOf(apiServer.extraArgs)
    .filter(([name, value]) => fileArguments.includes(name) && value.startsWith('/'))
    .map(([name, value]) => ({ argument: `--${name}`, path: onHost(value, volumes) }))
    .filter(({ path }) => !path.startsWith(ownFolder))
}

/** Arguments in both forms of kubeadm. */
function argumentsOf(given: unknown): readonly (readonly [string, string])[] {
  if (Array.isArray(given))
    return (given as unknown[]).filter(isRecord).map(({ name, value }) => [String(name), String(value)])
  return isRecord(given) ? Object.entries(given).map(([name, value]) => [name, String(value)]) : []
}

/** The path on the host of a file of the container. */
function onHost(path: string, volumes: readonly YamlMap[]): string {
  for (const { hostPath, mountPath } of volumes) {
    if (typeof hostPath !== 'string' || typeof mountPath !== 'string') continue
    const folder = mountPath.replace(/\/$/, '')
    if (path === folder || path.startsWith(`${folder}/`))
      return hostPath.replace(/\/$/, '') + path.slice(folder.length)
  }
  return path
}

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

/** Checks the needs of kubeadm: its version, programs, registry and configuration, and the files that the API server reads. */
export function createEnginePreflight(options: EnginePreflightOptions) {
  const { programs, files, registryFiles, exists = existsSync } = options

  return async (desired: DesiredState, signal: AbortSignal): Promise<readonly PreflightProblem[]> => {
    const { kubernetes } = desired
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
        await files.validate(kubeadm, await files.make(kubeadm, desired, signal), signal)
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
