export type Backend = 'networkd' | 'netplan' | 'networkmanager' | 'ifupdown'

/** A file of a state: text, a link to /dev/null (a mask), or nothing at the path. */
export interface StateFile {
  readonly path: string
  readonly mode: number
  readonly content: { readonly text: string } | 'masked' | 'absent'
}

/** One of the two states between which a trial switches. */
export interface NetworkState {
  /** Below /run, except for ifupdown (a flattened file for `ifup --interfaces=`). */
  readonly files: readonly StateFile[]
  /** Virtual devices that exist in this state and not in the other one, masters last. */
  readonly devices: readonly string[]
  /** Links or connections to bring up after the files are loaded, in this order (NetworkManager, ifupdown). */
  readonly up: readonly string[]
  /** What has to be there before the switch counts as done. */
  readonly expected: readonly ExpectedLink[]
}

/** What a link has to have. */
export interface ExpectedLink {
  readonly link: string
  /** In CIDR form; without any: one by DHCP. */
  readonly addresses: readonly string[]
  /** One of IPv4 by DHCP beside them. */
  readonly isLeased?: boolean
  readonly gateway?: string
}

/** Whether it has an address that is not known before. */
export const isByDhcp = ({ addresses, isLeased = false }: ExpectedLink): boolean =>
  isLeased || addresses.length === 0

/** A change of the network that can be tried, kept and taken back. */
export interface ChangeSet {
  readonly backend: Backend
  /** Links whose configuration the change touches, members included. */
  readonly links: readonly string[]
  readonly before: NetworkState
  readonly after: NetworkState
  /** Where the change is kept, written after the commit: absolute paths. */
  readonly kept: readonly StateFile[]
  /** Addresses of IPv4 that another device is asked for in the trial: the host is in no link of their networks before. */
  readonly asked?: readonly { readonly link: string; readonly address: string }[]
  /** For people: 'eth1: address 192.0.2.9/24'. */
  readonly summary: string
}
