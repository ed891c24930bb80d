import { expect } from 'vitest'
import type { ClusterRevisions } from '../../../src/cluster/desired/schemas.ts'
import type { ClusterConfiguration } from '../../../src/cluster/schemas.ts'
import { eventually } from '../host/eventually.ts'
import type { Reply } from '../host/http.ts'
import { clusterPath, type ClusterClient } from './cluster-client.ts'
import { uploadDefinition, type ClusterHost } from './cluster-host.ts'
import { profileUid, type PlantWish } from './plant-definition.ts'

export type RevisionItem = ClusterRevisions['items'][number]

/** Writes of a running cluster, through the API. */
export interface ClusterWrites {
  /** What GET gives, and its ETag. */
  document(): Promise<{ readonly configuration: ClusterConfiguration; readonly etag: string }>
  /** The newest first. */
  revisions(): Promise<readonly RevisionItem[]>
  newest(): Promise<RevisionItem>
  put(configuration: object, headers?: Readonly<Record<string, string>>): Promise<Reply>
  /** A merge patch of what GET gives. */
  patch(change: object): Promise<Reply>
  /** Gives values to variables of the profile by a merge patch; the others stay, masked. Has to be accepted. */
  give(values: Readonly<Record<string, string>>, spec?: object): Promise<void>
  /** Uploads another definition and takes it, which has to be accepted. */
  take(wish: PlantWish): Promise<void>
  rollBack(body?: object): Promise<Reply>
  /** Waits until the newest revision is good and the cluster Running. */
  settled(timeoutMs?: number): Promise<RevisionItem>
  /** The first event of a reason with a message, since a moment. */
  told(since: Date, reason: string, message: RegExp): Promise<string>
}

export function clusterWrites(plant: ClusterHost, cluster: ClusterClient): ClusterWrites {
  const { host, token } = plant
  const accepted = (reply: Reply) => {
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
  }
  const writes: ClusterWrites = {
    async document() {
      const reply = await cluster.get(clusterPath)
      expect(reply, reply.text || reply.failure).toMatchObject({ status: 200 })
      return { configuration: reply.json as ClusterConfiguration, etag: reply.headers.etag?.[0] ?? '' }
    },
    async revisions() {
      const reply = await cluster.get(`${clusterPath}/revisions`)
      expect(reply, reply.text || reply.failure).toMatchObject({ status: 200 })
      return (reply.json as ClusterRevisions).items
    },
    newest: async () => (await writes.revisions())[0]!,
    put: (body, headers = {}) => host.http('PUT', clusterPath, { token, body, headers }),
    patch: (body) =>
      host.http('PATCH', clusterPath, {
        ...{ token, body, headers: { 'Content-Type': 'application/merge-patch+json' } },
      }),
    async give(values, spec = {}) {
      const { configuration } = await writes.document()
      const before = (configuration.spec?.profileVariables ?? []).filter(
        ({ name = '' }) => !Object.hasOwn(values, name),
      )
      const given = Object.entries(values).map(([name, value]) => ({ name, profileUid, value }))
      accepted(await writes.patch({ spec: { ...spec, profileVariables: [...before, ...given] } }))
    },
    async take(wish) {
      const archiveUploadPath = await uploadDefinition(host, token, plant.kit, wish, 'update')
      accepted(
        await host.http('PUT', `${clusterPath}/profiles`, { token, body: { spec: { archiveUploadPath } } }),
      )
    },
    rollBack: (body = {}) => host.http('POST', `${clusterPath}/rollback`, { token, body }),
    settled: (timeoutMs = 180_000) =>
      eventually(async () => {
        const newest = await writes.newest()
        expect(newest, JSON.stringify(newest)).toMatchObject({ outcome: 'good', isActive: true })
        expect((await cluster.details())?.status.phase).toBe('Running')
        return newest
      }, timeoutMs),
    told: (since, reason, message) =>
      eventually(async () => {
        const events = (await cluster.ownEvents()).filter(
          ({ metadata }) => Date.parse(metadata.creationTimestamp) >= since.getTime() - 1_000,
        )
        const found = events.find((each) => each.reason === reason && message.test(each.message))
        expect(found, events.map((each) => `${each.reason} ${each.message}`).join('\n')).toBeDefined()
        return found!.message
      }, 60_000),
  }
  return writes
}
