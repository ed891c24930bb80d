import { dirname, join } from 'node:path'
import type { PackObserved } from '../loop/observed.ts'
import type { Step, StepWork } from '../loop/step.ts'
import {
  shownPack,
  type DesiredState,
  type DesiredChart,
  type DesiredDrain,
  type DesiredNamespace,
  type DesiredPack,
} from '../desired/desired-state.ts'
import { type UninstallOrder, cureMs, type ReleaseOrder } from './releases.ts'
import {
  contentOf,
  type ManifestFile,
  type PackTools,
  chartDigest,
  manifestsOf,
  namesOf,
  namespacesOf,
  releaseOf,
  type OwnedManifest,
} from './objects.ts'

/**
 * The files that the action `helm` writes about a release. They are beside the generations, since a chart that does not change is not
 * installed again by a later one.
 * @param folder `DesiredState.folder`
 */
export function releaseFiles(
  folder: string,
  { namespace, release }: { readonly namespace: string; readonly release: string },
) {
  const file = join(dirname(folder), 'releases', `${namespace}.${release}`)
  return {
    /** The objects that are in the cluster: `InventoryEntry[]` as JSON. */
    objects: `${file}.json`,
    /** The objects as the chart wants them, with secrets: JSON, one object a line. */
    wanted: `${file}.jsonl`,
  }
}

/** Orders of the `call` steps; paths are absolute. */
export interface ObjectsGoneOrder {
  readonly id: string
  /** Manifests of the desired packs: objects in them stay. */
  readonly others: readonly ManifestFile[]
}
export interface PackGoneOrder extends ObjectsGoneOrder {
  /** Namespaces that the desired packs need. */
  readonly namespaces: readonly string[]
}

const objectsMs = 900_000
/** Longest wait of helm until the objects of a release are gone; hooks of the chart count too. */
const uninstallMs = 300_000
const aroundHelmMs = 180_000

/**
 * Steps that take a pack away, in the opposite order of its installation: objects of manifests, which may need the controllers of a chart
 * to go, then releases, then the kinds and namespaces. The record of the pack goes last, so that a cut off removal is done again.
 */
export function removeSteps(
  tools: PackTools,
  desired: DesiredState,
  id: string,
  { charts, hasObjects }: PackObserved,
): readonly Step[] {
  const { manifests: others, namespaces } = contentOf(desired)
  const objects: ObjectsGoneOrder = { id, others }
  const rest: PackGoneOrder = { id, others, namespaces }
  return [
    ...(hasObjects
      ? [
          {
            key: `pack ${id} objects gone`,
            title: `Delete the objects of the pack ${shownPack(id)}`,
            pack: id,
            timeoutMs: objectsMs,
            work: { kind: 'call', call: 'pack-objects-gone', order: { ...objects } },
          } satisfies Step,
        ]
      : []),
    ...uninstallSteps(tools, desired, id, charts),
    {
      key: `pack ${id} gone`,
      title: `Delete what is left of the pack ${shownPack(id)}`,
      pack: id,
      timeoutMs: objectsMs,
      work: { kind: 'call', call: 'pack-gone', order: { ...rest } },
    },
  ]
}

/** Steps that uninstall the releases of a pack which no desired pack has, the last one first. @param charts as `namespace/name` */
function uninstallSteps(
  { helm, kubeconfig }: PackTools,
  desired: DesiredState,
  id: string,
  charts: readonly string[],
): readonly Step[] {
  const { releases } = contentOf(desired)
  return charts
    .filter((each) => !releases.has(each))
    .toReversed()
    .map((each) => {
      const [namespace = '', release = ''] = each.split('/')
      const order: UninstallOrder = {
        program: helm,
        kubeconfig,
        release,
        namespace,
        timeoutMs: uninstallMs,
        home: join(desired.folder, 'helm', `${namespace}.${release}`),
        files: Object.values(releaseFiles(desired.folder, { namespace, release })),
      }
      return {
        key: `pack ${id} release ${each} gone`,
        title: `Uninstall the Helm release ${each}`,
        pack: id,
        timeoutMs: uninstallMs + aroundHelmMs,
        work: { kind: 'action', action: 'helm-uninstall', order: { ...order } },
      }
    })
}

/** Orders of the `call` steps; paths are absolute. */
export interface NamespacesOrder {
  readonly namespaces: readonly DesiredNamespace[]
  /** Manifests of all packs: a namespace that is an object of one is applied as that. */
  readonly objects: readonly OwnedManifest[]
}
export interface ManifestsOrder {
  readonly id: string
  /** Only the custom resource definitions of these names; undefined for all objects. */
  readonly definitions?: readonly string[]
  /** Namespaces with labels of packs, which a Namespace among the manifests keeps. */
  readonly namespaces: readonly DesiredNamespace[]
  readonly files: readonly ManifestFile[]
  /** Manifests of all packs: an object that another pack has now stays. */
  readonly others: readonly ManifestFile[]
}
export interface DrainOrder {
  readonly id: string
  readonly drain: DesiredDrain
}
export interface AvailableOrder {
  readonly id: string
  /** Files with the objects of the releases, `InventoryEntry[]` as JSON. */
  readonly releases: readonly string[]
  /** Namespaces that the packs need. */
  readonly needed: readonly string[]
  /** Manifests of all packs: a namespace that is an object of one stays. */
  readonly others: readonly ManifestFile[]
}

const namespacesMs = 120_000
/** Longest wait of helm for the workloads of a chart; images that are large, or a disk that is slow, take minutes. */
const chartMs = 600_000
const manifestsMs = 900_000
const drainMs = 900_000
const availableMs = 600_000

