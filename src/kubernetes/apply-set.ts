import { type InventoryEntry, entryOf, keyOf, nameOf, ownerLabel, ownerValue, prepared } from './inventory.ts'
import { groupKindOf } from './paths.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject, type Resource } from './client.ts'
import { readiness } from './readiness.ts'
import { isCheck, isDefinition, rankOf, workOff } from './work-off.ts'

const rbac = 'rbac.authorization.k8s.io'

/** Objects of kubeadm: group and kind, namespace, and name. */
const madeByKubeadm: ReadonlySet<string> = new Set([
  ...['kubeadm-config', 'kubelet-config', 'kube-proxy', 'coredns'].map(
    (name) => `/ConfigMap kube-system ${name}`,
  ),
  '/ConfigMap kube-public cluster-info',
  ...['kube-proxy', 'coredns'].map((name) => `/ServiceAccount kube-system ${name}`),
  ...['Role', 'RoleBinding'].map((kind) => `${rbac}/${kind} kube-system kube-proxy`),
  ...['ClusterRole', 'ClusterRoleBinding'].map((kind) => `${rbac}/${kind}  system:coredns`),
  'apps/Deployment kube-system coredns',
  'apps/DaemonSet kube-system kube-proxy',
  '/Service kube-system kube-dns',
])

/**
 * Whether Kubernetes itself needs an object, and does not make it again by itself: a cluster without it does not resolve names, does not
 * reach services, or cannot be upgraded. Pure.
 * @param labels of the stored object: packs have roles with names of Kubernetes too, as system:metrics-server
 */
export function isBuiltInObject(
  entry: InventoryEntry,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  const kind = groupKindOf(entry)
  if (kind.startsWith(`${rbac}/`))
    if (entry.name.startsWith('kubeadm:') || labels['kubernetes.io/bootstrapping'] === 'rbac-defaults')
      return true
  return madeByKubeadm.has([kind, entry.namespace ?? '', entry.name].join(' '))
}

/** An object as it is published. */
export interface SetObject {
  readonly object: KubernetesObject
  /** For an object with a namespace that names none. */
  readonly namespace: string
}

interface SetOrder {
  /** Owner of the objects, for example the `id` of a pack. */
  readonly owner: string
  /** Objects of this owner that may exist. */
  readonly inventory: readonly InventoryEntry[]
  /** Stores an inventory. Its objects are applied or deleted afterwards, so that a restart in between loses no object. */
  readonly onInventory: (inventory: readonly InventoryEntry[]) => void
  /** Whether an object that would be deleted stays, since another owner wants it. */
  readonly isKept?: (entry: InventoryEntry) => Promise<boolean>
  /** Progress, a line for operators. */
  readonly onLine: (line: string) => void
  readonly signal: AbortSignal
}

/** Objects that are applied, and taken away again, together. */
interface ApplySet {
  /**
   * Applies the objects, definitions and namespaces first, and prunes the rest of the inventory, except objects that Kubernetes itself
   * needs. Objects that the API server refuses for the moment are retried behind the others, until nothing has moved for the patience.
   * @throws ApplyFailed which object cannot be applied, and why; any error after the signal
   */
  apply(order: SetOrder & { readonly objects: readonly SetObject[] }): Promise<void>
  /** Applies the objects in the same way, without pruning. @throws as `apply` */
  add(order: SetOrder & { readonly objects: readonly SetObject[] }): Promise<void>
  /** Deletes all objects of the inventory, and waits until they are gone. @throws as `apply` */
  remove(order: SetOrder): Promise<void>
}

interface ApplySetOptions {
  readonly client: KubernetesClient
  /** Retry time for objects that the API server refuses for the moment, since the last accepted one. */
  readonly patienceMs?: number
  readonly firstPauseMs?: number
}

/** An object whose kind is known. */
interface Located {
  readonly resource: Resource
  /** As it is applied. */
  readonly desired: KubernetesObject
  readonly entry: InventoryEntry
}

