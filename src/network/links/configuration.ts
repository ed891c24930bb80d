import { isOfIpv4 } from '../../base/subnet.ts'
import type { BondOptions } from './kernel.ts'

/** A file by its path. */
export interface TextFile {
  readonly path: string
  readonly text: string
}

/** Configuration of a link, whatever the backend; absent fields are left to the backend. */
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

/** Configuration of a device that has no hardware of its own. */
export interface DeviceConfiguration {
  readonly file: string
  readonly bond?: BondOptions
  /** Absent where the file says nothing of it. */
  readonly isStpOn?: boolean
  readonly vlanId?: number
}

/** The address that the API shows and changes as the one of the link: the first of IPv4. */
export const firstIpv4 = (addresses: readonly string[]): string | undefined => addresses.find(isOfIpv4)
