import { groupKindOf } from '../../kubernetes/paths.ts'
import { type InventoryEntry, nameOf, prepared } from '../../kubernetes/inventory.ts'
import {
  type ManifestFile,
  readObjects,
  contentOf,
  releaseOf,
  type OwnedManifest,
  type PackTools,
  readRelease,
  withNamespaceLabels,
} from './objects.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type KubernetesClient,
  type KubernetesObject,
  type Resource,
  KubernetesError,
} from '../../kubernetes/client.ts'
import { StepFailed, type CallContext, type StepCalls } from '../loop/step.ts'
import { type PackStore, createPackStore, newPack, type PackRecord } from './pack-store.ts'
import { createApplySet, type SetObject } from '../../kubernetes/apply-set.ts'
import { isDefinition, ApplyFailed } from '../../kubernetes/work-off.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { EngineEvent } from '../engine/engine.ts'
import type { PackObserved, Trouble } from '../loop/observed.ts'
import type { DesiredState, DesiredPack } from '../desired/desired-state.ts'
import {
  waitUntilAvailable,
  type AvailabilityOptions,
  webhookIn,
  createWorkloadWatch,
} from './availability.ts'
import { cureMark, waitMark } from './releases.ts'
import { createTroubleReader } from './read-troubles.ts'
import { drainPods } from './drain.ts'
import { createDrift, type DriftOptions } from './drift.ts'
import {
  chartKey,
  keysOf,
  packSteps,
  type AvailableOrder,
  type DrainOrder,
  type ManifestsOrder,
  type NamespacesOrder,
  removeSteps,
  type ObjectsGoneOrder,
  type PackGoneOrder,
} from './pack-steps.ts'
import type { PackWork } from './pack-work.ts'
import { replaceFormerPods } from './former-pods.ts'

/**
 * Whether an object is among manifests. The manifests are read when it is asked first.
 * @param files of the desired packs
 */
function desiredElsewhere(files: readonly ManifestFile[]): (entry: InventoryEntry) => Promise<boolean> {
  let known: Promise<ReadonlySet<string>> | undefined
  async function read(): Promise<ReadonlySet<string>> {
    const keys = new Set<string>()
    for (const { file, namespace } of files)
      for (const { apiVersion, kind, metadata } of await readObjects(file)) {
        const about = `${groupKindOf({ apiVersion, kind })}/${metadata.name}`
        keys.add(`${about}/${metadata.namespace || namespace}`)
        // Whether the kind has namespaces is not known here.
        keys.add(`${about}/`)
      }
    return keys
  }
  return async (entry) =>
    (await (known ??= read())).has(`${groupKindOf(entry)}/${entry.name}/${entry.namespace ?? ''}`)
}

interface NamespacesOptions {
  readonly client: Pick<KubernetesClient, 'resourceOf' | 'namespacedResources' | 'get' | 'list' | 'remove'>
  readonly store: Pick<PackStore, 'namespaces' | 'addNamespace' | 'removeNamespace'>
  /** Wait for objects on their way out of a namespace. */
  readonly patienceMs?: number
}

/** The namespaces that were made for packs: they go again when no pack needs them and nothing is in them. */
interface MadeNamespaces {
  /** The resource of namespaces. */
  resource(signal: AbortSignal): Promise<Resource>
  /** Notes missing ones; to be called before they are applied. */
  noteMissing(names: readonly string[], signal: AbortSignal): Promise<void>
  /** Deletes unneeded, empty ones. @param isNeeded asked only about namespaces that were made for packs */
  tidy(isNeeded: (name: string) => Promise<boolean>, context: CallContext): Promise<void>
}

const pauseMs = 500

