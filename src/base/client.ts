import { canonicalAddress, isLinkLocal, isLoopback, localAddress, slash64Of } from './address.ts'

/** Who counts as one client. */
export interface Client {
  /**
   * Has the limits of one client: an IPv4 address, an IPv6 address on a link of this host, the /64 of one elsewhere
   * (every host may choose freely among the addresses of its /64), or this host with all its addresses.
   */
  readonly name: string
  /**
   * The on-link /64 around the client, in which a neighbour may take any address: beside the limits of each of its
   * clients it has `networkFactor` times as much for all of them.
   */
  readonly network: string | undefined
}

/** What the clients of one network may do together, as a multiple of what each may. */
export const networkFactor = 8

/** Tells the client behind an address, as the addresses of this host are now. */
export type ClientOf = (address: string) => Client

/** This host: a local user may take any address of 127.0.0.0/8 and each that the host has. */
export const hostClient: Client = { name: 'host', network: undefined }

/** Whether a client is on this host: of its local socket, or with one of its addresses. */
export const isThisHost = ({ name }: Client): boolean => name === hostClient.name || name === localAddress

// RFC 4291, 2.5.6: a neighbour may take any of them, also those beyond fe80::/64.
const linkLocalNetwork = 'fe80::/10'

/** The addresses of this host, and the /64s they are in. */
export interface OwnAddresses {
  readonly addresses: ReadonlySet<string>
  readonly networks: ReadonlySet<string>
}

/** @param addresses every address of every interface */
export function ownAddresses(addresses: readonly string[]): OwnAddresses {
  const all = addresses.map(canonicalAddress)
  const global = all.filter((each) => !isLoopback(each) && !isLinkLocal(each))
  return {
    addresses: new Set(all),
    networks: new Set(global.map(slash64Of).filter((each) => each !== undefined)),
  }
}

/** The same where the addresses of this host are not known, or do not matter. */
export const clientFromAnywhere: ClientOf = (address) => clientOf(address, nowhere)
const nowhere = ownAddresses([])

/** The client behind an address. Text that is no address is a client of that name. */
export function clientOf(address: string, own: OwnAddresses): Client {
  const name = canonicalAddress(address)
  if (name !== localAddress && (isLoopback(name) || own.addresses.has(name))) return hostClient
  const slash64 = slash64Of(name)
  if (slash64 === undefined) return { name, network: undefined }
  if (isLinkLocal(name)) return { name, network: linkLocalNetwork }
  return own.networks.has(slash64) ? { name, network: slash64 } : { name: slash64, network: undefined }
}
