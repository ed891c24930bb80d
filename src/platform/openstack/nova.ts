import { heapBytes } from '../../base/heap-bytes.ts'
import type { MachineRead } from '../machines/provider.ts'
import type { Machine } from '../schemas/machines.ts'
import type { CloudHttp } from './cloud-http.ts'
import type { CloudSession } from './keystone.ts'
import type { Port } from './neutron.ts'
import { readPages, type PagedList } from './pages.ts'
import { toMachine } from './to-machine.ts'

/**
 * The version of Nova's interface, of 2017 (Pike). 2.26 has filters by tags, 2.47 the flavor in the server itself, so that nothing else has to
 * be asked. What later ones add is not used: 2.69 tells of servers of a part of the cloud that is down, but not with a filter.
 */
const microversion = '2.47'
// Nova gives fewer where its max_limit is lower. With all the metadata of Nova's usual quota a server has 67 kB, and with escapes 200 kB.
const pageSize = 100
const longestPage = 8_388_608
const mostServers = 10_000

/** The servers of a pool. */
export interface ServersRequest {
  readonly session: Pick<CloudSession, 'token' | 'compute'>
  readonly tags: readonly string[]
  /** Of all servers of the project, by their id. */
  readonly ports: ReadonlyMap<string, readonly Port[]>
}

/**
 * All servers of the project that have every tag, as machines.
 * @param hold is called with the memory that the machines take so far
 * @throws TokenRefused, what `hold` throws, and AppError CloudCredentialsRefused, CloudUnavailable
 */
export async function readMachines(
  http: Pick<CloudHttp, 'ask'>,
  { session, tags, ports }: ServersRequest,
  { signal, hold }: MachineRead,
): Promise<readonly Machine[]> {
  const url = new URL(`${session.compute}/servers/detail`)
  url.searchParams.set('tags', tags.join(','))
  const list: PagedList = {
    member: 'servers',
    ...{ service: 'Nova', url, pageSize, most: mostServers, longest: longestPage },
    headers: { 'x-auth-token': session.token, 'x-openstack-nova-api-version': microversion },
  }
  return readPages(http, list, signal, () => {
    const machines: Machine[] = []
    let bytes = 0
    return {
      add(page) {
        const found = page.map((server) => toMachine(server, ports.get(server.id) ?? []))
        bytes += heapBytes(found)
        hold(bytes)
        machines.push(...found)
      },
      result: () => machines,
    }
  })
}
