import { X509Certificate } from 'node:crypto'
import { layBridge } from './bridge.ts'
import { bootEdgehostd, type Edgehostd } from './edgehostd.ts'
import { eventually } from './eventually.ts'
import type { Ended } from './process.ts'

/** A host, and another one from which its operator works. */
export interface CtlPair {
  readonly host: Edgehostd
  readonly other: Edgehostd
  /** Address of the host for the other one. */
  readonly address: string
  /** edgehostctl on the host, as root. */
  here(...args: readonly string[]): Promise<Ended>
  /** edgehostctl on the other host, for the first one. */
  there(...args: readonly string[]): Promise<Ended>
  /** Fingerprint of the present certificate of the host. */
  fingerprint(): Promise<string>
  unplug(): Promise<void>
}

/** Boots both, connected by one cable. */
export async function bootCtlPair(): Promise<CtlPair> {
  const host = await bootEdgehostd({ lower: 'machine', wire: false })
  const other = await bootEdgehostd({ lower: 'machine', wire: false })
  const bridge = await layBridge([host.leader, other.leader])
  const address = bridge.addresses[0]!
  const here = (...args: readonly string[]) => host.run(['edgehostctl', ...args])
  const fingerprint = async () =>
    JSON.parse((await here('-o', 'json', 'status')).stdout).service.certificate.fingerprint as string
  // The cable gives the host another address, and with it another certificate.
  await eventually(async () => {
    const certificate = new X509Certificate(
      await host.output(['cat', '/var/lib/edgehostd/tls/certificate.pem']),
    )
    if (certificate.checkIP(address) === undefined || (await fingerprint()) !== certificate.fingerprint256)
      throw new Error(`the certificate in use does not name ${address}`)
  })
  return {
    host,
    other,
    address,
    here,
    there: (...args) => other.run(['edgehostctl', '--host', address, ...args]),
    fingerprint,
    async unplug() {
      await bridge.cut()
      await host.unplug()
      await other.unplug()
    },
  }
}
