import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { StepFailed } from '../../step.ts'
import type { StepAction } from '../../step-program/action.ts'
import { getByKubectl, kubectl } from '../kubectl.ts'
import { clusterPaths, kubernetesFiles, type ClusterPaths } from '../paths.ts'
import type { UpgradeOrder } from './check.ts'
import { removeOtherCopies } from './copy.ts'
import { nodeTrouble, workloadTrouble } from './health.ts'
import { readChange, removeChange, writeVersion } from './notes.ts'

/** So long everything has to be as it shall be without a break. */
const steadyMs = 60_000
const patienceMs = 600_000
const pauseMs = 2_000
const addons = ['deployment/coredns', 'daemonset/kube-proxy']

/**
 * Waits until the new version is good: API ready, the node Ready at that version, CoreDNS and kube-proxy available, for a minute. From then
 * on nothing goes back by itself; what the upgrade has left goes, and the copies of before.
 */
export const settleKubernetes: StepAction = async (given, print) => {
  const { stateDirectory, to, node } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readChange(paths)
  if (noted === 'damaged')
    throw new StepFailed(`${paths.change} cannot be read; delete it where Kubernetes ${to} runs`)
  if (noted === undefined) return
  const end = performance.now() + patienceMs
  let [since, last] = [performance.now(), '']
  while (performance.now() - since < steadyMs) {
    await delay(pauseMs)
    const trouble = await troubleOf(paths, node, to)
    if (trouble === undefined) continue
    since = performance.now()
    if (since > end) throw new StepFailed(`Kubernetes ${to} is not good: ${trouble}`)
    if (trouble !== last) print(`[settling] ${trouble}`)
    last = trouble
  }
  await writeVersion(paths, to)
  for (const left of [join(kubernetesFiles.folder, 'tmp'), paths.next.folder])
    await rm(left, { recursive: true, force: true })
  await removeOtherCopies(paths, noted.generation)
  await removeChange(paths)
  print(`[good] Kubernetes ${to} is good: everything has been available for ${steadyMs / 1_000} s`)
}

/** What is not good; undefined where everything is. */
async function troubleOf(paths: ClusterPaths, node: string, version: string): Promise<string | undefined> {
  try {
    const ready = await kubectl(paths, ['get', '--raw=/readyz', '--request-timeout=5s'], 10_000)
    if (ready.trim() !== 'ok') return `the API server is not ready: ${ready.trim()}`
    const objectOf = (...args: readonly string[]) => getByKubectl<KubernetesObject>(paths, args, 10_000)
    const own = await objectOf('node', node)
    if (!own) return `the node ${node} is not registered`
    const trouble = nodeTrouble(own, version)
    if (trouble !== undefined) return trouble
    for (const addon of addons) {
      // A pack may bring another one in its place.
      const workload = await objectOf(addon, '--namespace=kube-system')
      const found = workload && workloadTrouble(workload, Date.now())
      if (found !== undefined) return found
    }
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