function createMadeNamespaces(options: NamespacesOptions): MadeNamespaces {
  const { client, store, patienceMs = 60_000 } = options

  async function resource(signal: AbortSignal): Promise<Resource> {
    const found = await client.resourceOf('v1', 'Namespace', signal)
    if (!found) throw new StepFailed('the API server has no namespaces')
    return found
  }

  /** Object that keeps a namespace, with its kind and name; empty for none. Waits for objects on their way out. */
  async function contentOf(namespace: string, signal: AbortSignal): Promise<string> {
    const end = performance.now() + patienceMs
    for (const each of await client.namespacedResources(signal)) {
      if (isPassing(each)) continue
      for (;;) {
        const found = (await client.list(each, { namespace, pick: keepMetadata, signal })).filter(isContent)
        const [first] = found
        if (!first) break
        // Parts of a deleted object go a moment after it.
        const staying = found.find((object) => !isLeaving(object))
        if (staying || performance.now() >= end) return nameOf(placeOf(each, staying ?? first))
        await sleep(pauseMs, undefined, { signal })
      }
    }
    return ''
  }

  return {
    resource,
    async noteMissing(names, signal) {
      const known = new Set(store.namespaces())
      const namespaces = await resource(signal)
      for (const name of names)
        if (!known.has(name) && !(await client.get(namespaces, { name }, signal))) store.addNamespace(name)
    },
    async tidy(isNeeded, { signal, onLine }) {
      for (const name of store.namespaces()) {
        if (await isNeeded(name)) continue
        const namespaces = await resource(signal)
        const found = await client.get(namespaces, { name }, signal)
        if (found?.metadata.deletionTimestamp === undefined && found !== undefined) {
          const content = await contentOf(name, signal)
          if (content !== '') {
            onLine(`the namespace ${name} stays, since it is not empty: ${content}`)
            continue
          }
          await client.remove(namespaces, { name }, signal)
          onLine(`Namespace ${name} deleted`)
        }
        store.removeNamespace(name)
      }
    },
  }
}

/** Kinds without anything of value: they record the past, lock, or mirror others. */
const isPassing = ({ group, kind }: Resource) =>
  kind === 'Event' || kind === 'Lease' || kind === 'EndpointSlice' || group === 'metrics.k8s.io'

/** Whether an object is not one of those that Kubernetes itself makes in each namespace. */
const isContent = ({ kind, metadata: { name } }: KubernetesObject) =>
  !(kind === 'ConfigMap' && name === 'kube-root-ca.crt') && !(kind === 'ServiceAccount' && name === 'default')

/** Endpoints go with their Service, and are not marked as owned by it. */
const isLeaving = ({ kind, metadata }: KubernetesObject) =>
  kind === 'Endpoints' || metadata.deletionTimestamp !== undefined || metadata.ownerReferences !== undefined

