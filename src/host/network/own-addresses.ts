import { addressOfHex } from '../../base/address.ts'
import { ownAddresses, type OwnAddresses } from '../../base/client.ts'
import type { HostFiles } from '../files.ts'
import { parseLocalAddresses } from './routing-table.ts'

/** Every address of this host: those of pods' interfaces, link-local and temporary ones and links without carrier too. */
export interface OwnAddressReader {
  /** As they were read the last time. */
  current(): OwnAddresses
  /** Reads them anew. */
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

/** Digits of all addresses of /proc/net/if_inet6, whatever their scope and state (net/ipv6/addrconf.c, if6_seq_show). */
const parseAddresses = (text: string): readonly string[] => text.match(/^[0-9a-f]{32}(?= )/gm) ?? []
