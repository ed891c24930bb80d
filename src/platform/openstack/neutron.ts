import { unusable, type CloudHttp } from './cloud-http.ts'
import { objectsIn, textOf } from './json.ts'
import type { CloudSession } from './keystone.ts'
import { requireRight } from './nova.ts'

/** A network card of a server. */
export interface Port {
  readonly mac: string
  readonly networkId: string
  readonly addresses: readonly { readonly subnetId: string; readonly address: string }[]
}

const fields = ['device_id', 'mac_address', 'network_id', 'fixed_ips']
// Some 300 bytes for each port.
const longestPorts = 16_777_216

/**
 * All ports of the project, by the id of their server, in one request.
 * @throws TokenRefused, and AppError CloudCredentialsRefused, CloudUnavailable
 */
export async function readPorts(
  http: Pick<CloudHttp, 'ask'>,
  { token, network, projectId }: Pick<CloudSession, 'token' | 'projectId'> & { readonly network: string },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Port[]>> {
  const url = new URL(`${network}${network.endsWith('/v2.0') ? '' : '/v2.0'}/ports`)
  // Without the project, the ports of all of them for an administrator of the cloud.
  url.searchParams.append('project_id', projectId)
  for (const field of fields) url.searchParams.append('fields', field)
  const reply = await http.ask({
    ...{ service: 'Neutron', method: 'GET', url, longest: longestPorts, signal },
    headers: { 'x-auth-token': token },
  })
  requireRight('Neutron', reply)
  const ports = reply.body?.ports
  if (reply.status !== 200 || !Array.isArray(ports)) throw unusable('Neutron', reply)
  const found = new Map<string, Port[]>()
  for (const port of objectsIn(ports)) {
    const { device_id: server, mac_address: mac, network_id: networkId, fixed_ips: addresses } = port
    if (typeof server !== 'string' || server === '' || typeof mac !== 'string') continue
    const of = found.get(server) ?? []
    found.set(server, of)
    of.push({
      ...{ mac, networkId: textOf(networkId) },
      addresses: objectsIn(addresses).map(({ subnet_id: subnet, ip_address: address }) => ({
        ...{ subnetId: textOf(subnet), address: textOf(address) },
      })),
    })
  }
  return found
}
