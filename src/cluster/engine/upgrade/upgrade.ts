import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { StepFailed } from '../../step.ts'
import type { StepAction } from '../../step-program/action.ts'
import { startUnits } from '../actions/start-units.ts'
import { expectReady, getByKubectl } from '../kubectl.ts'
import { clusterPaths, type ClusterPaths } from '../paths.ts'
import { kubernetesPrograms, pointTo } from '../programs.ts'
import { startKubelet } from '../kubelet.ts'
import type { UpgradeOrder } from './check.ts'
import { folderOf, readCopy } from './copy.ts'
import { nodeTrouble } from './health.ts'
import { settleLeaders } from '../leaders.ts'
import { runKubeadmIn } from '../run-kubeadm.ts'
import { readNextPrograms } from './next-programs.ts'
import { untilChecksPass } from './patience.ts'
import { readChange, writeChange } from './notes.ts'

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
