import { createHash } from 'node:crypto'
import type { KubernetesObject } from './client.ts'
import { groupKindOf } from './paths.ts'

/** An object that was applied, or was about to be. */
export interface InventoryEntry {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  /** Of a namespaced object. */
  readonly namespace?: string
}

/** Label of every applied object: its owner. */
export const ownerLabel = 'edgehostd/pack'

/**
 * The owner as the value of a label, which may have 63 letters, digits, `-`, `_` and `.`: its readable end, and a part of its SHA-256
 * for what was left out.
 */
export function ownerValue(owner: string): string {
  const readable = owner.replace(/[^A-Za-z0-9]+/g, '-').slice(-46)
  const digest = createHash('sha256').update(owner).digest('hex').slice(0, 16)
  return `${readable}-${digest}`.replace(/^-+/, '')
}

/** Equal for the same object, also in another version of its API. */
export const keyOf = (entry: InventoryEntry): string =>
  [groupKindOf(entry), entry.namespace ?? '', entry.name].join('/')

/** For people, for example `Deployment shop/web`. */
export const nameOf = ({ kind, namespace, name }: InventoryEntry): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`

/** The entry of an object. */
export const entryOf = ({ apiVersion, kind, metadata }: KubernetesObject): InventoryEntry => ({
  apiVersion,
  kind,
  name: metadata.name,
  ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
})

/**
 * An object as it is applied: with the label of its owner, and without fields of stored objects: exported manifests often contain them, and
 * the API server would refuse them.
 * @param namespace for an object that names none; undefined for one that has no namespace
 */
export function prepared(
  object: KubernetesObject,
  namespace: string | undefined,
  owner: string,
): KubernetesObject {
  const { name, namespace: own, labels } = object.metadata
  const metadata = Object.entries(object.metadata).filter(([field]) => !storedFields.has(field))
  return {
    ...object,
    // JSON leaves it out.
    status: undefined,
    metadata: {
      ...Object.fromEntries(metadata),
      name,
      ...(namespace === undefined ? {} : { namespace: own || namespace }),
      labels: { ...labels, [ownerLabel]: ownerValue(owner) },
    },
  }
}

const storedFields = new Set([
  ...['namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp'],
  ...['deletionGracePeriodSeconds', 'selfLink', 'managedFields'],
])
