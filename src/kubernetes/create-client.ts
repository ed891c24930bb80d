import { KubernetesError, type KubernetesClient, type KubernetesObject, type Resource } from './client.ts'
import { createConnection } from './connection.ts'
import { createDiscovery } from './discovery.ts'
import { isRecord } from '../base/json.ts'
import { isObject, withoutManagers } from './json.ts'
import { listAll, type ListLimits } from './lists.ts'
import { apiVersionOf, objectPath } from './paths.ts'
import { createRequests, isMissing, unlessMissing } from './request.ts'
import { watchObjects, type WatchTiming } from './watch.ts'

export interface KubernetesClientOptions {
  /** Reads the text of the administrator's kubeconfig; called again when its certificates are refused or the API server is silent. */
  readonly kubeconfig: () => Promise<string>
  /** Of each request. */
  readonly timeoutMs?: number
  /** Of each reply, but that of a watch. */
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
    watch: (resource, watched) => watchObjects({ requests, timing, limits }, resource, watched),
    close: () => connection.close(),
  }
}

const podResource: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true }

function readObject(reply: unknown): KubernetesObject {
  if (!isObject(reply)) throw notUnderstood('an object')
  return withoutManagers(reply)
}

const notUnderstood = (what: string) =>
  new KubernetesError(200, 'InvalidReply', `the reply of the API server is not ${what}`)
