import { heapBytes } from '../kept-pools.ts'
import type { MachineRead, MachineProvider } from '../machines.ts'
import {
  type CloudHttp,
  objectsIn,
  shortTextOf,
  readPages,
  type PagedList,
  createCloudHttp,
  TokenRefused,
} from './http.ts'
import { type CloudSession, createKeystone, type CloudCredentials } from './keystone.ts'
import type { Machine } from '../schemas.ts'
import { isRecord, type JsonObject } from '../../../base/json.ts'
import { formatTime, parseTime } from '../../../base/time.ts'
import { AppError } from '../../../errors/app-error.ts'
import { readAuthorities } from '../../../outgoing/authorities.ts'
import type { Clock } from '../../../system/clock.ts'
import { platformErrors } from '../../codes.ts'
import type { CloudsSettings } from '../../config.ts'

/** A network card of a server. */
interface Port {
  readonly mac: string
  readonly networkId: string
  readonly addresses: readonly { readonly subnetId: string; readonly address: string }[]
}

const fields = ['id', 'device_id', 'mac_address', 'network_id', 'fixed_ips']
// Neutron gives fewer where its pagination_max_limit is lower. A port has some 350 bytes and ten values.
const portsOfPage = 2_000
const longestPortPage = 2_097_152
const mostPorts = 50_000

/**
 * All ports of the project, by the id of their server: in one request for each 2,000.
 * @param hold is called with the memory that the ports take so far
 * @throws TokenRefused, what `hold` throws, and AppError CloudCredentialsRefused, CloudUnavailable
 */
