import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { builtInNamespaces } from '../../kubernetes/names.ts'
import type { DesiredState, DesiredChart, DesiredNamespace, DesiredPack } from '../desired/desired-state.ts'
import { readFile } from 'node:fs/promises'
import { parseExactJson, isRecord } from '../../base/json.ts'
import { isObject, conditionOf, fieldAt, isTrue, listAt, textAt } from '../../kubernetes/fields.ts'
import { type KubernetesObject, KubernetesError, type KubernetesClient } from '../../kubernetes/client.ts'
import { type InventoryEntry, nameOf } from '../../kubernetes/inventory.ts'
import { StepFailed } from '../loop/step.ts'
import { readiness, type Readiness } from '../../kubernetes/readiness.ts'

/** Programs and files of this host for steps of packs. */
export interface PackTools {
  /** Path of helm. */
  readonly helm: string
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
}

/** A manifest; an object that names no namespace belongs to this one. */
export interface ManifestFile {
  readonly file: string
  readonly namespace: string
}

/** The release of a chart, as `namespace/name`. */
export const releaseOf = ({ namespace, release }: DesiredChart): string => `${namespace}/${release}`

/** Tells a chart with its values from others; empty where that is not known. */
export function chartDigest({ name, version, sum, valuesSum }: DesiredChart): string {
  if (sum === undefined || valuesSum === undefined) return ''
  return createHash('sha256')
    .update(JSON.stringify([name, version, sum, valuesSum]))
    .digest('hex')
}

/** The names of the namespaces of a pack, also those that only its charts and manifests name. */
export function namesOf({ namespaces, charts, manifests }: DesiredPack): readonly string[] {
  const named = namespaces.map(({ name }) => name)
  const others = [...charts, ...manifests].map(({ namespace }) => namespace)
  const made = others.filter((name) => name !== '' && !builtInNamespaces.has(name))
  return [...new Set([...named, ...made])]
}

/** Content of all packs, for the steps of each. */
interface ClusterContent {
  /** The manifests of all desired packs. */
  readonly manifests: readonly ManifestFile[]
  /** The same, each with its pack. */
  readonly ownedManifests: readonly OwnedManifest[]
  /** Names of the namespaces that the desired packs need, without those that are only objects of their manifests. */
  readonly namespaces: readonly string[]
  /** All namespaces to which packs give labels or annotations, merged over all packs. */
  readonly labelledNamespaces: readonly DesiredNamespace[]
  /** The same by their names. */
  readonly labelled: ReadonlyMap<string, DesiredNamespace>
  /** Releases of all desired packs, by `releaseOf`. */
  readonly releases: ReadonlySet<string>
}

// A desired state never changes. A plan asks for each of its packs, which may be hundreds.
const known = new WeakMap<DesiredState, ClusterContent>()

/** Content of all desired packs; made once for each `DesiredState`. */
export function contentOf(desired: DesiredState): ClusterContent {
  const found = known.get(desired)
  if (found) return found
  const { packs, folder } = desired
  const labelled = labelledOf(packs)
  const content: ClusterContent = {
    manifests: packs.flatMap((pack) => manifestsOf(folder, pack)),
    ownedManifests: packs.flatMap((pack) =>
      manifestsOf(folder, pack).map((each) => ({ ...each, id: pack.id })),
    ),
    labelledNamespaces: [...labelled.values()],
    labelled,
    namespaces: [...new Set(packs.flatMap(namesOf))],
    releases: new Set(packs.flatMap(({ charts }) => charts.map(releaseOf))),
  }
  known.set(desired, content)
  return content
}

/** The manifests of a pack. @param folder `DesiredState.folder` */
export const manifestsOf = (folder: string, { manifests }: DesiredPack): readonly ManifestFile[] =>
  manifests.map(({ file, namespace }) => ({ file: join(folder, file), namespace }))

/** A manifest and its owner. */
export interface OwnedManifest extends ManifestFile {
  /** `id` of the pack. */
  readonly id: string
}

/**
 * The namespaces of a pack with the labels and annotations that any pack gives them: all are applied by one field manager, so omitted ones
 * would be removed.
 */
