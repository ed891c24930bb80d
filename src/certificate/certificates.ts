import { program } from '../base/program.ts'
import type { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { createLock } from '../base/lock.ts'
import { madeAt } from './certificate.ts'
import type { TlsMaterial } from '../system/tls-options.ts'
import { CertificateUnusable, readOwnPair, type CertificateFiles, type Pair } from './pair.ts'
import { ensureSelfSigned, type SelfSignedOptions } from './self-signed.ts'

export interface CertificatesOptions extends SelfSignedOptions {
  /** An administrator's own pair, used instead of the daemon's. */
  readonly own: CertificateFiles | undefined
  /** Whether the certificate stays when it lacks only an address: each new one has to reach all that pin or copy it. */
  readonly staysForAddresses?: boolean
  /** Called with the reason when an administrator's new pair cannot be used. */
  readonly onRefused?: (reason: string) => void
}

/** The certificate that the server uses, and its renewal. Calls of `ensure` and `reload` run one after the other. */
export interface Certificates {
  /** Whether the daemon made it; otherwise it is an administrator's. */
  readonly isSelfSigned: boolean
  /** @throws before the first `ensure` */
  material(): TlsMaterial
  /** SHA-256 of the certificate's DER as `AA:BB:…`. */
  fingerprint(): string
  notAfter(): Date
  /**
   * Ensures a valid certificate: at the start, then at intervals and when an address is added. For an address alone it
   * makes at most one certificate an hour, also across restarts, or none. Warns, at most once a day, from 30 days before the
   * expiry.
   * @returns whether the certificate has changed; pass it on with `server.setSecureContext(tlsOptions(material()))`
   * @throws CertificateUnusable when an administrator's pair is bad at the first call
   */
  ensure(): Promise<boolean>
  /**
   * Reads the files again, on `systemctl reload`, and makes a missing certificate at once. A bad administrator's pair
   * is logged, and the old one stays in use.
   */
  reload(): Promise<boolean>
}

const dayMs = 86_400_000
// Each router advertisement may add an address, and each new certificate is a cost for each client that pins or copies
// it.
const hourMs = 3_600_000
const warnDays = 30

/** Manages the daemon's own certificate, or an administrator's if one is configured. */
export function createCertificates(options: CertificatesOptions): Certificates {
  const { own, clock, log } = options
  let current: Pair | undefined
  let lastWarning = -Infinity
  /** Monotonic time from which a certificate may be replaced for an address; undefined before the first certificate. */
  let earliest: number | undefined
  let lastReported: number | undefined
  // A job, a new address and a reload may arrive at once: without this, the file could have one certificate and the
  // server use another.
  const inTurn = createLock()

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
      ? `put a new pair at ${own.certificateFile} and ${own.keyFile}, then: systemctl reload ${program.daemon}`
      : `make a new one with: systemctl restart ${program.daemon}`
    log.warn(
      { file, notAfter, days },
      `${days < 0 ? 'the certificate has expired' : 'the certificate expires soon'}; ${advice}`,
    )
  }

  // At most an hour by the monotonic clock, since the wall clock may be set meanwhile and may be wrong at the start.
  function earliestAfter(certificate: X509Certificate): number {
    const sinceMs = Math.max(clock.now(), options.buildDate) - madeAt(certificate)
    return clock.monotonic() + Math.min(hourMs, Math.max(0, hourMs - sinceMs))
  }

  function isEarly(certificate: X509Certificate): boolean {
    earliest ??= earliestAfter(certificate)
    if (options.staysForAddresses) {
      if (lastReported !== Infinity)
        log.info(
          `the certificate lacks an address of this host, and stays, since clients may have pinned it; a new one is made with: systemctl reload ${program.daemon}`,
        )
      lastReported = Infinity
      return true
    }
    const minutes = Math.ceil((earliest - clock.monotonic()) / 60_000)
    if (minutes <= 0) return false
    if (lastReported !== earliest)
      log.info(
        { minutes },
        `the certificate lacks a new address of this host; a new certificate is made after ${minutes} min, or at once with: systemctl reload ${program.daemon}`,
      )
    lastReported = earliest
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
        `the new certificate cannot be used; the old one stays in use; correct the cause given in reason, then: systemctl reload ${program.daemon}`,
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
