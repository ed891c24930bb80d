import { readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../system/files.ts'
import { createBoundedRunner } from '../../../system/bounded-memory.ts'
import { createRunner } from '../../../system/runner.ts'
import { skewOf } from '../../change/version.ts'
import { StepFailed } from '../../step.ts'
import type { StepAction } from '../../step-program/action.ts'
import { startUnits } from '../actions/start-units.ts'
import { whilePullsAreEarly } from '../actions/pull-images.ts'
import { kubeadmFailure } from '../kubeadm-failure.ts'
import { waitUntilReady } from '../kubectl.ts'
import { clusterPaths, type ClusterPaths } from '../paths.ts'
import { kubernetesPrograms } from '../programs.ts'
import { kubeadmIn, runKubeadmIn } from '../run-kubeadm.ts'
import { readNextPrograms } from './next-programs.ts'
import { untilChecksPass } from './patience.ts'
import { parseUpgradePlan } from './plan-output.ts'
import { upgradeRefused } from './refused.ts'
import { readInitFile, upgradeConfiguration } from './upgrade-configuration.ts'

/** What the actions of a change of the version are told. */
export interface UpgradeOrder {
  readonly stateDirectory: string
  readonly from: string
  readonly to: string
  /** Generation with which the change was begun. */
  readonly generation: number
  /** Name of the node. */
  readonly node: string
}

const readyMs = 120_000
const planMs = 300_000

/** Pulls the images of the next version; those in use stay. */
export const pullNextImages: StepAction = async (given, print) => {
  const { stateDirectory, to } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const { folders } = await readNextPrograms(paths, to)
  const args = ['config', 'images', 'pull', '--config', paths.next.kubeadmConfig]
  const failed = await whilePullsAreEarly(() => runKubeadmIn(folders, args, print), print)
  if (failed !== undefined) throw new StepFailed(`the images of Kubernetes ${to} cannot be pulled: ${failed}`)
  print(`[images] all images of Kubernetes ${to} are pulled`)
}

/** Asks the next kubeadm whether it can upgrade this cluster, and whether there is a way back. Changes nothing. */
export const checkUpgrade: StepAction = async (given, print) => {
  const { stateDirectory, from, to } = given as unknown as UpgradeOrder
  const paths = clusterPaths(stateDirectory)
  const skew = skewOf(from, to)
  if (skew !== undefined) throw upgradeRefused(skew)
  await refuseForeignPrograms(paths)
  const init = readInitFile(await readFile(paths.next.kubeadmConfig, 'utf8'))
  if (init.etcd === undefined)
    throw upgradeRefused(
      'the cluster uses an etcd outside of it, of which no copy can be made here, so the upgrade could not be taken back',
    )
  await startUnits({ stateDirectory }, print)
  // Not refused: it may answer at the next try.
  if (!(await waitUntilReady(paths, readyMs)))
    throw new StepFailed('the API server does not answer, so the upgrade cannot be checked')
  await replaceFile(paths.next.upgradeConfig, upgradeConfiguration(to, init), 0o600)
  const plan = await askForPlan(paths, to, print)
  if (plan.manual.length > 0)
    throw upgradeRefused(
      `cluster.config of the Kubernetes pack has a form that kubeadm ${to} does not convert: ${plan.manual.join(', ')}`,
    )
  for (const { name, currentVersion, newVersion } of plan.components)
    if (currentVersion !== newVersion)
      print(`[checked] ${name} goes from ${withoutV(currentVersion)} to ${withoutV(newVersion)}`)
  print(`[checked] kubeadm ${to} can upgrade this cluster`)
}

/** Asks kubeadm until it has a plan. @throws StepFailed a refusal, with what it said last */
async function askForPlan(paths: ClusterPaths, to: string, print: (line: string) => void) {
  const bounded = createBoundedRunner(createRunner())
  const { program, environment } = kubeadmIn((await readNextPrograms(paths, to)).folders)
  const args = ['upgrade', 'plan', `v${to}`, '--config', paths.next.upgradeConfig, '--output', 'json']
  const { failed, plan } = await untilChecksPass(
    async () => {
      const result = await bounded.run(program, args, { timeoutMs: planMs, environment })
      const given = result.exitCode === 0 ? parseUpgradePlan(result.stdout) : undefined
      const why =
        result.exitCode === 0
          ? `kubeadm upgrade plan gave no plan: ${result.stdout.trim().slice(0, 200)}`
          : `kubeadm upgrade plan: ${kubeadmFailure(result.stderr || result.stdout)}`
      // It changes nothing, so whatever it refuses may be asked again.
      return { plan: given, failed: given ? undefined : why, mayPass: true }
    },
    ({ failed: why }) => print(`[checking] ${why}; it is asked again`),
  )
  if (!plan) throw upgradeRefused(failed ?? '')
  return plan
}

// kubeadm has it with some versions.
const withoutV = (version: string) => version.replace(/^v/, '')

/** Where the operator installs other programs on the host, the old ones are gone. */
async function refuseForeignPrograms({ programs }: ClusterPaths): Promise<void> {
  for (const name of kubernetesPrograms) {
    const folder = await readlink(join(programs, name, 'current')).catch(() => '')
    if (!folder.startsWith(`${join(programs, name)}/`))
      throw upgradeRefused(
        `${name} is used from ${folder || 'nowhere'}, so the one of before would be gone, and the upgrade could not be taken back; remove cluster.programs.directory from the configuration, and upload a bundle with the programs of both versions`,
      )
  }
}
