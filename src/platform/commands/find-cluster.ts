import type { Client } from '../../ctl/client.ts'
import { moment, oneLine } from '../../ctl/text.ts'
import type { SpectroCluster } from '../schemas/clusters.ts'
import { findItem, type Found } from './find-version.ts'
import { findScopes } from './scopes.ts'

export const clusterKind = { noun: 'cluster', list: 'cluster list', path: '/v1/spectroclusters' } as const

/** The cluster that a word names, by its uid or its name. @throws Failure */
export async function findCluster(
  client: Client,
  word: string,
  project: string | undefined,
): Promise<Found<SpectroCluster>> {
  return findItem(client, clusterKind, word, await findScopes(client, project))
}

/** The condition that says what became of the last change that the host has dealt with; undefined while the host has not said anything. */
export const wantedOf = ({ status }: SpectroCluster) =>
  status.conditions.find(({ type }) => type === 'Wanted')

/** That of the newest change; a condition of a change before says nothing about it. A host of an older version does not say which one it means. */
export function wantedNow(cluster: SpectroCluster): ReturnType<typeof wantedOf> {
  const wanted = wantedOf(cluster)
  return (wanted?.observedGeneration ?? cluster.spec.number) < cluster.spec.number ? undefined : wanted
}

/** Why what is known of a cluster is old: its host does not answer. Undefined where it does. */
export const silenceOf = ({ status }: SpectroCluster): string | undefined =>
  status.conditions.find(({ type, status: is }) => type === 'HostSilent' && is === 'True')?.message

/** When the host of a cluster does what it is told, for a message. @param does for example `deletes the cluster line-1` */
export function whenHostActs(cluster: SpectroCluster, does: string): string {
  const host = oneLine(cluster.spec.edgeHost.name)
  const { lastProbeTime } = cluster.status.conditions.find(({ type }) => type === 'HostSilent') ?? {}
  const last =
    lastProbeTime === undefined ? 'has never been seen' : `was last seen at ${moment(lastProbeTime)}`
  return silenceOf(cluster) === undefined
    ? `The host ${host} is told with its next heartbeat, and ${does}.`
    : `The host ${host} does not answer and ${last}: nothing happens there until it is seen again. Then it ${does}.`
}
