import { setTimeout as sleep } from 'node:timers/promises'
import { nameOf } from '../../kubernetes/inventory.ts'
import type { KubernetesClient, KubernetesObject, Resource } from '../../kubernetes/client.ts'
import { StepFailed, type CallContext } from '../step.ts'
import type { PackStore } from './pack-store.ts'

export interface NamespacesOptions {
  readonly client: Pick<KubernetesClient, 'resourceOf' | 'namespacedResources' | 'get' | 'list' | 'remove'>
  readonly store: Pick<PackStore, 'namespaces' | 'addNamespace' | 'removeNamespace'>
  /** How long what is on its way out of a namespace is waited for. */
  readonly patienceMs?: number
}

/** The namespaces that were made for packs: they go again when no pack needs them and nothing is in them. */
export interface MadeNamespaces {
  /** The resource of namespaces. */
  resource(signal: AbortSignal): Promise<Resource>
  /** Notes those that are not there yet; to be called before they are applied. */
  noteMissing(names: readonly string[], signal: AbortSignal): Promise<void>
  /** Deletes those that are not needed and empty. @param isNeeded asked only about namespaces that were made for packs */
  tidy(isNeeded: (name: string) => Promise<boolean>, context: CallContext): Promise<void>
}

const pauseMs = 500

export function createMadeNamespaces(options: NamespacesOptions): MadeNamespaces {
  const { client, store, patienceMs = 60_000 } = options

  async function resource(signal: AbortSignal): Promise<Resource> {
    const found = await client.resourceOf('v1', 'Namespace', signal)
    if (!found) throw new StepFailed('the API server has no namespaces')
    return found
  }

  /** What keeps a namespace, with its kind and name; empty if nothing does. Waits for what is on its way. */
  async function contentOf(namespace: string, signal: AbortSignal): Promise<string> {
    const end = performance.now() + patienceMs
    for (const each of await client.namespacedResources(signal)) {
      if (isPassing(each)) continue
      for (;;) {
        const found = (await client.list(each, { namespace, pick: keepMetadata, signal })).filter(isContent)
        const [first] = found
        if (!first) break
        // What belongs to an object that was deleted goes a moment after it.
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

/** Kinds without anything of value: they tell what was, lock, or mirror others. */
const isPassing = ({ group, kind }: Resource) =>
  kind === 'Event' || kind === 'Lease' || kind === 'EndpointSlice' || group === 'metrics.k8s.io'

/** Whether an object is not one of those that Kubernetes itself makes in each namespace. */
const isContent = ({ kind, metadata: { name } }: KubernetesObject) =>
  !(kind === 'ConfigMap' && name === 'kube-root-ca.crt') && !(kind === 'ServiceAccount' && name === 'default')

/** Endpoints go with their Service, and are not marked as owned by it. */
const isLeaving = ({ kind, metadata }: KubernetesObject) =>
  kind === 'Endpoints' || metadata.deletionTimestamp !== undefined || metadata.ownerReferences !== undefined

const keepMetadata = ({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject => ({
  ...{ apiVersion, kind, metadata },
})

const placeOf = (
  { kind, group, version }: Resource,
  { metadata: { name, namespace } }: KubernetesObject,
) => ({
  ...{ apiVersion: group === '' ? version : `${group}/${version}`, kind, name },
  ...(namespace === undefined ? {} : { namespace }),
})
