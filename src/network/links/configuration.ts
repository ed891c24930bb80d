import { isIPv4 } from 'node:net'
import type { BondOptions } from './kernel.ts'

/** A file by its path. */
export interface TextFile {
  readonly path: string
  readonly text: string
}

/** What is configured for a link, whatever the backend; absent fields are left to the backend. */
export interface LinkConfiguration {
  /** Files that it comes from, in the order in which they count. */
  readonly files: readonly string[]
  /** IPv4: by DHCP, by a given address, or none. */
  readonly type: 'dhcp' | 'static' | 'none'
  /** Given addresses of both families in CIDR form, as they stand in the files. */
  readonly addresses: readonly string[]
  /** IPv4. */
  readonly gateway?: string
  readonly gateway6?: string
  /** Of the default routes. */
  readonly metric?: number
  readonly mtu?: number
  readonly nameservers: readonly string[]
  readonly searchDomains: readonly string[]
  /** Given routes but the default ones. */
  readonly routes: readonly ConfiguredRoute[]
  /** Number of routing policy rules, ip-rule(8). */
  readonly rules: number
  readonly master?: string
  /** VLANs that are made on this link. */
  readonly vlans: readonly string[]
}

export interface ConfiguredRoute {
  readonly destination: string
  readonly gateway?: string
  readonly metric?: number
}

/** What is configured for a device that has no hardware of its own. */
export interface DeviceConfiguration {
  readonly file: string
  readonly bond?: BondOptions
  /** Absent where the file says nothing of it. */
  readonly isStpOn?: boolean
  readonly vlanId?: number
}

/** The text of an address without the length of its prefix. */
export const bareAddress = (cidr: string): string => cidr.split('/')[0] ?? cidr

/** Whether an address, with or without the length of its prefix, is one of IPv4. */
export const isOfIpv4 = (cidr: string): boolean => isIPv4(bareAddress(cidr))

/** The address that the API shows and changes as the one of the link: the first of IPv4. */
export const firstIpv4 = (addresses: readonly string[]): string | undefined => addresses.find(isOfIpv4)

/** A mask as the API spells it: 24 is 255.255.255.0. */
export function dottedMask(prefixLength: number): string {
  return [0, 1, 2, 3]
    .map((byte) => 256 - 2 ** (8 - Math.min(8, Math.max(0, prefixLength - 8 * byte))))
    .join('.')
}

/** The length of the prefix of a dotted mask; undefined for text that is no mask, as 255.0.255.0. */
export function prefixLengthOfMask(mask: string): number | undefined {
  const length = Array.from({ length: 33 }, (_, index) => index).find((each) => dottedMask(each) === mask)
  return length === 0 ? undefined : length
}
