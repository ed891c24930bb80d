import { canonicalAddress, isLinkLocal, isLoopback, localAddress, slash64Of } from './address.ts'

/** What counts as one client. */
export interface Client {
  /**
   * The name that limits per client apply to: an IPv4 address, an IPv6 address on a link of this host, the /64 of an
   * IPv6 address elsewhere (every host may choose freely among the addresses of its /64), or this host with all its
   * addresses.
   */
  readonly name: string
  /**
   * The on-link /64 of the client, in which a neighbour may take any address. All clients of this network together have
   * a limit of their own: `networkFactor` times the limit of one client.
   */
  readonly network: string | undefined
}

/** The limit of all clients of one network together, as a multiple of the limit of one client. */
export const networkFactor = 8

/** Finds the client behind an address, using the current addresses of this host. */
export type ClientOf = (address: string) => Client

/** This host: a local user may use any address of 127.0.0.0/8 and any address of the host. */
export const hostClient: Client = { name: 'host', network: undefined }

/** Whether a client is on this host: it uses the local socket or one of the host's addresses. */
export const isThisHost = ({ name }: Client): boolean => name === hostClient.name || name === localAddress

// RFC 4291, 2.5.6: a neighbour may take any link-local address, also those outside fe80::/64.
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

/** Finds clients where the addresses of this host are unknown or do not matter. */
export const clientFromAnywhere: ClientOf = (address) => clientOf(address, nowhere)
const nowhere = ownAddresses([])

/**
 * Each IPv4 address and each IPv6 /64 is a client, also of the loopback and of this machine: for the platform, whose clients are
 * elsewhere.
 */
export const clientOfAddress: ClientOf = (address) => {
  const name = canonicalAddress(address)
  return { name: slash64Of(name) ?? name, network: undefined }
}

/** The client behind an address. Text that is not an address becomes the name of the client. */
export function clientOf(address: string, own: OwnAddresses): Client {
  const name = canonicalAddress(address)
  if (name !== localAddress && (isLoopback(name) || own.addresses.has(name))) return hostClient
  const slash64 = slash64Of(name)
  if (slash64 === undefined) return { name, network: undefined }
  if (isLinkLocal(name)) return { name, network: linkLocalNetwork }
  return own.networks.has(slash64) ? { name, network: slash64 } : { name: slash64, network: undefined }
}