export function namespacesOf(desired: DesiredState, pack: DesiredPack): readonly DesiredNamespace[] {
  const { labelled } = contentOf(desired)
  return namesOf(pack).map((name) => labelled.get(name) ?? { name, labels: {}, annotations: {} })
}

function labelledOf(packs: DesiredState['packs']): ReadonlyMap<string, DesiredNamespace> {
  const made = new Map<string, DesiredNamespace>()
  for (const { name, labels, annotations } of packs.flatMap(({ namespaces }) => namespaces)) {
    const found = made.get(name) ?? { name, labels: {}, annotations: {} }
    Object.assign(found.labels, labels)
    Object.assign(found.annotations, annotations)
    made.set(name, found)
  }
  return made
}

/**
 * Reads the rendered objects of a manifest: JSON, one a line.
 * @param word only the lines with it
 * @throws StepFailed where a line is not an object
 */
export async function readObjects(file: string, word = ''): Promise<readonly KubernetesObject[]> {
  const lines = (await readFile(file, 'utf8')).split('\n')
  return lines.flatMap((line, index) => {
    if (line.trim() === '' || !line.includes(word)) return []
    const object = parseExactJson(line)
    if (isObject(object)) return [object]
    throw new StepFailed(
      `object ${index + 1} of ${file} lacks apiVersion, kind or metadata.name; correct the manifest of the pack, and create the cluster again`,
    )
  })
}

/** A Namespace of a manifest with labels and annotations of packs: one field manager applies both, and would remove them. */
export function withNamespaceLabels(
  object: KubernetesObject,
  namespaces: readonly DesiredNamespace[],
): KubernetesObject {
  const { apiVersion, kind, metadata } = object
  const given = namespaces.find(({ name }) => name === metadata.name)
  if (apiVersion !== 'v1' || kind !== 'Namespace' || !given) return object
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...given.labels },
      annotations: { ...metadata.annotations, ...given.annotations },
    },
  }
}

/** Reads the objects of a release. @returns undefined where the file is missing: the release was never installed */
export async function readRelease(file: string): Promise<readonly InventoryEntry[] | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as readonly InventoryEntry[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Calls of observations of objects to the API server. */
export type ObjectClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'list'>

/**
 * Observes one object of a pack.
 * @param isReasonWanted whether its pods are asked for too, where its controller has not given it up
 * @returns its readiness; the message begins with its name, and says why its pods do not run
 */
export async function observeObject(
  client: ObjectClient,
  entry: InventoryEntry,
  signal: AbortSignal,
  isReasonWanted = true,
): Promise<Readiness> {
  const name = nameOf(entry)
  try {
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    const object = resource && (await client.get(resource, entry, signal))
    // A Job may be set to be removed when it has ended.
    if (!object && entry.kind === 'Job') return { status: 'Current', message: '' }
    if (!object) return { status: 'InProgress', message: `${name} is missing` }
    const { status, message } = readiness(object, Date.now())
    if (status === 'Current') return { status, message: '' }
    const trouble = isReasonWanted || status === 'Failed' ? await podTrouble(client, object, signal) : ''
    return { status, message: `${name}: ${message}${trouble === '' ? '' : `; ${trouble}`}` }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof KubernetesError)) throw error
    return { status: 'InProgress', message: `${name}: ${error.message}` }
  }
}

/** Why the pods of an object do not run; empty where there is none, and where the API server does not answer. */
export async function whyPodsFail(
  client: ObjectClient,
  entry: InventoryEntry,
  signal: AbortSignal,
): Promise<string> {
  try {
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    const object = resource && (await client.get(resource, entry, signal))
    return object ? await podTrouble(client, object, signal) : ''
  } catch (error) {
    if (error instanceof KubernetesError) return ''
    throw error
  }
}

