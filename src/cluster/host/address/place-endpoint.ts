import { judgeEndpoint, saidOfEndpoint } from '../../configuration/endpoint-address.ts'
import type { PreflightProblem } from '../../problem.ts'
import { isInterfaceName, type HeldAddress } from './address-unit.ts'
import type { HostNetworks } from './host-networks.ts'

/** Where the address of the control plane is: on this host already, on an interface that a unit gives it to, or nowhere. */
export type EndpointPlace =
  | { readonly kind: 'own' }
  | { readonly kind: 'virtual'; readonly virtualAddress: HeldAddress }
  | { readonly kind: 'refused'; readonly problem: PreflightProblem }

export const endpointPath = 'spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint.host'

/** Judges the address that was posted for the control plane; an empty one stands for the address of this host. */
export function placeEndpoint(host: string, { addresses, routes }: HostNetworks): EndpointPlace {
  const text = host.trim()
  const refuse = (reason: string): EndpointPlace => ({
    kind: 'refused',
    problem: {
      ...{ code: 'EndpointInvalid', severity: 'error', path: endpointPath },
      message: saidOfEndpoint(text, reason),
    },
  })
  const judged = judgeEndpoint(text, {
    ...{ called: 'this host', addresses, networks: routes.filter(({ isConnected }) => isConnected) },
  })
  if (judged.kind === 'own') return judged
  if (judged.kind !== 'within') return refuse(judged.reason)
  const {
    address,
    network: { networkInterface },
  } = judged
  if (!isInterfaceName(networkInterface))
    return refuse(
      `is in the network of the interface ${JSON.stringify(networkInterface)}, whose name a unit cannot hold`,
    )
  return { kind: 'virtual', virtualAddress: { address, networkInterface } }
}
