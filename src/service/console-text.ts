import { isIPv4 } from 'node:net'
import { reachableBy } from '../base/address.ts'

/** The facts that the console of a host shows about the daemon. */
export interface ConsoleFacts {
  /** Address and port on which the daemon listens. */
  readonly bound: { readonly address: string; readonly port: number }
  /** Addresses of the host under which clients may reach it. */
  readonly addresses: readonly string[]
  /** SHA-256 of the certificate as `AA:BB:…`. */
  readonly fingerprint: string
  /** Where the platform is and how it is connected; undefined in airgap mode. */
  readonly platform?: string | undefined
}

// A console has 25 lines, and one URL that can be reached is enough.
const mostShown = 4

/**
 * The URLs of the API, the fingerprint that a client should see there, and in connected mode the platform. The text has the addresses themselves
 * rather than escapes of agetty(8): an escape gives one address only, which may be that of a container's bridge.
 */
export function consoleText({ bound, addresses, fingerprint, platform }: ConsoleFacts): string {
  const { address, port } = bound
  const urls = reachableBy(address, addresses)
    .toSorted((one, other) => Number(isIPv4(other)) - Number(isIPv4(one)))
    .slice(0, mostShown)
    .map((each) => `https://${isIPv4(each) ? each : `[${each}]`}:${port}`)
  const where = urls.join(' ') || `no network address yet, port ${port}`
  return `edgehostd  ${where}\nSHA-256    ${fingerprint}\n${platform === undefined ? '' : `Platform   ${platform}\n`}`
}
