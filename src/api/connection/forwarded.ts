import { isIPv4 } from 'node:net'
import { canonicalAddress, isAddress, isLoopback } from '../../base/address.ts'

// More proxies than any site has in a row.
const mostHops = 16
// `[2001:db8:…]:65535`; an IPv6 address has at most 45 characters.
const longestValue = 64

/**
 * The client behind a trusted proxy, from the field `X-Forwarded-For`, whose addresses each proxy appends to at the right. The right-most
 * address that is no trusted proxy counts; what is left of it may be the invention of a client and is not read. A loopback address is one of
 * the machine that wrote it, so that no client is ever taken for one on this machine.
 * @param proxy address of the connection, in canonical form
 * @param field all values of the field, as Node joins them
 * @returns an address in canonical form; undefined where the field is malformed, since nothing of such a field can be trusted
 */
export function forwardedClient(
  field: string,
  proxy: string,
  isTrusted: (address: string) => boolean,
): string | undefined {
  let client = proxy
  let end = field.length
  for (let hop = 0; hop < mostHops && end >= 0; hop += 1) {
    const comma = end === 0 ? -1 : field.lastIndexOf(',', end - 1)
    const address = addressOf(field.slice(comma + 1, end))
    if (address === undefined) return undefined
    if (!isLoopback(address)) client = address
    if (!isTrusted(address)) return client
    end = comma
  }
  // Every address is that of a trusted proxy: the request began at one.
  return end >= 0 ? undefined : client
}

/** Some proxies append the port of the client: `192.0.2.7:4711`, `[2001:db8::7]:4711`. */
function addressOf(value: string): string | undefined {
  if (value.length > longestValue) return undefined
  const text = value.trim()
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? []
  const written = bracketed ?? plain ?? text
  // Within brackets there is only IPv6.
  if (!isAddress(written) || (bracketed !== undefined && isIPv4(written))) return undefined
  return canonicalAddress(written)
}
