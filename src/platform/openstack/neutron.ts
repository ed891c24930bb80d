import { heapBytes } from '../../base/heap-bytes.ts'
import type { MachineRead } from '../machines/provider.ts'
import type { CloudHttp } from './cloud-http.ts'
import { objectsIn, shortTextOf } from './json.ts'
import type { CloudSession } from './keystone.ts'
import { readPages, type PagedList } from './pages.ts'

/** A network card of a server. */
export interface Port {
  readonly mac: string
  readonly networkId: string
  readonly addresses: readonly { readonly subnetId: string; readonly address: string }[]
}

const fields = ['id', 'device_id', 'mac_address', 'network_id', 'fixed_ips']
// Neutron gives fewer where its pagination_max_limit is lower. A port has some 350 bytes and ten values.
const pageSize = 2_000
const longestPage = 2_097_152
const mostPorts = 50_000

/**
 * All ports of the project, by the id of their server: in one request for each 2,000.
 * @param hold is called with the memory that the ports take so far
 * @throws TokenRefused, what `hold` throws, and AppError CloudCredentialsRefused, CloudUnavailable
 */
export async function readPorts(
  http: Pick<CloudHttp, 'ask'>,
  { token, network, projectId }: Pick<CloudSession, 'token' | 'projectId'> & { readonly network: string },
  { signal, hold }: MachineRead,
): Promise<ReadonlyMap<string, readonly Port[]>> {
  const url = new URL(`${network}${network.endsWith('/v2.0') ? '' : '/v2.0'}/ports`)
  // Without the project, the ports of all of them for an administrator of the cloud.
  url.searchParams.append('project_id', projectId)
  for (const field of fields) url.searchParams.append('fields', field)
  const list: PagedList = {
    member: 'ports',
    ...{ service: 'Neutron', url, pageSize, most: mostPorts, longest: longestPage },
    headers: { 'x-auth-token': token },
  }
  return readPages(http, list, signal, () => {
    const found = new Map<string, Port[]>()
    let bytes = 0
    return {
      add(page) {
        for (const { device_id: server, mac_address: mac, network_id: networkId, fixed_ips: ips } of page) {
          if (typeof server !== 'string' || server === '' || typeof mac !== 'string') continue
          const addresses = objectsIn(ips).map(({ subnet_id: subnet, ip_address: address }) => ({
            ...{ subnetId: shortTextOf(subnet), address: shortTextOf(address) },
          }))
          const port = { mac: shortTextOf(mac), networkId: shortTextOf(networkId), addresses }
          bytes += heapBytes(server) + heapBytes(port)
          const known = found.get(server)
          if (known) known.push(port)
          else found.set(server, [port])
        }
        hold(bytes)
      },
      result: () => found,
    }
  })
}
