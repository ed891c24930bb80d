import type { Resource } from './client.ts'
import { listAt, textAt } from './fields.ts'
import { isRecord } from '../base/json.ts'
import { groupOf, groupPath } from './paths.ts'
import { unlessMissing, type Requests } from './request.ts'

/** Which resources the API server has. */
export interface Discovery {
  /** @returns undefined where there is no such kind */
  resourceOf(apiVersion: string, kind: string, signal?: AbortSignal): Promise<Resource | undefined>
  /** All resources that have a namespace and can be listed, in the version that each group prefers; asked anew each time. */
  namespacedResources(signal?: AbortSignal): Promise<readonly Resource[]>
  /** Forgets the kinds of a version, which is then asked for again. */
  forget(apiVersion: string): void
}

/** Asks for the kinds of an API version once, and again for a kind that it does not know yet. */
export function createDiscovery({ ask }: Pick<Requests, 'ask'>): Discovery {
  /** By `apiVersion`, then by kind. */
  const known = new Map<string, ReadonlyMap<string, Resource>>()
  return {
    async resourceOf(apiVersion, kind, signal) {
      const resource = known.get(apiVersion)?.get(kind)
      if (resource !== undefined) return resource
      const path = groupPath(apiVersion)
      const found = await unlessMissing(() => ask({ method: 'GET', path, signal }))
      if (found === undefined) known.delete(apiVersion)
      else known.set(apiVersion, readResources(apiVersion, found))
      return known.get(apiVersion)?.get(kind)
    },
    async namespacedResources(signal) {
      const found: Resource[] = []
      for (const path of ['/api', '/apis'])
        found.push(...readNamespaced(await ask({ method: 'GET', path, accept: allGroups, signal })))
      return found
    },
    forget: (apiVersion) => void known.delete(apiVersion),
  }
}

// Aggregated discovery, kubernetes.io/docs/concepts/overview/kubernetes-api, "Aggregated discovery".
const allGroups = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** The resources of an APIGroupDiscoveryList that have a namespace and can be listed. */
export function readNamespaced(list: unknown): readonly Resource[] {
  return listAt(list, ['items']).flatMap((group) => {
    const [preferred] = listAt(group, ['versions'])
    const version = textAt(preferred, ['version'])
    return listAt(preferred, ['resources']).flatMap(
      ({ resource, scope, verbs, responseKind }): Resource[] => {
        if (scope !== 'Namespaced' || typeof resource !== 'string') return []
        if (!Array.isArray(verbs) || !verbs.includes('list')) return []
        return [
          {
            ...{ group: textAt(group, ['metadata', 'name']), version, plural: resource, isNamespaced: true },
            kind: textAt(responseKind, ['kind']),
          },
        ]
      },
    )
  })
}

/** The resources of an APIResourceList by their kind. */
export function readResources(apiVersion: string, list: unknown): ReadonlyMap<string, Resource> {
  const group = groupOf(apiVersion)
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
  const listed: readonly unknown[] = isRecord(list) && Array.isArray(list.resources) ? list.resources : []
  const resources = new Map<string, Resource>()
  for (const each of listed.filter(isRecord)) {
    const { name, kind, namespaced } = each
    // One with a slash is a part of another, for example `pods/log`.
    if (typeof name !== 'string' || typeof kind !== 'string' || name === '' || name.includes('/')) continue
    resources.set(kind, { ...{ group, version, kind }, plural: name, isNamespaced: namespaced === true })
  }
  return resources
}
