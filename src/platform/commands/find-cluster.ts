import type { Client } from '../../ctl/client.ts'
import type { SpectroCluster } from '../schemas/clusters.ts'
import { findItem, type Found } from './find-version.ts'
import { findScopes } from './scopes.ts'

export const clusterKind = { noun: 'cluster', list: 'clusters list', path: '/v1/spectroclusters' } as const

/** The cluster that a word names, by its uid or its name. @throws Failure */
export async function findCluster(
  client: Client,
  word: string,
  project: string | undefined,
): Promise<Found<SpectroCluster>> {
  return findItem(client, clusterKind, word, await findScopes(client, project))
}

/** The condition that says what became of the last change; undefined while the host has not said anything. */
export const wantedOf = ({ status }: SpectroCluster) =>
  status.conditions.find(({ type }) => type === 'Wanted')
