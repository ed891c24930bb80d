import type { Taint } from '../desired/desired-state.ts'
import {
  type Configured,
  noteConfigured,
  readConfigured,
  writeConfigured,
  renderedFiles,
  renderingPhases,
  staticPods,
  type RenderedFile,
} from './configured.ts'
import { mkdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonForYaml } from '../../base/json.ts'
import { replaceFile } from '../../system/files.ts'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { expectReady, getByKubectl, kubectl, withLastWords } from './kubectl.ts'
import { settleLeaders, runningContainers, waitForContainers, startKubelet } from './node-containers.ts'
import { clusterPaths, type ClusterPaths } from './paths.ts'
import { runKubeadm } from './run-kubeadm.ts'

/** Fields of a node of the API that a patch depends on. */
export interface NodeObject {
  readonly metadata: { readonly resourceVersion: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: { readonly taints?: readonly NodeTaint[] }
}

interface NodeTaint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

interface DesiredLabels {
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

/**
 * The merge patch (RFC 7396) that gives a node its labels and taints, and takes back the former ones. Those that others have set stay, as
 * the taints of the node controller. Pure. @returns undefined where the node has all of it
 */
export function nodePatch(
  { metadata, spec }: NodeObject,
  { labels, taints }: DesiredLabels,
  before: Pick<Configured, 'labels' | 'taints'>,
): object | undefined {
  const present = metadata.labels ?? {}
  const gone = before.labels.filter((name) => !Object.hasOwn(labels, name) && Object.hasOwn(present, name))
  const changed = Object.entries(labels).filter(([name, value]) => present[name] !== value)
  const is = (one: Pick<NodeTaint, 'key' | 'effect'>) => (other: Pick<NodeTaint, 'key' | 'effect'>) =>
    one.key === other.key && one.effect === other.effect
  const own = taints.map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect }))
  const presentTaints = spec?.taints ?? []
  const kept = presentTaints.filter((each) => !own.some(is(each)) && !before.taints.some(is(each)))
  const hasTaints =
    kept.length + own.length === presentTaints.length &&
    own.every((each) =>
      presentTaints.some((other) => is(each)(other) && (other.value ?? '') === (each.value ?? '')),
    )
  if (gone.length === 0 && changed.length === 0 && hasTaints) return undefined
  return {
    metadata: {
      // Refused where another client has changed the node since: a list of taints is replaced as a whole.
      resourceVersion: metadata.resourceVersion,
      labels: Object.fromEntries([...gone.map((name) => [name, null] as const), ...changed]),
    },
    ...(hasTaints ? {} : { spec: { taints: [...kept, ...own] } }),
  }
}

/** Order of `reconfigure`. */
interface ReconfigureOrder {
  readonly stateDirectory: string
  /** `configurationDigest` of the desired state. */
  readonly digest: string
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
}

type Print = (line: string) => void

const proxy = 'kube-proxy'
const startMs = 180_000

/**
 * Gives the control plane, the kubelet, kube-proxy and the node the configuration of `paths.kubeadmConfig`. kubeadm makes all files in a
 * folder of their own, and only those that differ are put in place, so unchanged parts are not restarted. Nothing before the wait for the
 * API server needs it: a configuration with which it does not start is taken back in the same way.
 */
export const reconfigure: StepAction = async (given, print) => {
  const order = given as unknown as ReconfigureOrder
  const paths = clusterPaths(order.stateDirectory)
  const before = await readConfigured(paths)
  const started: Configured = {
    digest: '',
    files: {},
    unproved: before.unproved,
    labels: [...new Set([...before.labels, ...Object.keys(order.labels)])],
    taints: allTaints(before.taints, order.taints),
  }
  const changed = await changedFiles(paths, print)
  const pods = staticPods.filter((name) => changed.some(({ of }) => of === name))
  const unproved = [...new Set([...before.unproved, ...pods])]
  await writeConfigured(paths, { ...started, unproved })
  const old = await runningContainers(pods)
  await renewNames(paths, print)
  await place(paths, changed)
  for (const { path } of changed) print(`[configuration] ${path} is replaced`)
  await startKubelet(changed.some(({ of }) => of === 'kubelet'))
  const restarted = unproved.filter((name) => name !== proxy)
  await prove(
    restarted,
    old.map(({ id }) => id),
  )
  await expectReady(paths, startMs, 'the API server does not answer with this configuration')
  await upload(paths, print)
  await configureNode(paths, order, before)
  // Loaded here: the other actions start without yaml.
  const { applyProxy, isProxyOther } = await import('./proxy.ts')
  if (before.unproved.includes(proxy) || (await isProxyOther(paths))) {
    await writeConfigured(paths, { ...started, unproved: [proxy] })
    await applyProxy(paths, print)
    print('[configuration] kube-proxy runs with its new configuration')
  }
  if (restarted.length > 0) await settleLeaders(paths, 'the change goes on', print)
  await noteConfigured(paths, order.digest, order)
  await rm(paths.rendered, { recursive: true, force: true })
  print('[configured] the configuration of Kubernetes is applied')
}