const keepMetadata = ({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject => ({
  apiVersion,
  kind,
  metadata,
})

const placeOf = (
  { kind, group, version }: Resource,
  { metadata: { name, namespace } }: KubernetesObject,
) => ({
  apiVersion: group === '' ? version : `${group}/${version}`,
  kind,
  name,
  ...(namespace === undefined ? {} : { namespace }),
})

interface PackWorkOptions extends PackTools, Omit<AvailabilityOptions, 'client'> {
  readonly database: Database
  readonly client: KubernetesClient
  readonly clock: Clock
  /** A workload went down or came up again. */
  readonly onChange: () => void
  /** Workloads of Kubernetes itself whose changes are changes too. */
  readonly addonObjects?: readonly InventoryEntry[]
  /** Whether objects are held as they are applied; not while the cluster is being deleted. */
  readonly isHeld: () => boolean
  /** An object of a pack was put right, or could not be. */
  readonly onCorrected: DriftOptions['onEvent']
  readonly log: Logger
  /** Of the drift watch, for tests. */
  readonly pace?: Pick<DriftOptions, 'pauseMs' | 'gatherMs' | 'restMs'>
}

/** Installs the packs of a cluster: charts by helm, manifests by server-side apply; and watches their workloads. */
export function createPackWork(options: PackWorkOptions): PackWork {
  const { database, client, clock, onChange, addonObjects = [], onCorrected, log } = options
  const store = createPackStore(database)
  const applySet = createApplySet({ client })
  const made = createMadeNamespaces({ client, store })
  const workloads = createWorkloadWatch({ client, onChange })
  const troubleReader = createTroubleReader(client, log)
  const drift = createDrift({ client, clock, log, onEvent: onCorrected, ...options.pace })

  /** Pods of a former revision that hold up the present one; of desired packs alone, since the others go. */
  async function replaceFormer(
    { packs }: DesiredState,
    troubles: ReadonlyMap<string, readonly Trouble[]>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const { id } of packs)
      try {
        for (const message of await replaceFormerPods(client, troubles.get(id) ?? [], signal))
          onCorrected({ reason: 'PodReplaced', message, object: { kind: 'pack', name: id } })
      } catch (error) {
        if (signal.aborted) throw error
        log.debug({ err: error, pack: id }, 'pods of a former revision could not be replaced')
      }
  }

  /** @throws StepFailed with the message of ApplyFailed, and the webhook in it */
  async function explained(work: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!(error instanceof ApplyFailed)) throw error
      const webhook = await webhookIn(client, error.message, signal)
      throw new StepFailed(error.message + webhook, { cause: error })
    }
  }

  /** Deletes objects of a pack. @param isGoing which of them */
  async function removeObjects(
    { id, others }: ObjectsGoneOrder,
    { signal, onLine }: CallContext,
    isGoing: (entry: InventoryEntry) => boolean,
  ): Promise<void> {
    const { inventory = [] } = store.find(id) ?? {}
    const work = applySet.remove({
      owner: id,
      inventory: inventory.filter(isGoing),
      signal,
      onLine,
      isKept: desiredElsewhere(others),
      onInventory: () =>
        store.putInventory(
          id,
          inventory.filter((entry) => !isGoing(entry)),
        ),
    })
    await explained(work, signal)
  }

  /** Deletes namespaces that were made for packs and that neither the packs nor their manifests need. */
  function tidyNamespaces(names: readonly string[], others: readonly ManifestFile[], context: CallContext) {
    const isObject = desiredElsewhere(others)
    const isNeeded = async (name: string) =>
      names.includes(name) || isObject({ apiVersion: 'v1', kind: 'Namespace', name })
    return made.tidy(isNeeded, context)
  }

  const calls: StepCalls = {
    async 'pack-namespaces'(order, { signal }) {
      const { namespaces, objects } = order as unknown as NamespacesOrder
      const resource = await made.resource(signal)
      await made.noteMissing(
        namespaces.map(({ name }) => name),
        signal,
      )
      const ofManifests = await readNamespaces(objects)
      for (const { name, labels, annotations } of namespaces) {
        const plain = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels, annotations } }
        const object = ofManifests.get(name)
        const applied = await client
          .apply(resource, object ? withNamespaceLabels(object, namespaces) : plain, signal)
          .catch(async (error: unknown) => {
            if (!(error instanceof KubernetesError)) throw error
            const webhook = await webhookIn(client, error.message, signal)
            throw new StepFailed(`Namespace ${name}: ${error.message}${webhook}`, { cause: error })
          })
        if (applied.metadata.deletionTimestamp !== undefined)
          throw new StepFailed(
            `the namespace ${name} is still being deleted; look what holds it: kubectl get namespace ${name} --output yaml`,
          )
      }
    },
    async 'pack-manifests'(order, { signal, onLine }) {
      const { id, files, namespaces, definitions, others } = order as unknown as ManifestsOrder
      const read = files.map(async ({ file, namespace }) =>
        (await readObjects(file)).map((object) => ({
          object: withNamespaceLabels(object, namespaces),
          namespace,
        })),
      )
      const all = (await Promise.all(read)).flat()
      const isChosen = ({ object }: SetObject) =>
        definitions === undefined || (isDefinition(object) && definitions.includes(object.metadata.name))
      const objects = all.filter(isChosen)
      const namespaceNames = objects.map(({ object }) => object).filter(isNamespace)
      await made.noteMissing(
        namespaceNames.map(({ metadata }) => metadata.name),
        signal,
      )
      const isElsewhere = desiredElsewhere(others)
      const work = applySet[definitions === undefined ? 'apply' : 'add']({
        owner: id,
        objects,
        signal,
        inventory: store.find(id)?.inventory ?? [],
        // A namespace goes only when nothing is in it.
        isKept: async (entry) => isNamespace(entry) || isElsewhere(entry),
        onInventory: (inventory) => store.putInventory(id, inventory),
        // A line for each of hundreds of objects would bury the others.
        onLine(line) {
          if (!line.endsWith(' applied')) onLine(line)
        },
      })
      await explained(work, signal)
      onLine(`${objects.length} object${objects.length === 1 ? '' : 's'} applied`)
    },
    async 'pack-available'(order, context) {
      const { id, releases: files, needed, others } = order as unknown as AvailableOrder
      const releases = (await Promise.all(files.map(readRelease))).flatMap((entries) => entries ?? [])
      const record = { ...(store.find(id) ?? newPack(id)), releases }
      store.put(record)
      await waitUntilAvailable(options, [...record.inventory, ...releases], context)
      await tidyNamespaces(needed, others, context)
    },
    async 'pack-drain'(order, context) {
      const { id, drain } = order as unknown as DrainOrder
      const record = store.find(id)
      if (record) await explained(drainPods({ client }, objectsOf(record), drain, context), context.signal)
    },
    'pack-objects-gone': (order, context) =>
      // Kinds stay until the objects of charts are gone, which may be of them.
      removeObjects(
        order as unknown as ObjectsGoneOrder,
        context,
        (entry) => !isNamespace(entry) && !isDefinition(entry),
      ),
    async 'pack-gone'(order, context) {
      const given = order as unknown as PackGoneOrder
      await removeObjects(given, context, (entry) => !isNamespace(entry))
      await tidyNamespaces(given.namespaces, given.others, context)
      store.remove(given.id)
    },
  }

  return {
    steps: (desired, pack, observed) => packSteps(options, desired, pack, observed),
    removeSteps: (desired, id, observed) => removeSteps(options, desired, id, observed),
    calls,
    noteStarted(pack, { key }) {
      const record = store.find(pack.id) ?? newPack(pack.id)
      const chart = pack.charts.find((each) => chartKey(pack, each) === key)
      const release = chart && releaseOf(chart)
      if (release !== undefined && !record.charts.includes(release))
        store.put({ ...record, charts: [...record.charts, release] })
    },
    noteDone(pack, { key }) {
      store.put(doneOf(store.find(pack.id) ?? newPack(pack.id), pack, key, clock.now()))
    },
    async observe(desired, signal) {
      const records = store.list()
      const applied = records.filter(({ appliedDigest }) => appliedDigest !== '')
      if (applied.length > 0) {
        await workloads
          .watch([...applied.flatMap((record) => objectsOf(record)), ...addonObjects], signal)
          .then(() => (options.isHeld() ? drift.hold(desired, applied, signal) : drift.stop()))
          // The API server is silent: the known objects stay.
          .catch(() => undefined)
      }
      // The last started first: in this order they are taken away.
      const order = records.toSorted((one, other) => (other.startedAt ?? 0) - (one.startedAt ?? 0))
      const left = await Promise.all(
        order.map(async (record) => [record, await hasOwn(record, desired)] as const),
      )
      const observed = left.map(([record, hasObjects]) => ({
        record,
        pack: { ...observedOf(record, desired, (entry) => workloads.troubleOf(entry)), hasObjects },
      }))
      const ids = new Set(desired.packs.map(({ id }) => id))
      const late = observed.filter(
        ({ record, pack }) => ids.has(record.id) && !pack.isAvailable && options.isHeld(),
      )
      const troubles = await troubleReader.read(
        late.map(({ record: { id, charts, ...rest } }) => ({ id, charts, objects: objectsOf(rest) })),
        signal,
      )
      await replaceFormer(desired, troubles, signal)
      return new Map(
        observed.map(({ record: { id }, pack }) => {
          const own = troubles.get(id)
          return [id, own === undefined ? pack : { ...pack, troubles: own }]
        }),
      )
    },
    eventOf: ({ key }, line) => (key.startsWith('pack ') ? eventOf(line) : undefined),
    records: () => store.list(),
    doubt() {
      workloads.stop()
      drift.stop()
      store.doubt()
    },
    forget() {
      troubleReader.forget()
      workloads.stop()
      drift.stop()
      store.clear()
    },
    stop() {
      workloads.stop()
      drift.stop()
    },
  }
}

