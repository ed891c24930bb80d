import { statfs } from 'node:fs/promises'
import type { Clock } from '../system/clock.ts'
import type { Certificates } from '../certificate/certificates.ts'
import type { ServiceStatus } from './schemas.ts'

/** What both programs report of themselves. */
export type ProgramStatus = Omit<ServiceStatus, 'mode'>

export interface ServiceStatusOptions extends Pick<ServiceStatus, 'version' | 'port'> {
  readonly stateDirectory: string
  readonly clock: Clock
  readonly addresses: () => readonly string[]
  readonly certificates: Pick<Certificates, 'fingerprint' | 'notAfter' | 'isSelfSigned'>
  /** Checks of readiness and liveness that fail. */
  readonly failing: () => string[]
  /** Other checks that fail. */
  readonly notes: () => string[]
  /** Audit records that only the journal has. */
  readonly unwrittenAudits: () => number
}

/** Reports the state of the daemon; the daemon counts as started when this function is called. */
export function createServiceStatus(options: ServiceStatusOptions): () => Promise<ProgramStatus> {
  const { version, port, stateDirectory, clock, certificates } = options
  const startedAt = clock.monotonic()
  return async () => {
    const { bsize, bavail, blocks } = await statfs(stateDirectory)
    const upMs = clock.monotonic() - startedAt
    return {
      version,
      startTimestamp: new Date(clock.now() - upMs).toISOString(),
      uptimeSeconds: Math.floor(upMs / 1_000),
      addresses: [...options.addresses()],
      port,
      certificate: {
        fingerprint: certificates.fingerprint(),
        expirationTimestamp: certificates.notAfter().toISOString(),
        isOwn: certificates.isSelfSigned,
      },
      failing: options.failing(),
      notes: options.notes(),
      state: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
      unwrittenAudits: options.unwrittenAudits(),
    }
  }
}
