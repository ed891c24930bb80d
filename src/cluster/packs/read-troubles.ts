import type { KubernetesClient, KubernetesObject, Resource } from '../../kubernetes/client.ts'
import { conditionOf, fieldAt, isTrue, listAt, textAt, trimEvent } from '../../kubernetes/fields.ts'
import { coreResource, eventResource, nodeResource, podResource } from '../../kubernetes/paths.ts'
import { isRecord } from '../../base/json.ts'
import type { InventoryEntry } from '../../kubernetes/inventory.ts'
import type { Logger } from '../../system/log.ts'
import type { Trouble } from '../loop/observed.ts'
import {
  claimsOf,
  isOfTaint,
  troubleOfWorkload,
  troublesOfPod,
  warningOf,
  workloadOf,
  type PodSurroundings,
  type Warning,
} from './troubles.ts'

/** Calls of observations of objects to the API server. */
export type ObjectClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'list'>

const claimResource = coreResource('PersistentVolumeClaim', 'persistentvolumeclaims')

/** A namespace at one moment, as far as its pods need it. */
interface Picture {
  /** Newest first: older ones may be of a former version. */
  readonly pods: readonly KubernetesObject[]
  readonly surroundings: PodSurroundings
}

/** Reads pods and warnings of a namespace; claims only where a pod waits for one. */
async function readPicture(
  client: Pick<ObjectClient, 'list'>,
  namespace: string,
  labelSelector: string | undefined,
  signal: AbortSignal,
): Promise<Picture> {
  const [found, events] = await Promise.all([
    client.list(podResource, {
      namespace,
      pick: keepState,
      signal,
      ...(labelSelector === undefined ? {} : { labelSelector }),
    }),
    client.list(eventResource, { namespace, fieldSelector: 'type=Warning', pick: trimEvent, signal }),
  ])
  const pods = found.toSorted(
    (one, other) => madeAt(other).localeCompare(madeAt(one)) || nameOrder(one, other),
  )
  const isTainted = (pod: KubernetesObject) => isOfTaint(conditionOf(pod, 'PodScheduled')?.message ?? '')
  const nodes = pods.some(isTainted) ? await client.list(nodeResource, { signal }) : undefined
  const surroundings = {
    warnings: events.map(warningOf),
    now: Date.now(),
    taints: nodes?.flatMap((node) => listAt(node, ['spec', 'taints'])),
  }
  const isWaiting = (pod: KubernetesObject) =>
    !isTrue(conditionOf(pod, 'PodScheduled')?.status ?? '') && claimsOf(pod).length > 0
  if (!pods.some(isWaiting)) return { pods, surroundings }
  const fieldSelector = 'involvedObject.kind=PersistentVolumeClaim'
  const [claims, claimEvents] = await Promise.all([
    client.list(claimResource, { namespace, pick: keepState, signal }),
    client.list(eventResource, { namespace, fieldSelector, pick: trimEvent, signal }),
  ])
  return {
    pods,
    surroundings: {
      ...surroundings,
      claims: new Map(claims.map((claim) => [claim.metadata.name, claim])),
      claimEvents: claimEvents.map(warningOf),
    },
  }
}

const madeAt = ({ metadata }: KubernetesObject) => metadata.creationTimestamp ?? ''
const nameOrder = (one: KubernetesObject, other: KubernetesObject) =>
  one.metadata.name.localeCompare(other.metadata.name)

