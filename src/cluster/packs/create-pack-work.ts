import { createApplySet, type SetObject } from '../../kubernetes/apply-set.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject } from '../../kubernetes/client.ts'
import { prepared, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { isDefinition } from '../../kubernetes/set-order.ts'
import { ApplyFailed } from '../../kubernetes/work-off.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { EngineEvent } from '../engine/engine.ts'
import type { PackObserved } from '../observed.ts'
import { StepFailed, type CallContext, type StepCalls } from '../step.ts'
import type { Wanted, WantedPack } from '../wanted.ts'
import { waitUntilAvailable, type AvailabilityOptions } from './availability.ts'
import { cureMark, waitMark } from './helm/install-release.ts'
import { drainPods } from './drain.ts'
import { createDrift, type DriftOptions } from './drift/drift.ts'
import { createMadeNamespaces } from './namespaces.ts'
import {
  contentOf,
  releaseOf,
  type ManifestFile,
  type OwnedManifest,
  type PackTools,
} from './pack-content.ts'
import {
  chartKey,
  keysOf,
  packSteps,
  type AvailableOrder,
  type DrainOrder,
  type ManifestsOrder,
  type NamespacesOrder,
} from './pack-steps.ts'
import { whyPodsFail } from './look-at-object.ts'
import { whyPackFails } from './why-pack-fails.ts'
import { createPackStore, newPack, type PackRecord } from './pack-store.ts'
import type { PackWork } from './pack-work.ts'
import { readObjects, readRelease, withNamespaceLabels } from './read-objects.ts'
import { removeSteps, type ObjectsGoneOrder, type PackGoneOrder } from './remove-steps.ts'
import { wantedElsewhere } from './wanted-elsewhere.ts'
import { webhookIn } from './webhook-trouble.ts'
import { createWorkloadWatch } from './workload-watch.ts'

export interface PackWorkOptions extends PackTools, Omit<AvailabilityOptions, 'client'> {
  readonly database: Database
  readonly client: KubernetesClient
  readonly clock: Clock
  /** A workload went down or came up again. */
  readonly onChange: () => void
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
  const { database, client, clock, onChange, onCorrected, log } = options
  const store = createPackStore(database)
  const applySet = createApplySet({ client })
  const made = createMadeNamespaces({ client, store })
  const workloads = createWorkloadWatch({ client, onChange })
  const drift = createDrift({ client, clock, log, onEvent: onCorrected, ...options.pace })

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
      ...{ owner: id, inventory: inventory.filter(isGoing), signal, onLine },
      isKept: wantedElsewhere(others),
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
    const isObject = wantedElsewhere(others)
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
      const isElsewhere = wantedElsewhere(others)
      const work = applySet[definitions === undefined ? 'apply' : 'add']({
        ...{ owner: id, objects, signal, inventory: store.find(id)?.inventory ?? [] },
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
    steps: (wanted, pack, observed) => packSteps(options, wanted, pack, observed),
    removeSteps: (wanted, id, observed) => removeSteps(options, wanted, id, observed),
    calls,
    noteBegun(pack, { key }) {
      const record = store.find(pack.id) ?? newPack(pack.id)
      const chart = pack.charts.find((each) => chartKey(pack, each) === key)
      const release = chart && releaseOf(chart)
      if (release !== undefined && !record.charts.includes(release))
        store.put({ ...record, charts: [...record.charts, release] })
    },
    noteDone(pack, { key }) {
      store.put(doneOf(store.find(pack.id) ?? newPack(pack.id), pack, key, clock.now()))
    },
    async observe(wanted, signal) {
      const records = store.list()
      const applied = records.filter(({ appliedDigest }) => appliedDigest !== '')
      if (applied.length > 0) {
        await workloads
          .watch(
            applied.flatMap((record) => objectsOf(record)),
            signal,
          )
          .then(() => (options.isHeld() ? drift.hold(wanted, applied, signal) : drift.stop()))
          // The API server is silent: what is known stays.
          .catch(() => undefined)
      }
      // The last one that was begun first: in this order they are taken away.
      const order = records.toSorted((one, other) => (other.startedAt ?? 0) - (one.startedAt ?? 0))
      const left = await Promise.all(
        order.map(async (record) => [record, await hasOwn(record, wanted)] as const),
      )
      return new Map(
        left.map(([record, hasObjects]) => [
          record.id,
          { ...observedOf(record, wanted, (entry) => workloads.troubleOf(entry)), hasObjects },
        ]),
      )
    },
    async explain(observed, signal) {
      const explained = store.list().map(async (record) => {
        const pack = observed.get(record.id)
        const first = objectsOf(record).find((entry) => workloads.troubleOf(entry) !== undefined)
        if (!pack || pack.isAvailable || !first) return []
        const why = await whyPodsFail(client, first, signal)
        return why === '' ? [] : [[record.id, { ...pack, message: `${pack.message}; ${why}` }] as const]
      })
      return new Map([...observed, ...(await Promise.all(explained)).flat()])
    },
    async whyNot(id, signal) {
      const record = store.find(id)
      return record ? whyPackFails(client, record, signal) : ''
    },
    eventOf: ({ key }, line) => (key.startsWith('pack ') ? eventOf(line) : undefined),
    records: () => store.list(),
    doubt() {
      workloads.stop()
      drift.stop()
      store.doubt()
    },
    forget() {
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

/** The Namespaces of manifests as they are applied, by name; of two with one name that which is applied last. */
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

/** Lines of the action `helm`; what a `call` says is progress anyway. */
function eventOf(line: string): EngineEvent | undefined {
  if (line.startsWith(cureMark)) return { reason: 'ReleaseCured', message: line.slice(cureMark.length) }
  return line.startsWith(waitMark) ? { reason: 'StepProgress', message: line } : undefined
}

/**
 * Whether a pack has objects of manifests: of one that is not wanted any more, objects that go with it, as those do not that another pack has
 * now, namespaces and kinds.
 */
async function hasOwn({ id, inventory }: PackRecord, wanted: Wanted): Promise<boolean> {
  if (wanted.packs.some((pack) => pack.id === id)) return inventory.length > 0
  const isElsewhere = wantedElsewhere(contentOf(wanted).manifests)
  for (const entry of inventory)
    // What cannot be read may belong to this pack alone.
    if (!isNamespace(entry) && !isDefinition(entry) && !(await isElsewhere(entry).catch(() => false)))
      return true
  return false
}

const objectsOf = ({ inventory, releases }: PackRecord) => [...inventory, ...releases]

/** What is stored when a step of a pack is done. Pure. */
export function doneOf(record: PackRecord, pack: WantedPack, key: string, now: number): PackRecord {
  const { digest } = pack
  const { apply, available } = keysOf(pack)
  const isSame = record.partDigest === digest
  const doneSteps = [...new Set([...(isSame ? record.doneSteps : []), key])]
  const isApplied = apply.every((each) => doneSteps.includes(each))
  return {
    ...record,
    ...{ partDigest: digest, doneSteps, appliedDigest: isApplied ? digest : '' },
    // The others were uninstalled before, or belong to another pack now.
    charts: key === available ? pack.charts.map(releaseOf) : record.charts,
    availableDigest: key === available ? digest : isSame ? record.availableDigest : '',
    startedAt: isSame ? record.startedAt : now,
    endedAt: key === available ? now : isSame ? record.endedAt : null,
  }
}

function observedOf(
  record: PackRecord,
  wanted: Wanted,
  troubleOf: (entry: PackRecord['inventory'][number]) => string | undefined,
): Omit<PackObserved, 'hasObjects'> {
  const { id, appliedDigest, partDigest, doneSteps, availableDigest, charts } = record
  const digest = wanted.packs.find((pack) => pack.id === id)?.digest
  const [first, ...more] = objectsOf(record).flatMap((entry) => troubleOf(entry) ?? [])
  const wasAvailable = availableDigest !== '' && availableDigest === digest
  const isAvailable = wasAvailable && first === undefined
  const trouble = first ?? 'its workloads are waited for'
  return {
    ...{ appliedDigest, partDigest, doneSteps, charts, isAvailable, wasAvailable },
    message: isAvailable ? '' : trouble + (more.length > 0 ? `, and ${more.length} more` : ''),
  }
}
