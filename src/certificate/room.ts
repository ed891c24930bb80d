import { program } from '../base/program.ts'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FiguresOf, Ground, Room } from '../root/room.ts'
import type { about } from './about.ts'
import { createCertificates, type Certificates } from './certificates.ts'
import type { CertificateFiles } from './pair.ts'

/** Parts of the ground that the certificate needs; `api.tls` has an administrator's own pair, both files or neither. */
type CertificateGround = Pick<
  Ground<{ readonly api: { readonly tls: Partial<CertificateFiles> } }>,
  'config' | 'stateDirectory' | 'record' | 'clock' | 'log'
>

interface CertificateRoomOptions {
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
  /** Makes no new certificate while this is so: addresses of a change of the network may be gone in a minute; the default is no. */
  readonly isHeld?: () => boolean
  /** The resource in the newest record of a kind and action. */
  readonly lastResource: (kind: string, action: 'create') => string | undefined
}

/** The key pair of this host and its renewal. */
export interface CertificateRoom
  extends Room, Pick<Certificates, 'material' | 'fingerprint' | 'notAfter' | 'isSelfSigned'> {
  /** Registers a listener, called when new connections must use another certificate. */
  onChange(listener: () => void): void
  /** Makes a new certificate where one is due. */
  renew(): void
  /** Removes the key pair that the daemon has made; the next start makes another. */
  forget(): Promise<void>
}

/**
 * Creates the room; it has a certificate when the promise resolves.
 * @throws CertificateUnusable when an administrator's pair is bad
 */
export async function createCertificateRoom(
  ground: CertificateGround,
  own: CertificateRoomOptions,
): Promise<CertificateRoom> {
  const { config, stateDirectory, record, clock, log } = ground
  const { names, lastResource } = own
  const { certificateFile, keyFile } = config.api.tls
  const listeners: (() => void)[] = []
  const folder = join(stateDirectory, 'tls')
  const certificates = createCertificates({
    directory: folder,
    staysForAddresses: own.staysForAddresses ?? false,
    isHeld: own.isHeld,
    own: certificateFile !== undefined && keyFile !== undefined ? { certificateFile, keyFile } : undefined,
    buildDate: own.buildDate,
    clock,
    log,
    names: () => ({ hostName: names.hostName(), addresses: names.addresses() }),
    onNewKey: () => record({ action: 'create', kind: 'key', message: 'Make a private key' }),
    onRefused: (reason) =>
      record({
        action: 'action',
        kind: 'certificate',
        outcome: 'failed',
        message: `Keep the old certificate, the new one cannot be used: ${reason}`,
      }),
  })
  await certificates.ensure()
  recordUse()

  function recordUse(): void {
    const fingerprint = certificates.fingerprint()
    if (lastResource('certificate', 'create') === fingerprint) return
    const notAfter = new Date(certificates.notAfter()).toISOString()
    record({
      action: 'create',
      kind: 'certificate',
      resourceUid: fingerprint,
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
  const renewSoon = () => {
    renew().catch((error: unknown) =>
      log.error(
        { err: error },
        `the certificate could not be renewed; try again with: systemctl reload ${program.daemon}`,
      ),
    )
  }
  names.onNamesChange(renewSoon)

  return {
    material: certificates.material,
    fingerprint: certificates.fingerprint,
    notAfter: certificates.notAfter,
    isSelfSigned: certificates.isSelfSigned,
    onChange: (listener) => void listeners.push(listener),
    renew: renewSoon,
    forget: () => rm(folder, { recursive: true, force: true }),
    jobs: [{ name: 'certificate', schedule: '47 7 * * * *', stuckAfterMs: 300_000, run: renew }],
    figures: (): FiguresOf<typeof about.families> => ({
      edgehostd_certificate_expiry_timestamp_seconds: certificates.notAfter().getTime() / 1_000,
    }),
    reload: async () => use(await certificates.reload()),
  }
}
