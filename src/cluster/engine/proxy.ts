import { setTimeout as delay } from 'node:timers/promises'
import { kubernetesCommands } from './step-lines.ts'
import { getByKubectl, kubectl } from './kubectl.ts'
import { documentsOf } from './pack-config.ts'
import { currentProgram, type ClusterPaths } from './paths.ts'
import { runKubeadm } from './run-kubeadm.ts'
import { StepFailed } from '../loop/step.ts'

const inSystem = '--namespace=kube-system'
const startMs = 120_000
// A program that refuses its configuration ends within a second.
const steadyMs = 10_000

/** Whether kube-proxy is installed with another configuration than the file's; false where kubeadm did not install it. */
export async function isProxyOther(paths: ClusterPaths): Promise<boolean> {
  const present = await getByKubectl<ProxyObject>(paths, ['configmap', 'kube-proxy', inSystem])
  if (!present) return false
  const args = ['init', 'phase', 'addon', 'kube-proxy', '--config', paths.kubeadmConfig, '--print-manifest']
  const manifest = await kubernetesCommands.run(currentProgram(paths.programs, 'kubeadm'), args)
  return proxyConfiguration(manifest) !== present.data?.['config.conf']
}

/** The configuration of kube-proxy in the output of `kubeadm init phase addon kube-proxy --print-manifest`. */
export function proxyConfiguration(manifest: string): string | undefined {
  const objects = documentsOf(manifest) as readonly ProxyObject[]
  const map = objects.find((each) => each.kind === 'ConfigMap' && each.metadata?.name === 'kube-proxy')
  return map?.data?.['config.conf']
}

interface ProxyObject {
  readonly kind?: string
  readonly metadata?: { readonly name?: string }
  readonly data?: Readonly<Record<string, string>>
}

/** Applies kube-proxy with its new configuration. Its pods are replaced, since they read it at their start only. */
export async function applyProxy(paths: ClusterPaths, print: (line: string) => void): Promise<void> {
  const args = ['init', 'phase', 'addon', 'kube-proxy', '--config', paths.kubeadmConfig]
  const failed = await runKubeadm(paths, args, print)
  if (failed !== undefined) throw new StepFailed(`kube-proxy cannot be applied: ${failed}`)
  await kubectl(paths, ['delete', 'pods', inSystem, '--selector=k8s-app=kube-proxy'], startMs)
  const end = Date.now() + startMs
  for (;;) {
    const shown = await getByKubectl<{ readonly items: readonly PodObject[] }>(paths, [
      ...['pods', inSystem, '--selector=k8s-app=kube-proxy'],
    ])
    const items = shown?.items ?? []
    if (items.length > 0 && items.every((pod) => isSteady(pod, Date.now()))) return
    if (Date.now() > end)
      throw new StepFailed(
        `kube-proxy does not run with this configuration; see: kubectl logs ${inSystem} --selector=k8s-app=kube-proxy`,
      )
    await delay(1_000)
  }
}

/** The read fields of a pod. */
export interface PodObject {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly ready: boolean
      readonly state?: { readonly running?: { readonly startedAt?: string } }
    }[]
  }
}

/** Whether all containers of a pod have run for some seconds. Pure. */
export function isSteady({ metadata, status }: PodObject, now: number): boolean {
  const containers = status?.containerStatuses ?? []
  return (
    metadata.deletionTimestamp === undefined &&
    containers.length > 0 &&
    containers.every(
      ({ ready, state }) => ready && now - Date.parse(state?.running?.startedAt ?? '') >= steadyMs,
    )
  )
}
