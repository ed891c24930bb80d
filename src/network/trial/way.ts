import { isIPv4 } from 'node:net'
import { canonicalAddress, isLoopback } from '../../base/address.ts'
import { isInSubnet, parseSubnet } from '../../base/subnet.ts'
import type { ChangeSet } from '../change-set.ts'
import { bareAddress } from '../../base/subnet.ts'

// The way by which a request comes, and what that proves about the network. Pure.

/** The addresses between which a request comes. */
export interface CameBy {
  /** Whether it is root's own socket. */
  readonly isLocal: boolean
  /** The address of this host that the client connected to; undefined on root's own socket. */
  readonly hostAddress: string | undefined
  /** The address at the other end. */
  readonly clientAddress: string | undefined
}

/** The connection of a request. */
export interface Way extends CameBy {
  /** When it was accepted, on the monotonic clock, milliseconds; undefined where that is not known. */
  readonly acceptedAt: number | undefined
}

/** The addresses of a link of this host, in CIDR form. */
export interface LinkAddresses {
  readonly link: string
  readonly addresses: readonly string[]
}

/**
 * Whether a change touches the way by which it was asked for: the link that has the address of the request, or a gateway, by which the replies
 * may go where the client is not a neighbour on another link. Where nothing is known, it does.
 */
export function touchesWay(
  change: Pick<ChangeSet, 'links' | 'before' | 'after'>,
  way: CameBy,
  links: readonly LinkAddresses[],
): boolean {
  if (way.isLocal) return false
  const own = canonicalAddress(way.hostAddress ?? '')
  if (isLoopback(own)) return false
  const link = links.find(({ addresses }) => addresses.some((each) => addressOf(each) === own))
  if (link === undefined || change.links.includes(link.link)) return true
  if (![...change.before.expected, ...change.after.expected].some(({ gateway }) => gateway !== undefined))
    return false
  const client = canonicalAddress(way.clientAddress ?? '')
  return !link.addresses.some((each) => isNeighbour(client, each))
}

/**
 * Why a request may not confirm a change; undefined where it may.
 * @param appliedAt when the apply was seen to have ended, monotonic milliseconds
 * @param own the addresses that this host has now
 */
export function whyUnproven(
  { needsNewWay, appliedAt }: { readonly needsNewWay: boolean; readonly appliedAt: number | undefined },
  way: Way,
  own: readonly string[],
): string | undefined {
  if (way.isLocal) return undefined
  if (appliedAt === undefined || way.acceptedAt === undefined || way.acceptedAt <= appliedAt)
    return 'the connection of the request was open before the change was applied; connect again'
  if (!needsNewWay) return undefined
  const address = canonicalAddress(way.hostAddress ?? '')
  if (isLoopback(address) || !own.map(canonicalAddress).includes(address))
    return `the request came to ${address || 'an unknown address'}, which no other host can reach now; connect to an address that this host has in the trial`
  return undefined
}

const addressOf = (cidr: string) => canonicalAddress(bareAddress(cidr))

/** Whether a client is in the subnet of an address, IPv4 only: of IPv6 neighbours nothing is known by their address. */
function isNeighbour(client: string, cidr: string): boolean {
  const subnet = parseSubnet(cidr)
  return isIPv4(client) && subnet !== undefined && isInSubnet(client, subnet)
}