/** What says why a pod does not run: a hundred pods with all their fields would be megabytes. */
function keepState({ apiVersion, kind, metadata, spec, status }: KubernetesObject): KubernetesObject {
  const { name, namespace, creationTimestamp, deletionTimestamp, labels, ownerReferences } = metadata
  const { nodeName, restartPolicy, volumes, tolerations } = (spec ?? {}) as Readonly<Record<string, unknown>>
  return {
    apiVersion,
    kind,
    status,
    spec: { nodeName, restartPolicy, volumes, tolerations },
    metadata: {
      name,
      ownerReferences,
      ...(namespace === undefined ? {} : { namespace }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(labels === undefined ? {} : { labels }),
    },
  }
}

/** Troubles of pods, the newest pod first; of pods of one workload with the same trouble one. */
function troublesIn({
  pods,
  surroundings,
}: Picture): readonly { readonly pod: KubernetesObject; readonly troubles: readonly Trouble[] }[] {
  const newest = new Set<string>()
  const known = new Set<string>()
  return pods.flatMap((pod) => {
    const workload = workloadOf(pod)
    const owner = workload ? `${workload.kind}/${workload.name}` : `Pod/${pod.metadata.name}`
    // A pod that has failed for good stays beside the one that was made in its place.
    if (newest.has(owner) && textAt(pod, ['status', 'phase']) === 'Failed') return []
    newest.add(owner)
    const troubles = troublesOfPod(pod, surroundings).filter(({ reason, container = '' }) => {
      const key = `${owner} ${reason} ${container}`
      return !known.has(key) && Boolean(known.add(key))
    })
    return troubles.length === 0 ? [] : [{ pod, troubles }]
  })
}

/**
 * Why the pods of one workload do not run; empty where all do, and for a kind without pods.
 * @throws KubernetesError where the API server does not answer
 */
export async function troublesOfObject(
  client: Pick<ObjectClient, 'list'>,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<readonly Trouble[]> {
  const { namespace } = workload.metadata
  if (namespace === undefined) return []
  if (workload.kind === 'Pod') {
    const picture = await readPicture(client, namespace, undefined, signal)
    return troublesOfPod(workload, picture.surroundings)
  }
  const labels = fieldAt(workload, ['spec', 'selector', 'matchLabels'])
  if (!isRecord(labels) || Object.keys(labels).length === 0) return []
  const selector = Object.entries(labels).map(([name, value]) => `${name}=${String(value)}`)
  const picture = await readPicture(client, namespace, selector.join(','), signal)
  const refused = troubleOfWorkload(workload, picture.surroundings.warnings)
  return [...(refused ? [refused] : []), ...troublesIn(picture).flatMap(({ troubles }) => troubles)]
}

/** Facts of a pack whose pods are asked for. */
export interface TroubledPack {
  readonly id: string
  /** Objects of its manifests and charts, as far as they are written down. */
  readonly objects: readonly InventoryEntry[]
  /** Releases of its charts that may be in the cluster, as `namespace/name`: while helm waits, their objects are not written down. */
  readonly charts: readonly string[]
}

// More would bury the first, and a namespace with so many has one cause.
const mostOfPack = 20

/**
 * Reads why pods of packs do not run: two requests a namespace, and some for releases that helm still waits for.
 * @returns by the id of the pack; packs without a trouble are missing
 * @throws KubernetesError where the API server does not answer
 */
export async function readTroubles(
  client: ObjectClient,
  packs: readonly TroubledPack[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Trouble[]>> {
  const owners = new Map<string, string>()
  for (const { id, objects } of packs)
    for (const { kind, namespace, name } of objects) owners.set(keyOf(kind, namespace, name), id)
  const releases = new Map(packs.flatMap(({ id, charts }) => charts.map((release) => [release, id] as const)))
  for (const [key, id] of await ownersByRelease(client, releases, signal))
    if (!owners.has(key)) owners.set(key, id)
  const namespaces = new Set(
    [...owners.keys()].map((key) => key.split('/')[1] ?? '').filter((each) => each !== ''),
  )
  const ownerOf = createOwnerOf(client, owners, signal)
  const found = new Map<string, Trouble[]>()
  const add = (id: string, troubles: readonly Trouble[]) => {
    const all = [...(found.get(id) ?? []), ...troubles]
    found.set(id, all.slice(0, mostOfPack))
  }
  await Promise.all(
    [...namespaces].map(async (namespace) => {
      const picture = await readPicture(client, namespace, undefined, signal)
      for (const key of refusedIn(owners, namespace, picture.surroundings.warnings)) {
        const workload = await getByKey(client, key, signal)
        const trouble = workload && troubleOfWorkload(workload, picture.surroundings.warnings)
        const id = owners.get(key)
        if (trouble && id !== undefined) add(id, [trouble])
      }
      for (const { pod, troubles } of troublesIn(picture)) {
        const id = await ownerOf(pod)
        if (id !== undefined) add(id, troubles)
      }
    }),
  )
  return found
}

const keyOf = (kind: string, namespace = '', name: string) => `${kind}/${namespace}/${name}`

const apiVersions: Readonly<Record<string, string>> = {
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  DaemonSet: 'apps/v1',
  ReplicaSet: 'apps/v1',
  Job: 'batch/v1',
}

async function getByKey(
  client: ObjectClient,
  key: string,
  signal: AbortSignal,
): Promise<KubernetesObject | undefined> {
  const [kind = '', namespace = '', name = ''] = key.split('/')
  const apiVersion = apiVersions[kind]
  const resource = apiVersion === undefined ? undefined : await client.resourceOf(apiVersion, kind, signal)
  return resource && client.get(resource, { namespace, name }, signal)
}

/** Keys of workloads of packs whose controllers have warned that they cannot make pods. */
function refusedIn(
  owners: ReadonlyMap<string, string>,
  namespace: string,
  warnings: readonly Warning[],
): ReadonlySet<string> {
  const keys = warnings
    .filter(({ reason }) => reason.startsWith('FailedCreate') && reason !== 'FailedCreatePodSandBox')
    .map(({ kind, name }) =>
      kind === 'ReplicaSet' && !owners.has(keyOf(kind, namespace, name))
        ? keyOf('Deployment', namespace, name.replace(/-[^-]+$/, ''))
        : keyOf(kind, namespace, name),
    )
  return new Set(keys.filter((key) => owners.has(key)))
}

/** Kinds whose pods helm waits for, and whose hooks run in Jobs and Pods. A ReplicaSet is of a Deployment. */
const workloadKinds = Object.entries(apiVersions).filter(([kind]) => kind !== 'ReplicaSet')

/**
 * Workloads of releases, which helm marks with their release. Hooks have no mark but that they are hooks: one in the namespace of a
 * release is taken to be of it, unless its labels name another one.
 */
async function ownersByRelease(
  client: ObjectClient,
  releases: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<readonly (readonly [string, string])[]> {
  if (releases.size === 0) return []
  const namespaces = new Set([...releases.keys()].map((release) => release.slice(0, release.indexOf('/'))))
  const found: (readonly [string, string])[] = []
  for (const [kind, apiVersion] of workloadKinds) {
    const resource = await client.resourceOf(apiVersion, kind, signal)
    if (!resource) continue
    // A chart may make objects in other namespaces than its release.
    const labelSelector = 'app.kubernetes.io/managed-by=Helm'
    const marked = await client.list(resource, { labelSelector, isMetadataOnly: true, signal })
    for (const { metadata } of marked) {
      const { 'meta.helm.sh/release-namespace': namespace, 'meta.helm.sh/release-name': name } =
        metadata.annotations ?? {}
      const id = releases.get(`${namespace}/${name}`)
      if (id !== undefined) found.push([keyOf(kind, metadata.namespace, metadata.name), id])
    }
  }
  const hookKinds = [ofJob, podResource]
  for (const namespace of namespaces)
    for (const resource of hookKinds)
      for (const { metadata } of await client.list(resource, { namespace, isMetadataOnly: true, signal })) {
        if (metadata.annotations?.['helm.sh/hook'] === undefined) continue
        const release = metadata.labels?.['app.kubernetes.io/instance']
        const id =
          (release === undefined ? undefined : releases.get(`${namespace}/${release}`)) ??
          [...releases].find(([each]) => each.startsWith(`${namespace}/`))?.[1]
        if (id !== undefined) found.push([keyOf(resource.kind, namespace, metadata.name), id])
      }
  return found
}

const ofJob: Resource = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  isNamespaced: true,
}

// A custom resource may make one that makes the workload.
const mostLevels = 3

/** Finds the pack of a pod by its controller, and by the controllers of that, as where a custom resource of the pack makes a workload. */
function createOwnerOf(client: ObjectClient, owners: ReadonlyMap<string, string>, signal: AbortSignal) {
  const known = new Map<string, Promise<string | undefined>>()

  async function byOwners(object: KubernetesObject, level: number): Promise<string | undefined> {
    const { namespace } = object.metadata
    for (const owner of listAt(object.metadata, ['ownerReferences'])) {
      const [kind, name] = [textAt(owner, ['kind']), textAt(owner, ['name'])]
      const id = owners.get(keyOf(kind, namespace, name)) ?? owners.get(keyOf(kind, undefined, name))
      if (id !== undefined) return id
    }
    const [controller] = listAt(object.metadata, ['ownerReferences']).filter(
      (each) => each.controller === true,
    )
    if (!controller || level >= mostLevels) return undefined
    const [kind, name] = [textAt(controller, ['kind']), textAt(controller, ['name'])]
    const key = keyOf(kind, namespace, name)
    const asked =
      known.get(key) ??
      (async () => {
        const resource = await client.resourceOf(textAt(controller, ['apiVersion']), kind, signal)
        const place = { name, ...(namespace === undefined ? {} : { namespace }) }
        const found = resource && (await client.get(resource, place, signal))
        return found && byOwners(found, level + 1)
      })()
    known.set(key, asked)
    return asked
  }

  return async (pod: KubernetesObject): Promise<string | undefined> => {
    const { namespace, name } = pod.metadata
    const workload = workloadOf(pod)
    return (
      owners.get(keyOf('Pod', namespace, name)) ??
      (workload && owners.get(keyOf(workload.kind, namespace, workload.name))) ??
      byOwners(pod, 0)
    )
  }
}

/** Reads the troubles of packs, and keeps the last ones while the API server does not answer. */
export function createTroubleReader(client: ObjectClient, log: Pick<Logger, 'debug'>) {
  let last: ReadonlyMap<string, readonly Trouble[]> = new Map()
  return {
    /** @param packs that are started and not available */
    async read(
      packs: readonly TroubledPack[],
      signal: AbortSignal,
    ): Promise<ReadonlyMap<string, readonly Trouble[]>> {
      if (packs.length === 0) last = new Map()
      else
        last = await readTroubles(client, packs, signal).catch((error: unknown) => {
          log.debug({ err: error }, 'why pods of packs do not run could not be read')
          return last
        })
      return last
    },
    forget: () => void (last = new Map()),
  }
}
