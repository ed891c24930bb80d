import { expect } from 'vitest'
import type { ClusterDetails } from '../../../src/cluster/schemas.ts'
import { eventually } from '../host/eventually.ts'
import type { Ask, Reply } from '../host/http.ts'
import type { ClusterHost, ConfigurationChange } from './cluster-host.ts'

export const clusterPath = '/v1/edge-mgmt/cluster'

/** An event of the cluster, as GET …/cluster/events gives it. */
export interface ClusterEventItem {
  readonly metadata: { readonly creationTimestamp: string }
  readonly reason: string
  readonly message: string
  readonly severity: string
  readonly source: { readonly component: string }
  readonly clusterUid?: string
}

export interface ReachOptions {
  readonly timeoutMs?: number
  /** Called with the details of each look; it may wait. */
  readonly onLook?: (details: ClusterDetails) => Promise<void> | void
}

/** The cluster of a host, through the API. */
export interface ClusterClient {
  get(path: string, ask?: Ask): Promise<Reply>
  post(change?: ConfigurationChange, ask?: Ask & { readonly query?: string }): Promise<Reply>
  /** A creation that has to be accepted; gives the uid. */
  create(change?: ConfigurationChange): Promise<string>
  /** undefined where there is no cluster. */
  details(): Promise<ClusterDetails | undefined>
  /** Waits for a phase. */
  reach(phase: ClusterDetails['status']['phase'], options?: ReachOptions): Promise<ClusterDetails>
  /** Waits until it is Running and Healthy. */
  expectHealthy(timeoutMs: number): Promise<void>
  /** Deletes it and waits until it is gone. */
  remove(timeoutMs?: number): Promise<void>
  /** Waits until there is no cluster. */
  gone(timeoutMs?: number): Promise<void>
  /** Events of this host and of Kubernetes, the newest first. @param namespace only what is about objects in it */
  events(namespace?: string): Promise<readonly ClusterEventItem[]>
  /** Those of edgehostd of the newest cluster, the newest first. */
  ownEvents(): Promise<readonly ClusterEventItem[]>
  /** kubectl on the host, as the administrator of Kubernetes. */
  kubectl(...args: readonly string[]): Promise<string>
}

export function clusterClient({ host, token, configuration }: ClusterHost): ClusterClient {
  const get: ClusterClient['get'] = (path, ask) => host.http('GET', path, { token, ...ask })
  const post: ClusterClient['post'] = (change, { query = '', ...ask } = {}) =>
    host.http('POST', `${clusterPath}${query}`, { token, body: configuration(change), ...ask })
  const client: ClusterClient = {
    get,
    post,
    async create(change) {
      const reply = await post(change)
      expect(reply, reply.text || reply.failure).toMatchObject({ status: 201 })
      expect(reply.json.uid).toMatch(/^[0-9a-f-]{20,}$/)
      return reply.json.uid as string
    },
    async details() {
      const reply = await get(`${clusterPath}/details`)
      if (reply.status === 404) return undefined
      expect(reply, reply.text || reply.failure).toMatchObject({ status: 200 })
      return reply.json as ClusterDetails
    },
    async reach(phase, { timeoutMs = 240_000, onLook } = {}) {
      let seen: ClusterDetails | undefined
      return eventually(async () => {
        // The daemon may be down for a moment, since a test kills it.
        seen = (await client.details()) ?? seen
        if (seen) await onLook?.(seen)
        expect(seen?.status.phase, describeDetails(seen)).toBe(phase)
        return seen!
      }, timeoutMs)
    },
    expectHealthy: (timeoutMs) =>
      eventually(async () => {
        expect((await client.details())?.status).toMatchObject({
          ...{ phase: 'Running', health: { status: 'Healthy' } },
        })
      }, timeoutMs),
    async remove(timeoutMs) {
      const reply = await host.http('DELETE', clusterPath, { token })
      expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
      await client.gone(timeoutMs)
    },
    gone: (timeoutMs = 120_000) =>
      eventually(async () => {
        const details = await client.details()
        expect(details, describeDetails(details)).toBeUndefined()
        expect((await get(clusterPath)).status).toBe(404)
      }, timeoutMs),
    async events(namespace = '') {
      const items: ClusterEventItem[] = []
      for (let next = ''; ;) {
        const query = new URLSearchParams({ namespace, ...(next ? { continue: next } : {}) })
        const reply = await get(`${clusterPath}/events?${query.toString()}`)
        expect(reply, reply.text || reply.failure).toMatchObject({ status: 200 })
        items.push(...(reply.json.items as ClusterEventItem[]))
        next = reply.json.listmeta.continue as string
        if (!next) return items
      }
    },
    async ownEvents() {
      const own = (await client.events()).filter(({ source }) => source.component === 'edgehostd')
      return own.filter(({ clusterUid }) => clusterUid === own[0]!.clusterUid)
    },
    kubectl: (...args) =>
      host.output([
        '/var/lib/edgehostd/cluster/programs/kubectl/current/kubectl',
        '--kubeconfig=/etc/kubernetes/admin.conf',
        // Not in the home folder, whose files are compared.
        '--cache-dir=/dev/shm/kubectl',
        ...args,
      ]),
  }
  return client
}

/** What a failed test shows of a cluster. */
function describeDetails(details: ClusterDetails | undefined): string {
  if (!details) return 'no cluster'
  const { phase, clusterStateReason, steps } = details.status
  const lines = steps.map(
    ({ key, state, failures, reason = '' }) =>
      `  ${state} ${key}${failures ? `, ${failures} failures` : ''} ${reason}`,
  )
  return [`${phase}: ${clusterStateReason}`, ...lines].join('\n')
}
