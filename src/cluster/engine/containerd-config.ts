import { cniFolders, containerdSocket, containerdState, runcState, type ClusterPaths } from './paths.ts'

export interface ContainerdConfigOptions {
  readonly paths: Pick<ClusterPaths, 'containerd' | 'registries'>
  /** Of containerd, for example `1.6.20`. */
  readonly version: string
  /** Image of the container that holds the network of a pod. */
  readonly pauseImage: string
  /** Whether a process of this host may lower its own score for the OOM killer; one without CAP_SYS_RESOURCE may not. */
  readonly mayLowerOomScore: boolean
}

/**
 * config.toml of our containerd, apart from that of the host in everything: root, state, sockets, folder of options. Containerd 1 reads
 * version 2 of the file, containerd 2 version 3, in which the plugin of Kubernetes is two.
 * Source: https://github.com/containerd/containerd/blob/main/docs/cri/config.md
 */
export function containerdConfig(options: ContainerdConfigOptions): string {
  const { paths, version, pauseImage, mayLowerOomScore } = options
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isFirst = major < 2
  const images = isFirst ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.images'
  const runtime = isFirst ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.runtime'
  const table = (...names: string[]) => `[plugins.${names.map(quote).join('.')}]`
  const restrict = `restrict_oom_score_adj = ${String(!mayLowerOomScore)}`
  const lines = [
    '# Written by edgehostd.',
    `version = ${isFirst ? 2 : 3}`,
    `root = ${quote(paths.containerd)}`,
    `state = ${quote(containerdState)}`,
    '',
    '[grpc]',
    `address = ${quote(containerdSocket)}`,
    '',
    table('io.containerd.internal.v1.opt'),
    `path = ${quote(`${paths.containerd}/opt`)}`,
    '',
    table(runtime),
    ...(isFirst ? [`sandbox_image = ${quote(pauseImage)}`] : []),
    restrict,
    '',
    ...(isFirst ? [] : [table(images, 'pinned_images'), `sandbox = ${quote(pauseImage)}`, '']),
    table(images, 'registry'),
    `config_path = ${quote(paths.registries)}`,
    '',
    table(runtime, 'cni'),
    // Since 2.1 bin_dir is deprecated.
    major > 2 || (major === 2 && minor >= 1)
      ? `bin_dirs = [${quote(cniFolders.programs)}]`
      : `bin_dir = ${quote(cniFolders.programs)}`,
    `conf_dir = ${quote(cniFolders.configs)}`,
    '',
    table(runtime, 'containerd', 'runtimes', 'runc'),
    'runtime_type = "io.containerd.runc.v2"',
    '',
    table(runtime, 'containerd', 'runtimes', 'runc', 'options'),
    'SystemdCgroup = true',
    `Root = ${quote(runcState)}`,
  ]
  return `${lines.join('\n')}\n`
}

/** The version in the output of `containerd --version`, without `v`. */
export const parseContainerdVersion = (output: string): string | undefined =>
  /\bv?(\d+\.\d+\.\d+)/.exec(output)?.[1]

// TOML reads the escapes of JSON.
const quote = (text: string) => JSON.stringify(text)
