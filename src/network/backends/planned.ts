import type { ChangeSet, ExpectedLink } from '../change-set.ts'
import { bareAddress } from '../../base/subnet.ts'
import { firstIpv4, type LinkConfiguration } from '../links/configuration.ts'
import type { Link } from '../links/links.ts'
import type { Addressing, Problem, WantedBond, WantedChange } from '../wanted.ts'

/** A planned change, that there is nothing to change, or what speaks against it. */
export type Planned =
  | { readonly kind: 'change'; readonly change: ChangeSet }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/**
 * What a link has to have by its configuration: all its given addresses, of both families, since others on it count as foreign ones.
 * @returns nothing for a link without addresses
 */
export function expectedBy(
  link: string,
  configured: LinkConfiguration,
  withGateway: boolean,
): readonly ExpectedLink[] {
  const { type, addresses, gateway } = configured
  if (type === 'none' && addresses.length === 0) return []
  const asked = withGateway && type === 'static' && gateway !== undefined
  const isLeased = type === 'dhcp' && addresses.length > 0
  return [{ link, addresses, ...(isLeased ? { isLeased } : {}), ...(asked ? { gateway } : {}) }]
}

/**
 * What a link of a change has to have after it, by its configuration then; nothing of a member. The gateway of the changed link has to answer, or
 * of a member of a bond or bridge that is deleted.
 */
export function expectedAfter(
  wanted: WantedChange,
  name: string,
  now: Link | undefined,
  configured: LinkConfiguration | undefined,
): readonly ExpectedLink[] {
  if (configured === undefined || configured.master !== undefined) return []
  const isChanged = name === wanted.name
  // One without a cable, a parent of a VLAN for example, has had no address either.
  if (!isChanged && now !== undefined && !now.hasCarrier) return []
  return expectedBy(name, configured, isChanged || (wanted.kind === 'delete' && wanted.of !== 'vlan'))
}

/** The present state, which has to be there again after a revert; nothing of a link whose cable is pulled. */
export const expectedNow = (link: Link | undefined): readonly ExpectedLink[] =>
  link?.owner.configured === undefined || !link.hasCarrier
    ? []
    : expectedBy(link.name, link.owner.configured, true)

/** Devices that are made anew, or are there in one of the states only. */
export function createDevices() {
  const before = new Set<string>()
  const after = new Set<string>()
  return {
    before,
    after,
    note(name: string, isBefore: boolean, isAfter: boolean): void {
      if (isBefore) before.add(name)
      if (isAfter) after.add(name)
    },
  }
}

/** Who comes to a bond or bridge, who goes, and who hands its address over to it; only a new one takes over an address. */
export function membersOf(
  find: (name: string) => Link | undefined,
  { name, members, addressing }: WantedChange & { kind: 'bond' | 'bridge' },
) {
  const existing = find(name)
  const all = members.flatMap((member) => find(member) ?? [])
  const joining = all.filter(({ master }) => master !== name)
  return {
    existing,
    all,
    joining,
    released: (existing?.members ?? []).filter((member) => !members.includes(member)),
    from: existing === undefined ? handingOver(joining, addressing) : undefined,
  }
}

/** A member that hands its address over to its new master: its own is the one that is wanted, or both ask for one. */
export function handingOver(members: readonly Link[], addressing: Addressing): Link | undefined {
  return members.find(({ owner: { configured } }) => {
    if (configured === undefined || configured.type === 'none') return false
    const own = firstIpv4(configured.addresses)
    return addressing.type === 'dhcp'
      ? configured.type === 'dhcp'
      : addressing.address !== undefined &&
          own !== undefined &&
          bareAddress(own) === bareAddress(addressing.address)
  })
}

/** The hardware address of a new bond or bridge: without the address of its member a switch or a DHCP server would take it for another host. */
export const macFor = (members: readonly Link[], from: Link | undefined): string | undefined => {
  const first = from ?? members[0]
  return first?.permanentMac ?? first?.mac
}

/** Options of a bond in the units of the kernel, by the names that ifupdown, NetworkManager and netplan share; absent ones are not named. */
export function bondOptionsOf(options: WantedBond, isNew: boolean) {
  const { mode, miiMonitorSec, lacpTransmitRate, transmitHashPolicy } = options
  const miimon = miiMonitorSec === undefined ? undefined : Math.round(Number(miiMonitorSec) * 1_000)
  return {
    // No switch has to be set up for it, and a pulled cable is noticed.
    mode: mode ?? (isNew ? 'active-backup' : undefined),
    miimon: miimon ?? (isNew ? 100 : undefined),
    lacpRate: lacpTransmitRate,
    hashPolicy: transmitHashPolicy,
  }
}

/** A link that is not ours is changed, and not deleted. */
export const notMadeHere = (name: string, by: string | undefined): Problem => ({
  field: 'name',
  reason: `${name} was not made by edgehostd${by === undefined ? '' : `, but by ${by}`}; remove it there, it can only be changed here`,
})

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
