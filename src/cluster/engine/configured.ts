import { join } from 'node:path'
import { kubernetesFiles, type ClusterPaths } from './paths.ts'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { replaceFile } from '../../system/files.ts'
import type { Taint, DesiredState } from '../desired/desired-state.ts'
import { readNote } from './notes.ts'

/** A file that kubeadm makes of its configuration. */
export interface RenderedFile {
  /** Its name in the folder of a dry run of kubeadm. */
  readonly name: string
  /** Its path on the host. */
  readonly path: string
  /** Its reader: a static pod, by the name of its container, or the kubelet. */
  readonly of: StaticPod | 'kubelet'
}

/** Names of the static pods of kubeadm, and of their only containers. */
export const staticPods = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
type StaticPod = (typeof staticPods)[number]

/** Phases of `kubeadm init` that make the files; with `--dry-run` into a folder of their own, and without the API server. */
export const renderingPhases = [['etcd', 'local'], ['control-plane', 'all'], ['kubelet-start']] as const

/** The files; instance-config.yaml is made since 1.34 or so. */
export const renderedFiles: readonly RenderedFile[] = [
  ...staticPods.map((name) => ({
    name: `${name}.yaml`,
    path: join(kubernetesFiles.manifests, `${name}.yaml`),
    of: name,
  })),
  ...['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) => ({
    name,
    path: join('/var/lib/kubelet', name),
    of: 'kubelet' as const,
  })),
]

/** Applied configuration of Kubernetes on this host, as noted on the disk. */
export interface Configured {
  /** `configurationDigest` of the fully applied configuration; empty during a change. */
  readonly digest: string
  /** SHA-256, hex, of the files that kubeadm made, by their paths. */
  readonly files: Readonly<Record<string, string>>
  /** Names of labels of the node that are ours, and its taints: another configuration takes them back. */
  readonly labels: readonly string[]
  readonly taints: readonly Pick<Taint, 'key' | 'effect'>[]
  /** Static pods and kube-proxy that have another configuration and are not known to run with it yet. */
  readonly unproved: readonly string[]
}

const nothingConfigured: Configured = { digest: '', files: {}, labels: [], taints: [], unproved: [] }

/** Digest of the input for the control plane, the kubelet, kube-proxy and the node, beside the version. SHA-256, hex. */
export function configurationDigest({
  name,
  kubernetes,
  node,
}: Pick<DesiredState, 'name' | 'kubernetes' | 'node'>) {
  const { config } = kubernetes
  const { address, endpoint, labels, taints, runsWorkloads } = node
  return sha256(JSON.stringify([name, config, node.name, address, endpoint, labels, taints, runsWorkloads]))
}

/** @returns `nothingConfigured` where there is no note, or no readable one: then everything is compared anew */
export async function readConfigured(paths: Pick<ClusterPaths, 'configured'>): Promise<Configured> {
  const noted = await readNote<Configured>(paths.configured)
  return noted === undefined || noted === 'damaged' ? nothingConfigured : { ...nothingConfigured, ...noted }
}

export const writeConfigured = (paths: Pick<ClusterPaths, 'configured'>, configured: Configured) =>
  replaceFile(paths.configured, JSON.stringify(configured), 0o600)

/** Notes that everything is as desired, with the files as they are now. */
export async function noteConfigured(
  paths: Pick<ClusterPaths, 'configured'>,
  digest: string,
  { labels, taints }: { readonly labels: DesiredState['node']['labels']; readonly taints: readonly Taint[] },
): Promise<void> {
  await writeConfigured(paths, {
    digest,
    files: await digestsOfFiles(),
    labels: Object.keys(labels),
    unproved: [],
    taints: taints.map(({ key, effect }) => ({ key, effect })),
  })
}

/** Whether the control plane and the node have a configuration, and the files are as kubeadm made them. */
export async function isConfigured(
  paths: Pick<ClusterPaths, 'configured'>,
  digest: string,
): Promise<boolean> {
  const noted = await readConfigured(paths)
  return noted.digest === digest && sameFiles(noted.files, await digestsOfFiles())
}

/** A file that is not there has no entry, as the manifest of etcd where another etcd is used. */
async function digestsOfFiles(): Promise<Record<string, string>> {
  const digests = await Promise.all(
    renderedFiles.map(async ({ path }) => {
      const content = await readFile(path).catch(() => undefined)
      return content === undefined ? [] : [[path, sha256(content)] as const]
    }),
  )
  return Object.fromEntries(digests.flat())
}

function sameFiles(one: Configured['files'], other: Configured['files']): boolean {
  const paths = Object.keys(one)
  return paths.length === Object.keys(other).length && paths.every((path) => one[path] === other[path])
}

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')
