import { isIPv4 } from 'node:net'
import { reachableBy } from '../base/address.ts'

/** What the console of a host says about the daemon. */
export interface ConsoleFacts {
  /** Where it listens. */
  readonly bound: { readonly address: string; readonly port: number }
  /** Addresses of the host under which clients may reach it. */
  readonly addresses: readonly string[]
  /** SHA-256 of the certificate as `AA:BB:…`. */
  readonly fingerprint: string
}

// A console has 25 lines; operators of hosts with more addresses know them.
const mostShown = 4

/**
 * Two lines: where to find the API, and the fingerprint that a client is to see there. Addresses as they are and not by
 * the escapes of agetty(8), which know one address only, be it that of a container's bridge.
 */
export function consoleText({ bound: { address, port }, addresses, fingerprint }: ConsoleFacts): string {
  const urls = reachableBy(address, addresses)
    .toSorted((one, other) => Number(isIPv4(other)) - Number(isIPv4(one)))
    .slice(0, mostShown)
    .map((each) => `https://${isIPv4(each) ? each : `[${each}]`}:${port}`)
  const where = urls.join(' ') || `no network address yet, port ${port}`
  return `edgehostd  ${where}\nSHA-256    ${fingerprint}\n`
}
