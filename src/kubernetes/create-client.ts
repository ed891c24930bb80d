import { type Resource, KubernetesError, type KubernetesClient, type KubernetesObject } from './client.ts'
import { listAt, textAt, isObject, withoutManagers } from './fields.ts'
import { isRecord } from '../base/json.ts'
import { groupOf, groupPath, apiVersionOf, objectPath, podResource } from './paths.ts'
import { unlessMissing, type Requests, createRequests, isMissing } from './request.ts'
import { createConnection } from './connection.ts'
import { listAll, type ListLimits } from './lists.ts'
import { watchObjects, type WatchTiming } from './watch.ts'

/** Resources of the API server. */
interface Discovery {
  /** @returns undefined where there is no such kind */
  resourceOf(apiVersion: string, kind: string, signal?: AbortSignal): Promise<Resource | undefined>
  /** All resources that have a namespace and can be listed, in the version that each group prefers; asked anew each time. */
  namespacedResources(signal?: AbortSignal): Promise<readonly Resource[]>
  /** Forgets the kinds of a version, which is then asked for again. */
  forget(apiVersion: string): void
}

/** Asks for the kinds of an API version once, and again for a kind that it does not know yet. */
function createDiscovery({ ask }: Pick<Requests, 'ask'>): Discovery {
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
function readNamespaced(list: unknown): readonly Resource[] {
  return listAt(list, ['items']).flatMap((group) => {
    const [preferred] = listAt(group, ['versions'])
    const version = textAt(preferred, ['version'])
    return listAt(preferred, ['resources']).flatMap(
      ({ resource, scope, verbs, responseKind }): Resource[] => {
        if (scope !== 'Namespaced' || typeof resource !== 'string') return []
        if (!Array.isArray(verbs) || !verbs.includes('list')) return []
        return [
          {
            group: textAt(group, ['metadata', 'name']),
            version,
            plural: resource,
            isNamespaced: true,
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
    resources.set(kind, { group, version, kind, plural: name, isNamespaced: namespaced === true })
  }
  return resources
}

export interface KubernetesClientOptions {
  /** Reads the text of the administrator's kubeconfig; called again when its certificates are refused or the API server is silent. */
  readonly kubeconfig: () => Promise<string>
  /** Of each request. */
  readonly timeoutMs?: number
  /** Of each reply, except a watch. */
  readonly maximumBytes?: number
  readonly limits?: ListLimits
  readonly timing?: WatchTiming
}

/** Names this project in `metadata.managedFields`. */
const fieldManager = 'edgehostd'

const readyMs = 5_000

/** A client of one API server; it connects at the first request. */
export function createKubernetesClient(options: KubernetesClientOptions): KubernetesClient {
  const { kubeconfig, limits, timing } = options
  const connection = createConnection(kubeconfig)
  const requests = createRequests({ ...options, connection })
  const discovery = createDiscovery(requests)

  async function apply(
    resource: Resource,
    object: KubernetesObject,
    more: string,
    signal: AbortSignal | undefined,
  ): Promise<KubernetesObject> {
    const path = `${objectPath(resource, object.metadata)}?fieldManager=${fieldManager}&force=true${more}`
    const body = Buffer.from(JSON.stringify(object))
    const contentType = 'application/apply-patch+yaml'
    try {
      return readObject(await requests.ask({ method: 'PATCH', path, contentType, body, signal }))
    } catch (error) {
      // The kind itself may be gone, or have another scope.
      if (isMissing(error)) discovery.forget(apiVersionOf(resource))
      throw error
    }
  }

  return {
    async isReady(signal) {
      try {
        await requests.read({ method: 'GET', path: '/readyz', timeoutMs: readyMs, signal })
        return true
      } catch {
        return false
      }
    },
    async version(signal) {
      const reply = await requests.ask({ method: 'GET', path: '/version', signal })
      if (!isRecord(reply) || typeof reply.gitVersion !== 'string') throw notUnderstood('a version')
      return reply.gitVersion
    },
    resourceOf: (apiVersion, kind, signal) => discovery.resourceOf(apiVersion, kind, signal),
    namespacedResources: (signal) => discovery.namespacedResources(signal),
    async get(resource, object, signal) {
      const path = objectPath(resource, object)
      return unlessMissing(async () => readObject(await requests.ask({ method: 'GET', path, signal })))
    },
    list: async (resource, wanted = {}) => (await listAll(requests, resource, wanted, limits)).objects,
    apply: (resource, object, signal) => apply(resource, object, '', signal),
    wouldApply: (resource, object, signal) => apply(resource, object, '&dryRun=All', signal),
    async remove(resource, object, signal) {
      const path = `${objectPath(resource, object)}?propagationPolicy=Background`
      await unlessMissing(() => requests.ask({ method: 'DELETE', path, signal }))
    },
    async evict({ name, namespace }, signal) {
      const path = `${objectPath(podResource, { name, ...(namespace === undefined ? {} : { namespace }) })}/eviction`
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
      const body = Buffer.from(JSON.stringify(eviction))
      const asked = {
        method: 'POST',
        path,
        contentType: 'application/json',
        body,
        signal,
        isRefusedWhenPutOff: true,
      } as const
      await unlessMissing(() => requests.ask(asked))
    },
    logs(pod, { container, isPrevious, tailLines, limitBytes, signal }) {
      const query = new URLSearchParams({
        container,
        previous: String(isPrevious),
        tailLines: String(tailLines),
        limitBytes: String(limitBytes),
      })
      const path = `${objectPath(podResource, pod)}/log?${query.toString()}`
      return requests.read({ method: 'GET', path, accept: '*/*', signal })
    },
    watch: (resource, watched) => watchObjects({ requests, timing, limits }, resource, watched),
    close: () => connection.close(),
  }
}

function readObject(reply: unknown): KubernetesObject {
  if (!isObject(reply)) throw notUnderstood('an object')
  return withoutManagers(reply)
}

const notUnderstood = (what: string) =>
  new KubernetesError(200, 'InvalidReply', `the reply of the API server is not ${what}`)
