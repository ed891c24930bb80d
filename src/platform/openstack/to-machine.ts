import { isRecord, type JsonObject } from '../../base/json.ts'
import { formatTime, parseTime } from '../../base/time.ts'
import type { Machine } from '../schemas/machines.ts'
import { objectsIn, shortTextOf } from './json.ts'
import type { Port } from './neutron.ts'
import { toMachineState } from './server-state.ts'

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
 * @param ports those of the server; empty where the cloud has no Neutron
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
    ...{ status: shortTextOf(server.status), task: shortTextOf(server['OS-EXT-STS:task_state']) },
    fault: isRecord(fault) ? shortTextOf(fault.message) : '',
  })
  return {
    ...{ apiVersion: 'v1', kind: 'Machine' },
    metadata: {
      annotations: toAnnotations(server.metadata),
      creationTimestamp: timeOf(server.created),
      labels: {},
      lastModifiedTimestamp: timeOf(server.updated ?? server.created),
      ...{ name: shortTextOf(server.name), uid: shortTextOf(server.id) },
    },
    spec: {
      imageId: isRecord(image) ? shortTextOf(image.id) : '',
      instanceType: isRecord(flavor) ? shortTextOf(flavor.original_name) : '',
      nics: [...cards.values()].slice(0, mostNics).map(({ privateIPs, publicIp }, index) => ({
        ...{ index, privateIPs: [...privateIPs].slice(0, mostAddresses) },
        ...(publicIp === undefined ? {} : { publicIp }),
      })),
      ...(groups.length === 0 ? {} : { securityGroups: [...new Set(groups)].slice(0, mostGroups) }),
      ...(address === undefined ? {} : { subnetId: address.subnetId }),
      type: 'vendorke',
      ...(first === undefined ? {} : { vpcId: first.networkId }),
      ...(zone === '' ? {} : { zoneId: zone }),
    },
    // Nova does not know whether what runs in a server is well.
    status: { health: { conditions, state: '' }, ...state },
  }
}

/** By hardware address, in the order in which Nova names them, which is that of the server; then those that only Neutron knows. */
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
