import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { conditionOf, isTrue, textAt } from '../../../kubernetes/fields.ts'
import { readiness } from '../../../kubernetes/readiness.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import { StepFailed, type StepAction } from '../../loop/step.ts'
import { startUnits } from '../units.ts'
import { expectReady, getByKubectl, kubectl } from '../kubectl.ts'
import { clusterPaths, type ClusterPaths, kubernetesFiles } from '../paths.ts'
import { kubernetesPrograms } from '../../needs/needs.ts'
import { pointTo, readNextPrograms } from '../programs.ts'
import { startKubelet, settleLeaders } from '../node-containers.ts'
import { type UpgradeOrder, untilChecksPass } from './check.ts'
import { folderOf, readCopy, removeOtherCopies } from './copy.ts'
import { runKubeadmIn } from '../run-kubeadm.ts'
import { readChange, writeChange, removeChange, writeVersion } from '../notes.ts'
import { rm } from 'node:fs/promises'

/** Problem of a node at a version; undefined for none. Pure. */
export function nodeTrouble(node: KubernetesObject, version: string): string | undefined {
  const { name } = node.metadata
  const ready = conditionOf(node, 'Ready')
  if (!ready || !isTrue(ready.status))
    return `the node ${name} is not Ready: ${ready?.message || 'it has not reported'}`
  const running = textAt(node, ['status', 'nodeInfo', 'kubeletVersion'])
  return running === `v${version}`
    ? undefined
    : `the kubelet of ${name} is ${running || 'of no version'}, not v${version}`
}

/** Problem of CoreDNS or kube-proxy as it was applied last; undefined for none. Pure. @param now milliseconds since 1970 */
export function workloadTrouble(object: KubernetesObject, now: number): string | undefined {
  const { status, message } = readiness(object, now)
  return status === 'Current' ? undefined : `${object.metadata.name}: ${message}`
}

const readyMs = 180_000
const pauseMs = 1_000
/** Checks that come before anything is changed: whether the node is ready, and whether a pod starts within 15 s. */
const passingCheck = /^\[ERROR (?:CreateJob|ControlPlaneNodesReady)\]/

/**
 * Upgrades the control plane by kubeadm, and then the kubelet. It may be cut off at any moment, and done again: kubeadm upgrades to the
 * version that it finds, too. The network, the shims and containerd stay as they are.
 */
export const upgradeKubernetes: StepAction = async (given, print) => {
  const { stateDirectory, to, node, generation } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readChange(paths)
  if (
    noted === undefined ||
    noted === 'damaged' ||
    !['copied', 'upgrading', 'upgraded'].includes(noted.phase)
  )
    throw new StepFailed(
      `${paths.change} does not say that there is a copy to go back to; apply the change again`,
    )
  if (noted.phase === 'upgraded') return
  if (!(await readCopy(folderOf(paths, generation))))
    throw new StepFailed(`the copy in ${folderOf(paths, generation)} is gone, so Kubernetes is not upgraded`)
  const programs = await readNextPrograms(paths, to)
  await writeChange(paths, { ...noted, phase: 'upgrading' })
  await startUnits({ stateDirectory }, print)
  await expectReady(paths, readyMs, 'the API server does not answer before the upgrade')

  // The health check of kubeadm gives its Job 15 s only.
  await settleLeaders(paths, 'the upgrade begins', print)
  // kubeadm upgrade takes the configuration from the cluster.
  await run(['init', 'phase', 'upload-config', 'all', '--config', paths.next.kubeadmConfig])
  await run(['upgrade', 'apply', '--yes', '--config', paths.next.upgradeConfig])
  for (const name of kubernetesPrograms)
    await pointTo(join(paths.programs, name, 'current'), programs.folders[name])
  await startKubelet(true)
  await expectReady(paths, readyMs, 'the API server does not answer after the upgrade')
  await expectNode(paths, node, to)
  await writeChange(paths, { ...noted, phase: 'upgraded' })
  print(`[upgraded] Kubernetes ${to} runs; it is good when everything has been available for a while`)

  async function run(args: readonly string[]): Promise<void> {
    const { failed } = await untilChecksPass(
      async () => {
        const passing: string[] = []
        const why = await runKubeadmIn(programs.folders, args, (line) => {
          if (passingCheck.test(line.trim())) passing.push(line)
          print(line)
        })
        return { failed: why, mayPass: passing.length > 0 }
      },
      () => print('[checking] nothing was changed by this try; it is done again'),
    )
    if (failed !== undefined) throw new StepFailed(`kubeadm ${args.slice(0, 2).join(' ')} failed: ${failed}`)
  }
}

async function expectNode(paths: ClusterPaths, node: string, version: string): Promise<void> {
  const end = Date.now() + readyMs
  for (;;) {
    const trouble = await getByKubectl<KubernetesObject>(paths, ['node', node], 10_000).then(
      (own) => (own ? nodeTrouble(own, version) : `the node ${node} is not registered`),
      (error: unknown) => (error as Error).message,
    )
    if (trouble === undefined) return
    if (Date.now() > end)
      throw new StepFailed(`after the upgrade ${trouble}; see: journalctl -u kubelet.service`)
    await delay(pauseMs)
  }
}

/** Time for which everything has to be good without a break. */
const steadyMs = 60_000
const settlePatienceMs = 600_000
const settlePauseMs = 2_000
const addons = ['deployment/coredns', 'daemonset/kube-proxy']

/**
 * Waits until the new version is good: API ready, the node Ready at that version, CoreDNS and kube-proxy available, for a minute. From then
 * on nothing goes back by itself; leftovers of the upgrade go, and the former copies.
 */
export const settleKubernetes: StepAction = async (given, print) => {
  const { stateDirectory, to, node } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const noted = await readChange(paths)
  if (noted === 'damaged')
    throw new StepFailed(`${paths.change} cannot be read; delete it where Kubernetes ${to} runs`)
  if (noted === undefined) return
  const end = performance.now() + settlePatienceMs
  let [since, last] = [performance.now(), '']
  while (performance.now() - since < steadyMs) {
    await delay(settlePauseMs)
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

/** First problem; undefined for none. */
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
