import { isRecord } from '../../base/json.ts'
import { mapAt, type PackConfig, type YamlMap } from './pack-config.ts'
import { kubernetesFiles } from './paths.ts'

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

// kubeadm makes what is here.
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