/** Reason of the first pod of a workload that does not run; empty where there is none. */
async function podTrouble(
  client: ObjectClient,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<string> {
  const failure = conditionOf(workload, 'ReplicaFailure')
  if (failure && isTrue(failure.status)) return `its pods cannot be made: ${failure.message}`
  const pods = await podsOf(client, workload, signal)
  if (!pods) return ''
  const trouble = pods.map(troubleOfPod).find((each) => each !== '')
  if (trouble !== undefined) return trouble
  const late = pods.find((pod) => !isTrue(conditionOf(pod, 'Ready')?.status ?? ''))
  if (late) return withPlace(late, await lastWarning(client, late, signal))
  return pods.length === 0 ? ((await lastWarning(client, workload, signal))?.message ?? '') : ''
}

/** The pods of a workload, newest first: older ones may be of a former version. Or the pod itself; undefined for a kind without pods. */
async function podsOf(
  client: ObjectClient,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<readonly KubernetesObject[] | undefined> {
  if (workload.kind === 'Pod') return [workload]
  const labels = fieldAt(workload, ['spec', 'selector', 'matchLabels'])
  const { namespace } = workload.metadata
  if (!isRecord(labels) || namespace === undefined || Object.keys(labels).length === 0) return undefined
  const resource = await client.resourceOf('v1', 'Pod', signal)
  const labelSelector = Object.entries(labels)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(',')
  const pods = resource && (await client.list(resource, { namespace, labelSelector, signal }))
  return pods?.toSorted((one, other) => madeAt(other).localeCompare(madeAt(one)))
}

const madeAt = ({ metadata }: KubernetesObject) => metadata.creationTimestamp ?? ''

interface Warning {
  readonly message: string
  /** Of a container of the pod. */
  readonly container: string
  readonly at: string
}

/** Last warning of Kubernetes on an object, as a probe that fails, or a volume that is missing. */
async function lastWarning(
  client: ObjectClient,
  { kind, metadata: { name, namespace } }: KubernetesObject,
  signal: AbortSignal,
): Promise<Warning | undefined> {
  const resource = await client.resourceOf('v1', 'Event', signal)
  if (!resource || namespace === undefined) return undefined
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name},type=Warning`
  const found = await client.list(resource, { namespace, fieldSelector, signal })
  return found
    .map((event) => ({
      message: textAt(event, ['message']).trim(),
      container: /\{(.+)\}/.exec(textAt(event, ['involvedObject', 'fieldPath']))?.[1] ?? '',
      at:
        textAt(event, ['lastTimestamp']) ||
        textAt(event, ['eventTime']) ||
        (event.metadata.creationTimestamp ?? ''),
    }))
    .sort((one, other) => one.at.localeCompare(other.at))
    .at(-1)
}

const withPlace = ({ metadata: { name } }: KubernetesObject, warning: Warning | undefined) =>
  warning === undefined
    ? ''
    : `pod ${name}: ${warning.container === '' ? '' : `container ${warning.container}: `}${warning.message}`

// States of a container that is on its way.
const usual = new Set(['ContainerCreating', 'PodInitializing'])

/** Why a pod does not run: the wait or end of its containers, or why no node takes it; empty if it runs. Pure. */
export function troubleOfPod(pod: KubernetesObject): string {
  const containers = ['initContainerStatuses', 'containerStatuses'].flatMap((list) =>
    listAt(pod, ['status', list]),
  )
  for (const container of containers) {
    const at = `pod ${pod.metadata.name}: container ${textAt(container, ['name'])}: `
    const over = fieldAt(container, ['state', 'terminated'])
    if (isRecord(over) && over.exitCode !== 0) return at + endOf(over)
    const waiting = fieldAt(container, ['state', 'waiting'])
    const reason = textAt(waiting, ['reason'])
    if (!isRecord(waiting) || usual.has(reason)) continue
    // The reason of a crashing container names only the crash.
    const ended = fieldAt(container, ['lastState', 'terminated'])
    const why = [reason, textAt(waiting, ['message']), isRecord(ended) && endOf(ended)].filter(Boolean)
    return at + why.join(': ')
  }
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return `pod ${pod.metadata.name}: no node takes it: ${scheduled.message}`
  const reason = textAt(pod, ['status', 'message'])
  return textAt(pod, ['status', 'phase']) === 'Failed' && reason !== ''
    ? `pod ${pod.metadata.name}: ${reason}`
    : ''
}

function endOf(ended: Readonly<Record<string, unknown>>): string {
  const message = textAt(ended, ['message'])
  return `it ended with exit code ${String(ended.exitCode)}${message === '' ? '' : `: ${message.trim()}`}`
}
