import type { ClusterDetails } from '../cluster/schemas.ts'
import type { Context } from './context.ts'
import { Failure } from './exit-codes.ts'
import { parseBody, toFailure } from './reply.ts'

export const clusterPath = '/v1/edge-mgmt/cluster'
export const hostPath = '/v1/edge-mgmt/edgehosts/current'

interface DetailsWish {
  /** Its delivery is audited. */
  readonly withKubeconfig?: boolean
}

/** The cluster; undefined where there is none. @throws Failure */
export async function readDetails(
  { client }: Pick<Context, 'client'>,
  { withKubeconfig = false }: DetailsWish = {},
): Promise<ClusterDetails | undefined> {
  const path = `${clusterPath}/details${withKubeconfig ? '' : '?kubeconfig=false'}`
  const reply = await client.ask({ method: 'GET', path })
  if (reply.status === 404) return undefined
  if (reply.status !== 200) throw toFailure(reply)
  return parseBody<ClusterDetails>(reply, ['metadata', 'spec', 'status'])
}

/** The cluster. @throws Failure, also where there is none */
export async function requireDetails(
  context: Pick<Context, 'client'>,
  wish?: DetailsWish,
): Promise<ClusterDetails> {
  const details = await readDetails(context, wish)
  if (details === undefined) throw noCluster()
  return details
}

export const noCluster = () => new Failure('failed', 'this host has no cluster')
