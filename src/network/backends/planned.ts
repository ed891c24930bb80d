import type { ChangeSet, NetworkState } from '../change-set.ts'
import type { LinkConfiguration } from '../links/configuration.ts'
import type { Link } from '../links/links.ts'
import type { Problem, WantedBond, WantedChange } from '../wanted.ts'

/** A planned change, that there is nothing to change, or what speaks against it. */
export type Planned =
  | { readonly kind: 'change'; readonly change: ChangeSet }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

type Expected = NetworkState['expected'][number]

/**
 * What a link has to have by its configuration: all its given addresses, of both families, since others on it count as foreign ones.
 * @returns nothing for a link without addresses
 */
export function expectedBy(
  link: string,
  configured: LinkConfiguration,
  withGateway: boolean,
): readonly Expected[] {
  const { type, addresses, gateway } = configured
  if (type === 'none' && addresses.length === 0) return []
  const asked = withGateway && type === 'static' && gateway !== undefined
  return [{ link, addresses, ...(asked ? { gateway } : {}) }]
}

/** What is there now has to be there again after a revert; nothing of a link whose cable is pulled. */
export const expectedNow = (link: Link | undefined): readonly Expected[] =>
  link?.owner.configured === undefined || !link.hasCarrier
    ? []
    : expectedBy(link.name, link.owner.configured, true)

/**
 * What cannot be planned for a backend of which only addresses, MTU and name servers are changed here: links that are made, taken away or made of
 * other members, or with other options.
 * @param called the backend for people
 */
export function onlyAddressing(
  wanted: WantedChange,
  link: Link | undefined,
  called: string,
): readonly Problem[] {
  const refuse = (field: string, what: string): Problem => ({
    field,
    reason: `${what} by this version of edgehostd on links of ${called}, of which it changes address, MTU and name servers; change the configuration of ${called} itself`,
  })
  if (wanted.kind === 'nic') return []
  if (wanted.kind === 'delete') return [refuse('name', `${wanted.name} is not removed`)]
  if (link === undefined) return [refuse('name', `${wanted.name} is not made`)]
  if (wanted.kind === 'vlan') return []
  const isSame = [...wanted.members].sort().join() === [...link.members].sort().join()
  return [
    ...(isSame
      ? []
      : [refuse('members', `are now ${link.members.join(' and ') || 'none'}, and are not changed`)]),
    ...(wanted.kind === 'bridge' && wanted.isStpOn !== undefined && wanted.isStpOn !== link.bridge?.isStpOn
      ? [refuse('stpEnabled', `is ${String(link.bridge?.isStpOn)}, and is not changed`)]
      : []),
    ...(wanted.kind === 'bond' ? changedOptions(wanted.options, link) : []).map(([field, now]) =>
      refuse(field, `is ${now}, and is not changed`),
    ),
  ]
}

/** Options of a bond that a request names with another value than they have, with that. */
function changedOptions(options: WantedBond, { bond = {} }: Link): readonly (readonly [string, string])[] {
  const pairs: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['mode', options.mode, bond.mode],
    [
      'miiMonitorSec',
      options.miiMonitorSec === undefined ? undefined : String(Number(options.miiMonitorSec)),
      bond.miimon === undefined ? undefined : String(bond.miimon / 1_000),
    ],
    ['lacpTransmitRate', options.lacpTransmitRate, bond.lacpRate],
    ['transmitHashPolicy', options.transmitHashPolicy, bond.hashPolicy],
  ]
  return pairs.flatMap(([field, value, now]) =>
    value === undefined || value === now ? [] : [[field, now ?? 'not set'] as const],
  )
}

/** VLANs of a link go down with it, and come up after it. */
export const vlansOn = (link: Link, links: readonly Link[]): readonly Link[] =>
  links.filter(({ vlan, owner }) => vlan?.parent === link.name && owner.backend === link.owner.backend)

/** For people: `eth1: address 192.0.2.9/24, gateway 192.0.2.1`. */
export function summaryOf(wanted: WantedChange): string {
  if (wanted.kind === 'delete') return `${wanted.name}: ${wanted.of} removed`
  const { addressing, name } = wanted
  const { type, address, gateway, mtu, nameservers } = addressing
  const parts = [
    ...(wanted.kind === 'bond' || wanted.kind === 'bridge'
      ? [`${wanted.kind} of ${wanted.members.join(' and ') || 'no members'}`]
      : []),
    ...(wanted.kind === 'vlan' ? [`VLAN ${wanted.id} on ${wanted.parent}`] : []),
    ...(wanted.kind === 'bond' && wanted.options.mode !== undefined ? [`mode ${wanted.options.mode}`] : []),
    ...(type === 'static' && address !== undefined ? [`address ${address}`] : []),
    ...(type === 'dhcp' ? ['address by DHCP'] : type === 'none' ? ['no address'] : []),
    ...(gateway === undefined ? [] : [`gateway ${gateway}`]),
    ...(mtu === undefined ? [] : [`MTU ${mtu}`]),
    ...(nameservers === undefined ? [] : [`name servers ${nameservers.join(' ') || 'none'}`]),
  ]
  return `${name}: ${parts.join(', ')}`
}