/** Applies sets of objects with an inventory. */
export function createApplySet(options: ApplySetOptions): ApplySet {
  const { client, patienceMs = 120_000, firstPauseMs = 250 } = options

  /** @returns why it is not known, unless the API server is silent. @throws KubernetesError of a silent API server */
  async function resourceOf(
    apiVersion: string,
    kind: string,
    signal: AbortSignal,
  ): Promise<Resource | KubernetesError> {
    try {
      const found = await client.resourceOf(apiVersion, kind, signal)
      return (
        found ?? new KubernetesError(404, 'NotFound', `the API server has no kind ${kind} in ${apiVersion}`)
      )
    } catch (error) {
      if (error instanceof KubernetesError && error.status !== 0) return error
      throw error
    }
  }

  async function applyOne({ resource, desired }: Located, signal: AbortSignal): Promise<void> {
    const stored = await client.apply(resource, desired, signal)
    // It would be gone a moment later.
    if (stored.metadata.deletionTimestamp !== undefined)
      throw new KubernetesError(409, 'Conflict', 'an object of this name is still being deleted')
  }

  /** @throws KubernetesError while no objects of the defined kind can be made */
  async function checkEstablished({ resource, entry }: Located, signal: AbortSignal): Promise<void> {
    const found = await client.get(resource, entry, signal)
    if (found === undefined) throw new KubernetesError(422, 'Invalid', 'it was deleted')
    const { status, message } = readiness(found, Date.now())
    if (status === 'Failed') throw new KubernetesError(422, 'Invalid', message)
    if (status !== 'Current') throw new KubernetesError(503, 'ServiceUnavailable', message)
  }

  /** @returns whether it is on its way, but not gone */
  async function removeOne(
    entry: InventoryEntry,
    { owner, signal, onLine, isKept }: SetOrder,
  ): Promise<boolean> {
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    // With its kind, all objects have gone.
    const found = resource && (await client.get(resource, entry, signal))
    if (resource === undefined || found === undefined) return false
    if (found.metadata.deletionTimestamp !== undefined) return true
    if (found.metadata.labels?.[ownerLabel] !== ownerValue(owner)) {
      onLine(`${nameOf(entry)} stays: it belongs to another owner now`)
      return false
    }
    if (isBuiltInObject(entry, found.metadata.labels)) {
      onLine(`${nameOf(entry)} stays: Kubernetes needs it`)
      return false
    }
    if (await isKept?.(entry)) return false
    await client.remove(resource, entry, signal)
    onLine(`${nameOf(entry)} deleted`)
    return true
  }

  /** @throws KubernetesError that passes while the object is there */
  async function removeWhole(entry: InventoryEntry, order: SetOrder): Promise<void> {
    if (!(await removeOne(entry, order))) return
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, order.signal)
    const left = resource && (await client.get(resource, entry, order.signal))
    if (left === undefined) return
    const finalizers = left.metadata.finalizers
    const held = Array.isArray(finalizers) ? `; its finalizers hold it: ${finalizers.join(', ')}` : ''
    throw new KubernetesError(409, 'Conflict', `it is still being deleted${held}`)
  }

  async function removeAll(
    entries: readonly InventoryEntry[],
    order: SetOrder,
    work: (entry: InventoryEntry, order: SetOrder) => Promise<unknown>,
  ): Promise<void> {
    const items = entries.toSorted((one, other) => rankOf(other) - rankOf(one))
    await workOff({
      ...order,
      items,
      async work(entry) {
        await work(entry, order)
      },
      nameOf,
      patienceMs,
      firstPauseMs,
    })
  }

  /** @returns the inventory, with what was applied and what was there before */
  async function applyAll(order: SetOrder & { readonly objects: readonly SetObject[] }): Promise<{
    readonly known: readonly InventoryEntry[]
    readonly applied: ReadonlyMap<string, InventoryEntry>
  }> {
    const { objects, owner, signal, onLine, onInventory } = order
    const known = new Map(order.inventory.map((entry) => [keyOf(entry), entry]))
    const applied = new Map<string, InventoryEntry>()
    const located = new Map<SetObject, Located>()
    /** Errors of objects whose kind is unknown. */
    const unlocated = new Map<SetObject, KubernetesError>()

    /** Resolves the kinds of the objects, and notes new objects. */
    async function locate(some: readonly SetObject[]): Promise<void> {
      const knownBefore = known.size
      const kinds = new Map<string, Resource | KubernetesError>()
      for (const each of some) {
        const { apiVersion, kind } = each.object
        const type = `${apiVersion} ${kind}`
        const resource = kinds.get(type) ?? (await resourceOf(apiVersion, kind, signal))
        kinds.set(type, resource)
        if (resource instanceof KubernetesError) {
          unlocated.set(each, resource)
          continue
        }
        const desired = prepared(each.object, resource.isNamespaced ? each.namespace : undefined, owner)
        const entry = entryOf(desired)
        located.set(each, { resource, desired, entry })
        if (!known.has(keyOf(entry))) known.set(keyOf(entry), entry)
      }
      if (known.size > knownBefore) onInventory([...known.values()])
    }

    function locatedOf(each: SetObject): Located {
      const found = located.get(each)
      if (found === undefined) throw unlocated.get(each) ?? new Error('its kind is not known')
      return found
    }

    async function applyEach(each: SetObject): Promise<void> {
      const found = locatedOf(each)
      await applyOne(found, signal)
      applied.set(keyOf(found.entry), found.entry)
      onLine(`${nameOf(found.entry)} applied`)
    }

    const queue = {
      before: locate,
      work: applyEach,
      onLine,
      signal,
      patienceMs,
      firstPauseMs,
      // Before its kind is known, only the namespace that it names itself.
      nameOf: (each: SetObject) => nameOf(located.get(each)?.entry ?? entryOf(each.object)),
    }
    const ranked = objects.toSorted((one, other) => rankOf(one.object) - rankOf(other.object))
    const definitions = ranked.filter(({ object }) => isDefinition(object))
    const checks = ranked.filter(({ object }) => isCheck(object))
    const others = ranked.filter(({ object }) => !isDefinition(object) && !isCheck(object))
    await workOff({ ...queue, items: definitions })
    await workOff({ ...queue, items: definitions, work: (each) => checkEstablished(locatedOf(each), signal) })
    // Together, since they may need each other, for example a custom resource the webhook of a deployment.
    await workOff({ ...queue, items: others })
    await workOff({ ...queue, items: checks })
    return { known: [...known.values()], applied }
  }

  return {
    async apply(order) {
      const { known, applied } = await applyAll(order)
      await removeAll(
        known.filter((entry) => !applied.has(keyOf(entry))),
        order,
        removeOne,
      )
      order.onInventory([...applied.values()])
    },
    async add(order) {
      await applyAll(order)
    },
    async remove(order) {
      await removeAll(order.inventory, order, removeWhole)
      order.onInventory([])
    },
  }
}