async function readPorts(
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
    service: 'Neutron',
    url,
    pageSize: portsOfPage,
    most: mostPorts,
    longest: longestPortPage,
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
            subnetId: shortTextOf(subnet),
            address: shortTextOf(address),
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

type Status = Machine['status']

/** State of a server, as Nova reports it. */
interface NovaState {
  readonly status: string
  /** Current task of Nova with it; empty for none. */
  readonly task: string
  /** Reason of a failure; empty where Nova gives none. */
  readonly fault: string
}

// Work on a server that is there: it counts as running meanwhile.
const maintenance: Readonly<Record<string, string>> = {
  REBOOT: 'The server is being restarted in order.',
  HARD_REBOOT: 'The server is being switched off and on again.',
  RESIZE: 'The server is being given another size.',
  VERIFY_RESIZE: 'The server has another size, which waits to be confirmed.',
  REVERT_RESIZE: 'The server is being given its former size again.',
  MIGRATING: 'The server is being moved to another machine.',
  PASSWORD: 'The password of the server is being changed.',
  REBUILD: 'The server is being made again from an image.',
  RESCUE: 'The server runs a system for its repair.',
}
const provisioned = ['SHUTOFF', 'PAUSED', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED']
const deleting = ['deleting', 'soft-deleting']

/** The state of a server as one of a machine, docs/platform.md, "Clouds". Pure. */
export function toMachineState({ status, task, fault }: NovaState): Pick<
  Status,
  'instanceState' | 'maintenanceStatus'
> & {
  readonly conditions: Status['health']['conditions']
} {
  const conditions: Status['health']['conditions'] = []
  if (deleting.includes(task) || status === 'SOFT_DELETED') return { instanceState: 'Deleting', conditions }
  if (status === 'DELETED') return { instanceState: 'Deleted', conditions }
  if (status === 'ERROR') {
    const condition = { type: 'Failed', status: 'True', reason: 'ServerError', message: fault }
    return { instanceState: 'Failed', conditions: [condition] }
  }
  if (status === 'BUILD') {
    const isWaiting = task === '' || task === 'scheduling'
    return { instanceState: isWaiting ? 'Pending' : 'Provisioning', conditions }
  }
  if (status === 'ACTIVE') return { instanceState: 'Running', conditions }
  if (provisioned.includes(status)) return { instanceState: 'Provisioned', conditions }
  if (!Object.hasOwn(maintenance, status)) return { instanceState: 'Unknown', conditions }
  const maintenanceStatus = { action: status, message: maintenance[status] ?? '', state: task }
  return { instanceState: 'Running', maintenanceStatus, conditions }
}

const mostNics = 128
const mostAddresses = 8
const mostGroups = 64
// Nova's usual quota.
const mostAnnotations = 128

/** A network card; each may have addresses that Nova and Neutron name. */
interface Card {
  readonly privateIPs: Set<string>
  publicIp?: string
}

/**
 * A server of Nova as a machine, of which each text and each list is bounded. What Nova leaves out, as it does for a server of a part of the cloud that is down, is empty. Pure.
 * @param ports of the server; empty where the cloud has no Neutron
 */
export function toMachine(server: JsonObject, ports: readonly Port[]): Machine {
  const { image, flavor, fault } = server
  const cards = cardsOf(server, ports)
  const [firstMac] = cards.keys()
  const first = ports.find(({ mac }) => mac === firstMac)
  const [address] = first?.addresses ?? []
  const zone = shortTextOf(server['OS-EXT-AZ:availability_zone'])
  const groups = objectsIn(server.security_groups).map(({ name }) => shortTextOf(name))
  const { conditions, ...state } = toMachineState({
    status: shortTextOf(server.status),
    task: shortTextOf(server['OS-EXT-STS:task_state']),
    fault: isRecord(fault) ? shortTextOf(fault.message) : '',
  })
  return {
    apiVersion: 'v1',
    kind: 'Machine',
    metadata: {
      annotations: toAnnotations(server.metadata),
      creationTimestamp: timeOf(server.created),
      labels: {},
      lastModifiedTimestamp: timeOf(server.updated ?? server.created),
      name: shortTextOf(server.name),
      uid: shortTextOf(server.id),
    },
    spec: {
      imageId: isRecord(image) ? shortTextOf(image.id) : '',
      instanceType: isRecord(flavor) ? shortTextOf(flavor.original_name) : '',
      nics: [...cards.values()].slice(0, mostNics).map(({ privateIPs, publicIp }, index) => ({
        index,
        privateIPs: [...privateIPs].slice(0, mostAddresses),
        ...(publicIp === undefined ? {} : { publicIp }),
      })),
      ...(groups.length === 0 ? {} : { securityGroups: [...new Set(groups)].slice(0, mostGroups) }),
      ...(address === undefined ? {} : { subnetId: address.subnetId }),
      type: 'vendorke',
      ...(first === undefined ? {} : { vpcId: first.networkId }),
      ...(zone === '' ? {} : { zoneId: zone }),
    },
    // Nova does not know the health of the workload of a server.
    status: { health: { conditions, state: '' }, ...state },
  }
}

/** Cards by hardware address, in the order of Nova, which is the server's; then the ones that only Neutron knows. */
function cardsOf({ addresses }: JsonObject, ports: readonly Port[]): ReadonlyMap<string, Card> {
  const cards = new Map<string, Card>()
  const cardOf = (mac: string): Card => {
    const card = cards.get(mac) ?? { privateIPs: new Set<string>() }
    cards.set(mac, card)
    return card
  }
  for (const network of Object.values(isRecord(addresses) ? addresses : {}))
    for (const each of objectsIn(network)) {
      const card = cardOf(shortTextOf(each['OS-EXT-IPS-MAC:mac_addr']))
      if (each['OS-EXT-IPS:type'] === 'floating') card.publicIp ??= shortTextOf(each.addr)
      else card.privateIPs.add(shortTextOf(each.addr))
    }
  for (const port of ports) {
    const card = cardOf(port.mac)
    for (const { address } of port.addresses) card.privateIPs.add(address)
  }
  return cards
}

const timeOf = (value: unknown) => formatTime(parseTime(shortTextOf(value)) ?? 0)

function toAnnotations(metadata: unknown): Record<string, string> {
  const all = isRecord(metadata) ? Object.entries(metadata) : []
  const texts = all.slice(0, mostAnnotations).map(([name, text]) => [shortTextOf(name), shortTextOf(text)])
  // Not fromEntries alone: it gives an object with the keys 1000 and 2000 a list of as many places, JSON.parse a map.
  return JSON.parse(JSON.stringify(Object.fromEntries(texts))) as Record<string, string>
}

/**
 * The version of Nova's interface, of 2017 (Pike). 2.26 has filters by tags, 2.47 the flavor in the server itself, so that nothing else has to
 * be asked. What later ones add is not used: 2.69 tells of servers of a part of the cloud that is down, but not with a filter.
 */
const microversion = '2.47'
// Nova gives fewer where its max_limit is lower. With all the metadata of Nova's usual quota a server has 67 kB, and with escapes 200 kB.
const serversOfPage = 100
const longestServerPage = 8_388_608
const mostServers = 10_000

/** The servers of a pool. */
interface ServersRequest {
  readonly session: Pick<CloudSession, 'token' | 'compute'>
  readonly tags: readonly string[]
  /** Ports of all servers of the project, by server id. */
  readonly ports: ReadonlyMap<string, readonly Port[]>
}

/**
 * All servers of the project that have every tag, as machines.
 * @param hold is called with the memory that the machines take so far
 * @throws TokenRefused, what `hold` throws, and AppError CloudCredentialsRefused, CloudUnavailable
 */
async function readMachines(
  http: Pick<CloudHttp, 'ask'>,
  { session, tags, ports }: ServersRequest,
  { signal, hold }: MachineRead,
): Promise<readonly Machine[]> {
  const url = new URL(`${session.compute}/servers/detail`)
  url.searchParams.set('tags', tags.join(','))
  const list: PagedList = {
    member: 'servers',
    service: 'Nova',
    url,
    pageSize: serversOfPage,
    most: mostServers,
    longest: longestServerPage,
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

const noPorts: ReadonlyMap<string, readonly Port[]> = new Map()

/** The servers that an account sees and that have all the tags. */
export interface CloudPool {
  readonly credentials: CloudCredentials
  readonly tags: readonly string[]
}

/** The cloud of the configuration. */
interface OpenStack extends MachineProvider<CloudCredentials, CloudPool> {
  /** Closes the connections. */
  close(): void
}

/**
 * @returns undefined where the configuration names no cloud
 * @throws Error for a file of authorities that cannot be read
 */
export async function createOpenStack(
  settings: CloudsSettings['vendor'],
  clock: Pick<Clock, 'monotonic'>,
): Promise<OpenStack | undefined> {
  const { authUrl, caFile } = settings
  if (authUrl === undefined) return undefined
  const ca = caFile === undefined ? undefined : await readAuthorities('clouds.vendor.caFile', caFile)
  const http = createCloudHttp(ca === undefined ? {} : { ca })
  const keystone = createKeystone({ settings: { ...settings, authUrl }, http, clock })

  // One list after the other: a read that fails leaves no other one, and a page is made machines as it comes.
  async function read({ credentials, tags }: CloudPool, { signal, hold }: MachineRead) {
    const session = await keystone.session(credentials)
    const { network } = session
    let portBytes = 0
    const ports =
      network === undefined
        ? noPorts
        : await readPorts(
            http,
            { ...session, network },
            { signal, hold: (bytes) => hold((portBytes = bytes)) },
          )
    const pool = { session, tags, ports }
    return readMachines(http, pool, { signal, hold: (bytes) => hold(portBytes + bytes) })
  }

  return {
    validate: keystone.check,
    async machines(pool, wanted) {
      try {
        return await read(pool, wanted)
      } catch (error) {
        if (!(error instanceof TokenRefused)) throw error
      }
      keystone.forget(pool.credentials)
      return read(pool, wanted).catch((error: unknown) => {
        if (!(error instanceof TokenRefused)) throw error
        throw new AppError(
          platformErrors.CloudCredentialsRefused,
          'the cloud refuses the token that it has given',
        )
      })
    },
    close: http.close,
  }
}
