import { addressOfHex } from '../../base/address.ts'
import { ownAddresses, type OwnAddresses } from '../../base/client.ts'
import type { HostFiles } from '../files.ts'
import { parseLocalAddresses } from './routing-table.ts'

/** All addresses of this host, including those of pods' interfaces, of links without carrier, link-local and temporary ones. */
export interface OwnAddressReader {
  /** The addresses as last read. */
  current(): OwnAddresses
  /** Reads the addresses again. */
  refresh(): Promise<void>
}

/** Reads the addresses from /proc/net; none before the first `refresh`. */
export function createOwnAddresses(files: HostFiles): OwnAddressReader {
  let text = ''
  let current = ownAddresses([])
  return {
    current: () => current,
    async refresh() {
      const [ipv4 = '', ipv6 = ''] = await Promise.all(
        ['/proc/net/fib_trie', '/proc/net/if_inet6'].map((path) => files.text(path)),
      )
      const [local, digits] = [parseLocalAddresses(ipv4), parseAddresses(ipv6)]
      const next = [...local, ...digits].join()
      if (next === text) return
      text = next
      current = ownAddresses([...local, ...digits.map(addressOfHex)])
    },
  }
}

/** Digits of all addresses in /proc/net/if_inet6, of any scope and state (net/ipv6/addrconf.c, if6_seq_show). */
const parseAddresses = (text: string): readonly string[] => text.match(/^[0-9a-f]{32}(?= )/gm) ?? []
