import {
  KubernetesError,
  type KubernetesObject,
  type ListOptions,
  type ObjectReference,
  type Resource,
} from './client.ts'

export type Typed = Pick<KubernetesObject, 'apiVersion' | 'kind'>

/** Path of an API group in a version. @param apiVersion for example `v1` or `apps/v1` */
export const groupPath = (apiVersion: string): string =>
  apiVersion.includes('/')
    ? `/apis/${apiVersion.split('/').map(encodeURIComponent).join('/')}`
    : `/api/${encodeURIComponent(apiVersion)}`

/** `apiVersion` of the objects of a resource. */
export const apiVersionOf = ({ group, version }: Resource): string =>
  group === '' ? version : `${group}/${version}`

/** A resource of the core group. */
export const coreResource = (kind: string, plural: string, isNamespaced = true): Resource => ({
  group: '',
  version: 'v1',
  kind,
  plural,
  isNamespaced,
})
export const podResource = coreResource('Pod', 'pods')
export const nodeResource = coreResource('Node', 'nodes', false)
export const eventResource = coreResource('Event', 'events')

/** API group of an `apiVersion`; empty for the core group. */
export const groupOf = (apiVersion: string): string =>
  apiVersion.slice(0, Math.max(apiVersion.indexOf('/'), 0))

/** `<group>/<kind>`: the same in all versions of an API. */
export const groupKindOf = ({ apiVersion, kind }: Typed): string => `${groupOf(apiVersion)}/${kind}`

/** Path of all objects of a resource, or of those in a namespace. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const within = resource.isNamespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : ''
  return `${groupPath(apiVersionOf(resource))}${within}/${resource.plural}`
}

/** @throws KubernetesError where the reference does not name one object, which would be a request for all */
export function objectPath(resource: Resource, { name, namespace }: ObjectReference): string {
  if (resource.isNamespaced && namespace === undefined)
    throw new KubernetesError(0, 'BadRequest', `${resource.kind} ${name} has no namespace`)
  return `${collectionPath(resource, namespace)}/${segment(name)}`
}

/** Media type of the reply to a list, or to a watch; undefined for whole objects. */
export function metadataType({ isMetadataOnly = false }: ListOptions, kind: 'list' | 'watch') {
  if (!isMetadataOnly) return {}
  const form = kind === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata'
  return { accept: `application/json;as=${form};g=meta.k8s.io;v=v1` }
}

/** The selectors of a list as parameters. */
export const selectors = ({ labelSelector, fieldSelector }: ListOptions): Record<string, string> => ({
  ...(labelSelector === undefined ? {} : { labelSelector }),
  ...(fieldSelector === undefined ? {} : { fieldSelector }),
})

function segment(name: unknown): string {
  // Segments that the API server refuses: with them, the path would name something else.
  if (typeof name !== 'string' || name === '' || name === '.' || name === '..' || /[/%]/.test(name))
    throw new KubernetesError(0, 'BadRequest', `${JSON.stringify(name ?? '')} is not a name in Kubernetes`)
  return encodeURIComponent(name)
}
