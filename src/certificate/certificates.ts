import type { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { serialize } from '../base/serialize.ts'
import { madeAt } from './certificate.ts'
import type { TlsMaterial } from '../system/tls-options.ts'
import { CertificateUnusable, readOwnPair, type CertificateFiles, type Pair } from './pair.ts'
import { ensureSelfSigned, type SelfSignedOptions } from './self-signed.ts'

export interface CertificatesOptions extends SelfSignedOptions {
  /** An administrator's own pair, which then takes the place of the daemon's. */
  readonly own: CertificateFiles | undefined
  /** Told why an administrator's new pair cannot be used. */
  readonly onRefused?: (reason: string) => void
}

/** The certificate that the server shows, and its life. Calls of `ensure` and `reload` wait for each other. */
export interface Certificates {
  /** Whether the daemon makes it; else an administrator brought it. */
  readonly isSelfSigned: boolean
  /** @throws before the first `ensure` */
  material(): TlsMaterial
  /** SHA-256 of the certificate's DER as `AA:BB:…`. */
  fingerprint(): string
  notAfter(): Date
  /**
   * Makes sure that there is a certificate that fits: at the start, then from time to time and when an address came.
   * For an address alone it makes at most one an hour, over restarts too. Warns, at most once a day, from 30 days before the expiry.
   * @returns whether the certificate is another one now, for `server.setSecureContext(tlsOptions(material()))`
   * @throws CertificateUnusable when an administrator's pair is bad at the first call
   */
  ensure(): Promise<boolean>
  /** Reads the files again, on `systemctl reload`, and makes what is lacking at once; a bad administrator's pair is logged and the old one stays. */
  reload(): Promise<boolean>
}

const dayMs = 86_400_000
// Each router advertisement may bring an address, and each new certificate costs each client that pins or copies it.
const hourMs = 3_600_000
const warnDays = 30

/** The daemon's own certificate, or an administrator's where one is configured. */
export function createCertificates(options: CertificatesOptions): Certificates {
  const { own, clock, log } = options
  let current: Pair | undefined
  let lastWarning = -Infinity
  /** Monotonic: from then on a certificate may be replaced for an address; undefined before the first is known. */
  let earliest: number | undefined
  let lastTold: number | undefined
  // A job, a new address and a reload may come at once: the file would hold one certificate, the server show another.
  const inTurn = serialize()

  function present(): Pair {
    if (!current) throw new Error('no certificate yet: ensure() has not ended')
    return current
  }

  function use(pair: Pair): boolean {
    const changed = current?.certificate.fingerprint256 !== pair.certificate.fingerprint256
    current = pair
    if (changed) {
      lastWarning = -Infinity
      earliest = earliestAfter(pair.certificate)
    }
    warnOfExpiry(pair.certificate)
    return changed
  }

  function warnOfExpiry(certificate: X509Certificate): void {
    const notAfter = certificate.validToDate
    const days = Math.floor((notAfter.getTime() - clock.now()) / dayMs)
    if (days >= warnDays || clock.monotonic() - lastWarning < dayMs) return
    lastWarning = clock.monotonic()
    const file = own?.certificateFile ?? join(options.directory, 'certificate.pem')
    const advice = own
      ? `put a new pair at ${own.certificateFile} and ${own.keyFile}, then: systemctl reload edgehostd`
      : 'have a new one made with: systemctl restart edgehostd'
    log.warn(
      { file, notAfter, days },
      `${days < 0 ? 'the certificate has expired' : 'the certificate expires soon'}; ${advice}`,
    )
  }

  // An hour by the monotonic clock at most: the other one may be set meanwhile, and may be wrong at the start.
  function earliestAfter(certificate: X509Certificate): number {
    const sinceMs = Math.max(clock.now(), options.buildDate) - madeAt(certificate)
    return clock.monotonic() + Math.min(hourMs, Math.max(0, hourMs - sinceMs))
  }

  function isEarly(certificate: X509Certificate): boolean {
    earliest ??= earliestAfter(certificate)
    const minutes = Math.ceil((earliest - clock.monotonic()) / 60_000)
    if (minutes <= 0) return false
    if (lastTold !== earliest)
      log.info(
        { minutes },
        'the certificate lacks a new address of this host; another one is made after these minutes, or at once by: systemctl reload edgehostd',
      )
    lastTold = earliest
    return true
  }

  async function ensure(isAsked = false): Promise<boolean> {
    if (!own) return use(await ensureSelfSigned(options, current?.material, isAsked ? () => false : isEarly))
    return use(current ?? (await readOwnPair(own)))
  }

  async function reload(): Promise<boolean> {
    if (!own) return ensure(true)
    try {
      return use(await readOwnPair(own))
    } catch (error) {
      if (!(error instanceof CertificateUnusable) || !current) throw error
      log.error(
        { reason: error.message },
        'the new certificate cannot be used; the old one stays; mend it as reason says, then: systemctl reload edgehostd',
      )
      options.onRefused?.(error.message)
      return false
    }
  }

  return {
    isSelfSigned: own === undefined,
    material: () => present().material,
    fingerprint: () => present().certificate.fingerprint256,
    notAfter: () => present().certificate.validToDate,
    ensure: () => inTurn(() => ensure()),
    reload: () => inTurn(reload),
  }
}
