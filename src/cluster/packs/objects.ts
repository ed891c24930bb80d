import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { builtInNamespaces } from '../../kubernetes/names.ts'
import type { DesiredState, DesiredChart, DesiredNamespace, DesiredPack } from '../desired/desired-state.ts'
import { readFile } from 'node:fs/promises'
import { parseExactJson } from '../../base/json.ts'
import { isObject } from '../../kubernetes/fields.ts'
import { type KubernetesObject, KubernetesError } from '../../kubernetes/client.ts'
import { type InventoryEntry, nameOf } from '../../kubernetes/inventory.ts'
import { StepFailed } from '../loop/step.ts'
import { readiness, type Readiness } from '../../kubernetes/readiness.ts'
import { type ObjectClient, troublesOfObject } from './read-troubles.ts'
import { textOfTrouble } from './troubles.ts'

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
    const trouble = isReasonWanted || status === 'Failed' ? await firstTrouble(client, object, signal) : ''
    return { status, message: `${name}: ${message}${trouble === '' ? '' : `; ${trouble}`}` }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof KubernetesError)) throw error
    return { status: 'InProgress', message: `${name}: ${error.message}` }
  }
}

/** Why the first pod of a workload does not run; empty where there is none. */
async function firstTrouble(
  client: ObjectClient,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<string> {
  const [first] = await troublesOfObject(client, workload, signal)
  return first ? textOfTrouble(first) : ''
}
