import { program } from '../base/program.ts'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { FiguresOf, Room } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { about } from './about.ts'
import { createCertificates, type Certificates } from './certificates.ts'
import type { CertificateFiles } from './pair.ts'

export interface CertificateRoomOptions {
  /** An administrator's own pair; both or neither. */
  readonly settings: Partial<CertificateFiles>
  /** The folder of the daemon's own pair. */
  readonly directory: string
  /** See `CertificatesOptions`. */
  readonly staysForAddresses?: boolean
  /** Milliseconds since 1970. */
  readonly buildDate: number
  /** The names and addresses of this host for the certificate. */
  readonly names: {
    hostName(): string
    addresses(): readonly string[]
    onNamesChange(listener: () => void): unknown
  }
  readonly record: (entry: SystemEntry) => void
  /** The resource in the newest record of a kind and action. */
  readonly lastResource: (kind: string, action: 'create') => string | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** The key pair of this host and its renewal. */
export interface CertificateRoom
  extends Room, Pick<Certificates, 'material' | 'fingerprint' | 'notAfter' | 'isSelfSigned'> {
  /** Registers a listener, called when new connections must use another certificate. */
  onChange(listener: () => void): void
}

/**
 * Creates the room; it has a certificate when the promise resolves.
 * @throws CertificateUnusable when an administrator's pair is bad
 */
export async function createCertificateRoom(options: CertificateRoomOptions): Promise<CertificateRoom> {
  const { settings, names, record, clock, log } = options
  const { certificateFile, keyFile } = settings
  const listeners: (() => void)[] = []
  const certificates = createCertificates({
    directory: options.directory,
    staysForAddresses: options.staysForAddresses ?? false,
    own: certificateFile !== undefined && keyFile !== undefined ? { certificateFile, keyFile } : undefined,
    buildDate: options.buildDate,
    clock,
    log,
    names: () => ({ hostName: names.hostName(), addresses: names.addresses() }),
    onNewKey: () => record({ action: 'create', kind: 'key', message: 'Make a private key' }),
    onRefused: (reason) =>
      record({
        ...{ action: 'action', kind: 'certificate', outcome: 'failed' },
        message: `Keep the old certificate, the new one cannot be used: ${reason}`,
      }),
  })
  await certificates.ensure()
  recordUse()

  function recordUse(): void {
    const fingerprint = certificates.fingerprint()
    if (options.lastResource('certificate', 'create') === fingerprint) return
    const notAfter = new Date(certificates.notAfter()).toISOString()
    record({
      ...{ action: 'create', kind: 'certificate', resourceUid: fingerprint },
      message: `Use a new certificate, valid until ${notAfter}`,
    })
  }

  function use(isNew: boolean): void {
    if (!isNew) return
    recordUse()
    for (const tell of listeners) tell()
    log.info(
      { fingerprint: certificates.fingerprint(), notAfter: certificates.notAfter() },
      'certificate in use',
    )
  }

  const renew = async () => use(await certificates.ensure())
  names.onNamesChange(() => {
    renew().catch((error: unknown) =>
      log.error(
        { err: error },
        `the certificate could not be renewed; try again with: systemctl reload ${program.daemon}`,
      ),
    )
  })

  return {
    material: certificates.material,
    fingerprint: certificates.fingerprint,
    notAfter: certificates.notAfter,
    isSelfSigned: certificates.isSelfSigned,
    onChange: (listener) => void listeners.push(listener),
    jobs: [{ name: 'certificate', schedule: '47 7 * * * *', stuckAfterMs: 300_000, run: renew }],
    figures: (): FiguresOf<typeof about.families> => ({
      edgehostd_certificate_expiry_timestamp_seconds: certificates.notAfter().getTime() / 1_000,
    }),
    reload: async () => use(await certificates.reload()),
  }
}