/** The Namespaces of manifests as they are applied, by name; of two with one name the last applied. */
async function readNamespaces(
  files: readonly OwnedManifest[],
): Promise<ReadonlyMap<string, KubernetesObject>> {
  const found = new Map<string, KubernetesObject>()
  for (const { id, file } of files)
    for (const object of await readObjects(file, '"Namespace"'))
      if (isNamespace(object)) found.set(object.metadata.name, prepared(object, undefined, id))
  return found
}

const isNamespace = ({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }) =>
  apiVersion === 'v1' && kind === 'Namespace'

/** Lines of the action `helm`; lines of a `call` are progress anyway. */
function eventOf(line: string): EngineEvent | undefined {
  if (line.startsWith(cureMark)) return { reason: 'ReleaseCured', message: line.slice(cureMark.length) }
  return line.startsWith(waitMark) ? { reason: 'StepProgress', message: line } : undefined
}

/**
 * Whether a pack has objects of manifests: of one that is not desired any more, objects that go with it: not objects of another pack now,
 * nor namespaces and kinds.
 */
async function hasOwn({ id, inventory }: PackRecord, desired: DesiredState): Promise<boolean> {
  if (desired.packs.some((pack) => pack.id === id)) return inventory.length > 0
  const isElsewhere = desiredElsewhere(contentOf(desired).manifests)
  for (const entry of inventory)
    // An unreadable one may belong to this pack alone.
    if (!isNamespace(entry) && !isDefinition(entry) && !(await isElsewhere(entry).catch(() => false)))
      return true
  return false
}