/** A configuration that is cut off has set some of its taints. */
const allTaints = (before: Configured['taints'], desired: Configured['taints']): Configured['taints'] => [
  ...new Map(
    [...before, ...desired].map(({ key, effect }) => [`${key}:${effect}`, { key, effect }] as const),
  ).values(),
]

/** Has kubeadm make all files. @returns those that differ from the ones on the host */
async function changedFiles(paths: ClusterPaths, print: Print): Promise<readonly RenderedFile[]> {
  await rm(paths.rendered, { recursive: true, force: true })
  await mkdir(paths.rendered, { mode: 0o700 })
  for (const phase of renderingPhases) {
    const args = ['init', 'phase', ...phase, '--dry-run', '--config', paths.kubeadmConfig]
    // A dry run prints whole files.
    const failed = await runKubeadm(paths, args, () => undefined, { KUBEADM_INIT_DRYRUN_DIR: paths.rendered })
    if (failed !== undefined)
      throw new StepFailed(`kubeadm cannot make the files of ${phase.join(' ')}: ${failed}`)
  }
  print('[configuration] kubeadm has made the files of the control plane and of the kubelet')
  const isOther = await Promise.all(
    renderedFiles.map(async ({ name, path }) => {
      const made = await readFile(join(paths.rendered, name)).catch(() => undefined)
      const present = await readFile(path).catch(() => undefined)
      return made !== undefined && present?.equals(made) !== true
    }),
  )
  return renderedFiles.filter((_each, index) => isOther[index])
}

async function place({ rendered }: ClusterPaths, files: readonly RenderedFile[]): Promise<void> {
  for (const { name, path } of files) {
    const made = join(rendered, name)
    // The kubelet ignores files whose names begin with a dot, which replaceFile makes beside the manifests.
    await replaceFile(path, await readFile(made), (await stat(made)).mode & 0o777)
  }
}

/** Makes those certificates anew that lack a name of the configuration; kubeadm keeps a certificate that is there, whatever its names. */
async function renewNames(paths: ClusterPaths, print: Print): Promise<void> {
  const { staleCertificates } = await import('./certificates.ts')
  for (const { phase, files, name } of await staleCertificates(paths.kubeadmConfig)) {
    for (const file of files) await rm(file, { force: true })
    const args = ['init', 'phase', 'certs', phase, '--config', paths.kubeadmConfig]
    const failed = await runKubeadm(paths, args, print)
    if (failed !== undefined) throw new StepFailed(`the certificate ${phase} cannot be made: ${failed}`)
    print(`[configuration] the certificate ${phase} is made anew, for ${name}`)
  }
}

/** Waits until static pods run with their new manifests. @param old containers that ran before */
async function prove(names: readonly string[], old: readonly string[]): Promise<void> {
  const left = await waitForContainers({ names, old, timeoutMs: startMs })
  if (left.length === 0) return
  const reasons = await Promise.all(left.map((name) => withLastWords(name)))
  throw new StepFailed(`with this configuration these do not run: ${reasons.join(', ')}`)
}

async function upload(paths: ClusterPaths, print: Print): Promise<void> {
  const args = ['init', 'phase', 'upload-config', 'all', '--config', paths.kubeadmConfig]
  const failed = await runKubeadm(paths, args, print)
  if (failed !== undefined)
    throw new StepFailed(`the configuration cannot be stored in the cluster: ${failed}`)
}

async function configureNode(
  paths: ClusterPaths,
  order: ReconfigureOrder,
  before: Configured,
): Promise<void> {
  const { node, labels, taints } = order
  const present = await getByKubectl<NodeObject>(paths, ['node', node])
  if (!present) throw new StepFailed(`the node ${node} is not registered; see: journalctl -u kubelet.service`)
  const patch = nodePatch(present, { labels, taints }, before)
  if (patch) await kubectl(paths, ['patch', 'node', node, '--type=merge', `--patch=${jsonForYaml(patch)}`])
}