/**
 * Steps of a pack that are left. Where it says so, its pods are evicted first. Then its former parts are removed: releases, and the objects
 * of manifests where it has none now. Of its present parts, namespaces are first, then the kinds that its manifests define, since a chart
 * may need them; charts come before the other manifests, since these often configure objects of a chart: an operator, its kinds and its
 * webhooks. The last step waits for the workloads.
 * @returns nothing for a pack that is applied and available
 */
export function packSteps(
  tools: PackTools,
  desired: DesiredState,
  pack: DesiredPack,
  observed: PackObserved | undefined,
): readonly Step[] {
  const isApplied = observed?.appliedDigest === pack.digest
  if (isApplied && observed.isAvailable) return []
  const done = new Set(observed?.partDigest === pack.digest ? observed.doneSteps : [])
  const { apply, available } = keysOf(pack)
  const gone = manifestsKey(pack)
  const isBare = pack.manifests.length === 0 && observed?.hasObjects === true
  const isLeft = ({ key }: Step) =>
    key === available || (!isApplied && apply.includes(key) && !done.has(key)) || (key === gone && isBare)
  return [
    ...drainSteps(pack, observed),
    ...uninstallSteps(tools, desired, pack.id, observed?.charts ?? []),
    ...allSteps(tools, desired, pack).filter(isLeft),
  ]
}

/** The step that evicts the pods of a pack before its first change: pods of the new digest are not drained. */
function drainSteps(
  { id, name, digest, drain }: DesiredPack,
  observed: PackObserved | undefined,
): readonly Step[] {
  const { partDigest = '', hasObjects = false, charts = [] } = observed ?? {}
  const isInstalled = hasObjects || charts.length > 0
  if (!drain || !isInstalled || partDigest === '' || partDigest === digest) return []
  const order: DrainOrder = { id, drain }
  return [
    {
      key: `pack ${id} drain`,
      title: `Evict the pods of the pack ${name}`,
      pack: id,
      timeoutMs: drainMs,
      work: { kind: 'call', call: 'pack-drain', order: { ...order } },
    },
  ]
}

/** Keys of all steps of a pack, with the wait for it. */
export function keysOf(pack: DesiredPack) {
  const { id } = pack
  return {
    apply: [
      ...(namesOf(pack).length > 0 ? [`pack ${id} namespaces`] : []),
      ...(hasDefinitions(pack) ? [`pack ${id} definitions`] : []),
      ...pack.charts.map((chart) => chartKey(pack, chart)),
      ...(pack.manifests.length > 0 ? [manifestsKey(pack)] : []),
    ],
    available: `pack ${id} available`,
  }
}

const manifestsKey = ({ id }: DesiredPack) => `pack ${id} manifests`

const hasDefinitions = ({ definitions = [] }: DesiredPack) => definitions.length > 0

/** Key of the step that installs a chart of a pack. */
export const chartKey = ({ id }: DesiredPack, chart: DesiredChart) => `pack ${id} chart ${releaseOf(chart)}`

function allSteps(
  { helm, kubeconfig }: PackTools,
  desired: DesiredState,
  pack: DesiredPack,
): readonly Step[] {
  const { folder } = desired
  const namespaces = namespacesOf(desired, pack)
  const { id, name, version } = pack
  const keys = keysOf(pack)
  const step = (key: string, title: string, timeoutMs: number, work: StepWork): Step => ({
    key,
    title,
    timeoutMs,
    work,
    pack: id,
  })
  const call = (name: string, order: NamespacesOrder | ManifestsOrder | AvailableOrder): StepWork => ({
    kind: 'call',
    call: name,
    order: { ...order },
  })
  const { manifests: others, namespaces: needed, ownedManifests, labelledNamespaces } = contentOf(desired)
  const manifests: ManifestsOrder = {
    id,
    namespaces: labelledNamespaces,
    others,
    files: manifestsOf(folder, pack),
  }
  return [
    step(
      `pack ${id} namespaces`,
      `Make the namespaces of the pack ${name}`,
      namespacesMs,
      call('pack-namespaces', { namespaces, objects: ownedManifests }),
    ),
    step(
      `pack ${id} definitions`,
      `Define the kinds of the pack ${name}`,
      manifestsMs,
      call('pack-manifests', { ...manifests, definitions: pack.definitions ?? [] }),
    ),
    ...pack.charts.map((chart) => {
      const { release, namespace } = chart
      const order: ReleaseOrder = {
        program: helm,
        kubeconfig,
        release,
        namespace,
        timeoutMs: chartMs,
        digest: chartDigest(chart),
        chart: join(folder, chart.file),
        values: join(folder, chart.valuesFile),
        home: join(folder, 'helm', `${namespace}.${release}`),
        ...releaseFiles(folder, chart),
      }
      return step(
        chartKey(pack, chart),
        `Install the chart ${chart.name} ${chart.version} of the pack ${name}`,
        chartMs + cureMs + aroundHelmMs,
        { kind: 'action', action: 'helm', order: { ...order } },
      )
    }),
    step(
      manifestsKey(pack),
      `Apply the manifests of the pack ${name}`,
      manifestsMs,
      call('pack-manifests', manifests),
    ),
    step(
      keys.available,
      `Wait for the workloads of the pack ${name} ${version}`,
      availableMs,
      call('pack-available', {
        releases: pack.charts.map((chart) => releaseFiles(folder, chart).objects),
        id,
        needed,
        others,
      }),
    ),
  ]
}
