import { setTimeout as delay } from 'node:timers/promises'
import { jsonForYaml } from '../../../base/json.ts'
import { documentsOf, mapAt } from '../pack-config.ts'
import { kubernetesFiles, clusterPaths, type ClusterPaths } from '../paths.ts'
import { readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../system/files.ts'
import { createBoundedRunner } from '../../../system/bounded-memory.ts'
import { createRunner } from '../../../system/runner.ts'
import { skewOf } from '../../desired/version.ts'
import { StepFailed, type StepAction } from '../../loop/step.ts'
import { startUnits } from '../units.ts'
import { whilePullsAreEarly } from '../initialise.ts'
import { kubeadmFailure, kubeadmIn, runKubeadmIn } from '../run-kubeadm.ts'
import { waitUntilReady } from '../kubectl.ts'
import { kubernetesPrograms } from '../../needs/needs.ts'
import { readNextPrograms } from '../programs.ts'
import { upgradeRefused } from '../notes.ts'

/** Used fields of `kubeadm upgrade plan -o json`: `UpgradePlan` of output.kubeadm.k8s.io. */
export interface UpgradePlan {
  /** Components with the versions that they have and get. */
  readonly components: readonly {
    readonly name: string
    readonly currentVersion: string
    readonly newVersion: string
  }[]
  /** Groups of component configurations that an administrator has to convert before. */
  readonly manual: readonly string[]
}

interface Printed {
  readonly kind?: string
  readonly availableUpgrades?: readonly { readonly components?: UpgradePlan['components'] | null }[] | null
  readonly configVersions?:
    readonly { readonly group: string; readonly manualUpgradeRequired?: boolean }[] | null
}

/**
 * @param output standard output of the program; lines of its checks may come before the document
 * @returns undefined where it has no plan
 */
export function parseUpgradePlan(output: string): UpgradePlan | undefined {
  const start = /^\{/m.exec(output)?.index
  if (start === undefined) return undefined
  let printed: Printed
  try {
    printed = JSON.parse(output.slice(start)) as Printed
  } catch {
    return undefined
  }
  if (printed.kind !== 'UpgradePlan') return undefined
  return {
    components: (printed.availableUpgrades ?? []).flatMap(({ components }) => components ?? []),
    manual: (printed.configVersions ?? []).flatMap(({ group, manualUpgradeRequired }) =>
      manualUpgradeRequired === true ? [group] : [],
    ),
  }
}

/** Result of a run of kubeadm that begins with checks. */
export interface CheckedRun {
  /** Its failure; undefined for none. */
  readonly failed: string | undefined
  /** Whether it failed in a check, before anything was changed, that may pass later. */
  readonly mayPass: boolean
}

/**
 * Time, milliseconds, for which checks of kubeadm may fail on a host that was just booted, or is busy: they need a node that is ready, and
 * start a pod, which has 15 s.
 */
const patience = { longestMs: 180_000, pauseMs: 5_000 }

/**
 * Runs kubeadm again while only its checks fail.
 * @param onAgain called before each further run
 * @returns the result of the last run
 */
export async function untilChecksPass<T extends CheckedRun>(
  run: () => Promise<T>,
  onAgain: (last: T) => void,
  { longestMs, pauseMs } = patience,
): Promise<T> {
  const end = Date.now() + longestMs
  for (;;) {
    const ended = await run()
    if (ended.failed === undefined || !ended.mayPass || Date.now() > end) return ended
    onAgain(ended)
    await delay(pauseMs)
  }
}

/** Parts of the file for `kubeadm init` that an upgrade needs. */
export interface InitFile {
  /** Data folder of etcd; undefined where an etcd outside of the cluster is used. */
  readonly etcd: string | undefined
  /** Folder with patches of the pack for the manifests of kubeadm. */
  readonly patches: string | undefined
}

/** @param text of the file for `kubeadm init`. Pure. */
export function readInitFile(text: string): InitFile {
  const documents = documentsOf(text)
  const ofKind = (kind: string) => documents.find((each) => each.kind === kind) ?? {}
  const cluster = ofKind('ClusterConfiguration')
  const textAt = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const { endpoints } = mapAt(cluster, 'etcd', 'external')
  return {
    etcd: endpoints ? undefined : (textAt(mapAt(cluster, 'etcd', 'local').dataDir) ?? kubernetesFiles.etcd),
    patches: textAt(mapAt(ofKind('InitConfiguration'), 'patches').directory),
  }
}

/**
 * The file for `kubeadm upgrade`: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/#kubeadm-k8s-io-v1beta4-UpgradeConfiguration
 * The configuration of the cluster itself kubeadm reads from the cluster. Pure.
 */
export function upgradeConfiguration(version: string, { patches }: Pick<InitFile, 'patches'>): string {
  const kubernetesVersion = `v${version}`
  // JSON: kubeadm reads it as YAML.
  return `${jsonForYaml(
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'UpgradeConfiguration',
      apply: {
        kubernetesVersion,
        certificateRenewal: true,
        etcdUpgrade: true,
        imagePullPolicy: 'IfNotPresent',
        ...(patches === undefined ? {} : { patches: { directory: patches } }),
      },
      plan: { kubernetesVersion, etcdUpgrade: true },
    },
    2,
  )}\n`
}

/** Order of the actions of a change of the version. */
export interface UpgradeOrder {
  readonly stateDirectory: string
  readonly from: string
  readonly to: string
  /** Generation that started the change. */
  readonly generation: number
  /** Name of the node. */
  readonly node: string
}

const readyMs = 120_000
const planMs = 300_000

/** Pulls the images of the next version; used ones stay. */
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

/** Asks kubeadm until it has a plan. @throws StepFailed a refusal, with its last message */
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

/** If the operator installs other programs on the host, the old ones are gone. */
async function refuseForeignPrograms({ programs }: ClusterPaths): Promise<void> {
  for (const name of kubernetesPrograms) {
    const folder = await readlink(join(programs, name, 'current')).catch(() => '')
    if (!folder.startsWith(`${join(programs, name)}/`))
      throw upgradeRefused(
        `${name} is used from ${folder || 'nowhere'}, so the one of before would be gone, and the upgrade could not be taken back; remove cluster.programs.directory from the configuration, and upload a bundle with the programs of both versions`,
      )
  }
}