const objectsOf = ({ inventory, releases }: Pick<PackRecord, 'inventory' | 'releases'>) => [
  ...inventory,
  ...releases,
]

/** Record of a pack after a step of it is done. Pure. */
export function doneOf(record: PackRecord, pack: DesiredPack, key: string, now: number): PackRecord {
  const { digest } = pack
  const { apply, available } = keysOf(pack)
  const isSame = record.partDigest === digest
  const doneSteps = [...new Set([...(isSame ? record.doneSteps : []), key])]
  const isApplied = apply.every((each) => doneSteps.includes(each))
  return {
    ...record,
    partDigest: digest,
    doneSteps,
    appliedDigest: isApplied ? digest : '',
    // The others were uninstalled before, or belong to another pack now.
    charts: key === available ? pack.charts.map(releaseOf) : record.charts,
    availableDigest: key === available ? digest : isSame ? record.availableDigest : '',
    startedAt: isSame ? record.startedAt : now,
    endedAt: key === available ? now : isSame ? record.endedAt : null,
  }
}

function observedOf(
  record: PackRecord,
  desired: DesiredState,
  troubleOf: (entry: PackRecord['inventory'][number]) => string | undefined,
): Omit<PackObserved, 'hasObjects'> {
  const { id, appliedDigest, partDigest, doneSteps, availableDigest, charts } = record
  const digest = desired.packs.find((pack) => pack.id === id)?.digest
  const [first, ...more] = objectsOf(record).flatMap((entry) => troubleOf(entry) ?? [])
  const wasAvailable = availableDigest !== '' && availableDigest === digest
  const isAvailable = wasAvailable && first === undefined
  const trouble = first ?? 'its workloads are waited for'
  return {
    appliedDigest,
    partDigest,
    doneSteps,
    charts,
    isAvailable,
    wasAvailable,
    message: isAvailable ? '' : trouble + (more.length > 0 ? `, and ${more.length} more` : ''),
  }
}
