import { statfs } from 'node:fs/promises'
import type { Clock } from '../system/clock.ts'
import type { Certificates } from '../certificate/certificates.ts'
import type { AttentionList, ServiceStatus } from './schemas.ts'
import { program } from '../base/program.ts'
import type { FastifyInstance } from 'fastify'
import { reachableBy } from '../base/address.ts'
import type { Mode } from '../base/role.ts'
import type { CertificateRoom } from '../certificate/room.ts'
import type { Check, Ground, OpenPort, Room } from '../root/room.ts'
import { createConsole, consoleText, type ChangeOnConsole } from './console.ts'
import { createAttention } from './attention.ts'
import { createHealth, type Health } from './health.ts'
import type { ServiceManager } from './systemd.ts'

/** Status that both programs report of themselves. */
type ProgramStatus = Omit<ServiceStatus, 'mode'>

interface ServiceStatusOptions extends Pick<ServiceStatus, 'version' | 'port'> {
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
function createServiceStatus(options: ServiceStatusOptions): () => Promise<ProgramStatus> {
  const { version, port, stateDirectory, clock, certificates } = options
  const startedAt = clock.monotonic()
  // Both clocks differ by a millisecond now and then, which is no other start.
  let start = clock.now()
  return async () => {
    const { bsize, bavail, blocks } = await statfs(stateDirectory)
    const upMs = clock.monotonic() - startedAt
    const present = clock.now() - upMs
    if (Math.abs(present - start) > 1_000) start = present
    return {
      version,
      startTimestamp: new Date(start).toISOString(),
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

/** Address and port of the configuration; `start` gets those on which the daemon really listens. */
interface Listen {
  readonly address: string
  readonly port: number
}

interface ServiceOptions {
  /** The file that the console shows; without it there is no console. */
  readonly console?: {
    readonly issueFile: string
    /** State of the platform in one line; undefined where there is none. */
    readonly platform: { consoleLine(): string | undefined; onChange(listener: () => void): void }
    readonly network?: { tried(): ChangeOnConsole | undefined; onChange(listener: () => void): void }
  }
  /** Adds the routes. */
  readonly addRoutes: (app: FastifyInstance, service: ServiceState) => Promise<void>
  readonly mode?: Mode
  readonly names: { addresses(): readonly string[]; onNamesChange(listener: () => void): unknown }
  readonly certificate: Pick<CertificateRoom, 'fingerprint' | 'notAfter' | 'isSelfSigned' | 'onChange'>
  /** The checks of all rooms. */
  readonly checks: readonly Check[]
  /** What the other rooms need of an operator. */
  readonly attention?: readonly NonNullable<Room['attention']>[]
  /** Audit records that only the journal has. */
  readonly unwrittenAudits: () => number
  readonly systemd: ServiceManager
}

/** State of a program for its routes. */
interface ServiceState {
  readonly health: Health
  readonly status: () => Promise<ProgramStatus>
  readonly attention: () => Promise<AttentionList>
}

/** Reports the state of the daemon to clients, to the console and to systemd. */
export function createService(ground: Ground<{ readonly api: Listen }>, own: ServiceOptions): Room {
  const { version, stateDirectory, runner, stopping, clock, log } = ground
  const { mode, names, certificate, systemd } = own
  const listen = ground.config.api
  const health = createHealth({ checks: own.checks, log })
  const status = createServiceStatus({
    version,
    port: listen.port,
    stateDirectory,
    clock,
    addresses: () => reachableBy(listen.address, names.addresses()),
    certificates: certificate,
    failing: health.failing,
    notes: health.notes,
    unwrittenAudits: own.unwrittenAudits,
  })
  const attention = createAttention({ sources: own.attention ?? [], status, stateDirectory, clock, log })
  const { console: shown } = own
  const console = shown && createConsole({ file: shown.issueFile, runner, log })
  let bound: OpenPort | undefined
  const show = async () => {
    if (!bound || !console) return
    const fingerprint = certificate.fingerprint()
    const platform = shown.platform.consoleLine()
    const change = shown.network?.tried()
    await console.show(consoleText({ bound, addresses: names.addresses(), fingerprint, platform, change }))
  }
  names.onNamesChange(() => void show())
  certificate.onChange(() => void show())
  shown?.platform.onChange(() => void show())
  shown?.network?.onChange(() => void show())
  stopping.addEventListener('abort', () => {
    // Not awaited: requests in flight matter more than this notification.
    systemd
      .notify('STOPPING=1')
      .catch((error: unknown) =>
        log.warn(
          { err: error },
          `systemd was not notified of the stop; see: systemctl status ${program.daemon}`,
        ),
      )
  })

  return {
    async routes(app) {
      await own.addRoutes(app, { health, status, attention })
    },
    async start({ address, port }) {
      bound = { address, port }
      // Before systemd is notified: a program that waits for the start may print the text.
      await show()
      systemd.startWatchdog(health.mayFeedWatchdog)
      log.info({ address, port, version, mode, fingerprint: certificate.fingerprint() }, 'listening')
      await systemd.notify('READY=1', `STATUS=listening on port ${port}`)
    },
    async stop() {
      await console?.remove()
      systemd.stopWatchdog()
    },
  }
}
