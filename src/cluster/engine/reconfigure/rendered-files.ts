import { join } from 'node:path'
import { kubernetesFiles } from '../paths.ts'

/** A file that kubeadm makes of its configuration. */
export interface RenderedFile {
  /** Its name in the folder of a dry run of kubeadm. */
  readonly name: string
  /** Where it is on the host. */
  readonly path: string
  /** Who reads it: a static pod, by the name of its container, or the kubelet. */
  readonly of: StaticPod | 'kubelet'
}

/** Names of the static pods of kubeadm, which are those of their only containers. */
export const staticPods = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
export type StaticPod = (typeof staticPods)[number]

/** Phases of `kubeadm init` that make the files; with `--dry-run` into a folder of their own, and without the API server. */
export const renderingPhases = [['etcd', 'local'], ['control-plane', 'all'], ['kubelet-start']] as const

/** The files; instance-config.yaml is made since 1.34 or so. */
export const renderedFiles: readonly RenderedFile[] = [
  ...staticPods.map((name) => ({
    ...{ name: `${name}.yaml`, path: join(kubernetesFiles.manifests, `${name}.yaml`), of: name },
  })),
  ...['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) => ({
    ...{ name, path: join('/var/lib/kubelet', name), of: 'kubelet' as const },
  })),
]
