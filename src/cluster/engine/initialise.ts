import { setTimeout as delay } from 'node:timers/promises'
import { replaceFile } from '../../system/files.ts'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { runKubeadm } from './run-kubeadm.ts'
import { clusterPaths, criSocket, kubernetesFiles, type ClusterPaths } from './paths.ts'
import { readdir, rm } from 'node:fs/promises'
import { readInitialisation, writeInitialisation, writeVersion } from './notes.ts'
import { kubectl } from './kubectl.ts'
import { noteConfigured } from './configured.ts'
import type { Taint } from '../desired/desired-state.ts'

/** Pulls the images of Kubernetes from the registry of this host, and notes that the preparation is done. */
export const pullImages: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  const args = ['config', 'images', 'pull', '--config', paths.kubeadmConfig]
  const failed = await whilePullsAreEarly(() => runKubeadm(paths, args, print), print)
  if (failed !== undefined) throw new StepFailed(`the images of Kubernetes cannot be pulled: ${failed}`)
  await replaceFile(paths.prepared, JSON.stringify({ digest: order.digest }), 0o600)
  print('[images] all images of Kubernetes are pulled')
}

const tries = 20
/** The registry is part of the daemon, which may just be started again; containerd finds its containers anew after a restart, which takes seconds. */
const early = /connection refused|server is not initialized yet/

/**
 * Pulls again where the registry takes no connection, or containerd is not ready.
 * @param pull gives its failure; undefined for none
 * @returns the failure of the last try; undefined for none
 */
export async function whilePullsAreEarly(
  pull: () => Promise<string | undefined>,
  print: (line: string) => void,
  pauseMs = 3_000,
): Promise<string | undefined> {
  for (let left = tries - 1; ; left -= 1) {
    const failed = await pull()
    if (failed === undefined || left === 0 || !early.test(failed)) return failed
    print(
      '[images-wait] the registry of this host or containerd does not answer; the images are pulled again in a moment',
    )
    await delay(pauseMs)
  }
}

/** Order of `kubeadm-init`. */
interface InitialiseOrder {
  readonly stateDirectory: string
  readonly uid: string
  readonly node: string
  /** Of Kubernetes. */
  readonly version: string
  /** Set by the API: the kubelet may not set all of them itself. */
  readonly labels: Readonly<Record<string, string>>
  /** Set by kubeadm. */
  readonly taints: readonly Taint[]
  /** `configurationDigest` of the desired state. */
  readonly digest: string
}

/** `kubeadm init`, and the labels of the node. Leftovers of an unfinished `kubeadm init` have to be cleared before. */
export const initialise: StepAction = async (order, print) => {
  const { stateDirectory, uid, node, version, labels, taints, digest } = order as unknown as InitialiseOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readInitialisation(paths)
  if (noted === 'damaged')
    throw new StepFailed(
      `${paths.initialisation} cannot be read, so it is unknown whether a control plane is set up; delete the cluster and create it again`,
    )
  if (noted?.uid !== uid || noted.state === 'begun') {
    if (!noted) await refuseForeignCluster()
    await writeInitialisation(paths, { uid, state: 'begun' })
    // The token of the last line would be in the journal; it is asked for when a node joins.
    const args = ['init', '--config', paths.kubeadmConfig, '--skip-token-print']
    const failed = await runKubeadm(paths, args, print)
    if (failed !== undefined) throw new StepFailed(`kubeadm init failed: ${failed}`)
    await writeInitialisation(paths, { uid, state: 'initialised' })
  }
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
  if (pairs.length > 0) await kubectl(paths, ['label', '--overwrite', 'node', node, ...pairs])
  await noteConfigured(paths, digest, { labels, taints })
  await writeVersion(paths, version)
  await writeInitialisation(paths, { uid, state: 'done' })
  print('[initialised] the control plane is set up')
}

/** A cluster that is not of edgehostd must not be taken for a try of our own, which is reset before the next. */
async function refuseForeignCluster(): Promise<void> {
  const manifests = await readdir(kubernetesFiles.manifests).catch(() => [])
  if (manifests.length > 0)
    throw new StepFailed(
      `${kubernetesFiles.manifests} has files of another cluster; remove that cluster first, for example by kubeadm reset`,
    )
}

/** Removes leftovers of an unfinished `kubeadm init`, so that the next one can begin. */
export const clearInitialisation: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  print('[clear] an initialisation that did not end is cleared away')
  await resetKubeadm(paths, print)
  for (const note of [paths.initialisation, paths.configured, paths.version]) await rm(note, { force: true })
}

/** @throws StepFailed with the reason */
export async function resetKubeadm(paths: ClusterPaths, print: (line: string) => void): Promise<void> {
  const args = ['reset', '--force', `--cri-socket=${criSocket}`]
  const failed = await runKubeadm(paths, args, print)
  if (failed !== undefined) throw new StepFailed(`kubeadm reset failed: ${failed}`)
}
