import type { FastifyInstance } from 'fastify'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Authenticate, IsGone } from './api/access.ts'
import { createHttpsServer } from './api/connection/https-server.ts'
import { listen } from './api/connection/listen.ts'
import { createLocalServer } from './api/connection/local-server.ts'
import { createServer } from './api/server.ts'
import { createCertificates, type Certificates } from './certificate/certificates.ts'
import type { Audit } from './audit/audit.ts'
import type { Config } from './config/schema.ts'
import type { Snapshot } from './host/snapshot.ts'
import type { MetricsSources } from './metrics/figures.ts'
import type { Client, ClientOf } from './base/client.ts'
import type { Clock } from './system/clock.ts'
import type { Logger } from './system/log.ts'
import type { Lines } from './system/stranger-log.ts'

export interface EdgeOptions {
  readonly config: Pick<Config, 'api' | 'host'>
  /** The certificate's folder lies below it. */
  readonly stateDirectory: string
  /** Milliseconds since 1970. */
  readonly buildDate: number
  /** What the certificate calls this host. */
  readonly names: Pick<Snapshot, 'hostName' | 'addresses'>
  readonly audit: Audit
  readonly authenticate: Authenticate
  /** The user of an access token that is held, told without a look at a signature. */
  readonly holderOf: (accessToken: string) => string | undefined
  /** Whether a user has logged in from exactly there. */
  readonly isKnownClient: (client: Client) => boolean
  /** Tells who counts as one client. */
  readonly clientOf: ClientOf
  /** Told when new connections get another certificate than before. */
  readonly onNewCertificate: () => void
  readonly clock: Clock
  readonly log: Logger
  /** Takes the lines that callers without a session cause. */
  readonly strangers: Lines
  /** Aborted when the stop begins: long replies end by it. */
  readonly stopping: AbortSignal
}

/** Where requests come in: the HTTPS port and root's own socket, their limits, and the certificate. */
export interface Edge {
  /** Takes the routes of the rooms. */
  readonly app: FastifyInstance
  readonly certificates: Certificates
  /** What it counts. */
  readonly figures: Pick<MetricsSources, 'requests' | 'rateRefusals' | 'connections'>
  /** Ends what needs a session that is gone: requests in flight, and that their connections are spared. */
  endSessions(isGone: IsGone): void
  /** @param inherited how many sockets systemd holds for us */
  listen(inherited: number): Promise<AddressInfo>
  /** Looks whether the certificate still fits this host, and puts a new one to use where it does not. */
  renewCertificate(): Promise<void>
  /** Reads the files of the certificate anew. */
  reloadCertificate(): Promise<void>
  /** Finishes what is in flight. */
  close(): Promise<void>
}

// What is in flight gets this long; the unit's TimeoutStopSec is a little longer.
const drainMs = 10_000

/** Puts the room `api` together; the certificate is there when it is done. */
export async function createEdge(options: EdgeOptions): Promise<Edge> {
  const { config, stateDirectory, buildDate, names, audit, authenticate, clientOf, clock, log, strangers } =
    options
  const certificates = createCertificates({
    directory: join(stateDirectory, 'tls'),
    own: ownCertificate(config),
    buildDate,
    clock,
    log,
    names: () => ({ hostName: names.hostName(), addresses: names.addresses() }),
    onNewKey: () => audit.record({ action: 'create', kind: 'key', message: 'Make a private key' }),
    onRefused: (reason) =>
      audit.record({
        ...{ action: 'action', kind: 'certificate', outcome: 'failed' },
        message: `Keep the certificate, the new one cannot be used: ${reason}`,
      }),
  })
  const recordCertificate = () => {
    if (audit.lastResource('certificate', 'create') === certificates.fingerprint()) return
    const notAfter = new Date(certificates.notAfter()).toISOString()
    audit.record({
      action: 'create',
      kind: 'certificate',
      resourceUid: certificates.fingerprint(),
      message: `Put a certificate to use, good until ${notAfter}`,
    })
  }
  await certificates.ensure()
  recordCertificate()

  const https = createHttpsServer({
    ...config.api,
    material: certificates.material(),
    ...{ clientOf, log, strangers },
  })
  const local = createLocalServer({ path: config.api.socket.path, timeouts: config.api.timeouts, log })
  const { app, requests, endRequests, rateRefusals } = createServer({
    log,
    strangers,
    bodyLimitBytes: config.api.body.limitBytes,
    serverFactory: https.serverFactory,
    rateLimits: {
      ...{
        settings: config.api.rateLimits,
        holderOf: options.holderOf,
        isKnownClient: options.isKnownClient,
      },
      monotonic: () => clock.monotonic(),
    },
    mode: config.host.mode,
    audit: audit.requests,
    authenticate,
    clientOf,
    onAuthenticated: (request, caller) => https.markAuthenticated(request.socket, caller),
    isLocal: local.hasAccepted,
    stopping: options.stopping,
  })

  const useCertificate = (isNew: boolean) => {
    if (!isNew) return
    recordCertificate()
    options.onNewCertificate()
    https.useCertificate(certificates.material())
    log.info(
      { fingerprint: certificates.fingerprint(), notAfter: certificates.notAfter() },
      'certificate in use',
    )
  }

  return {
    app,
    certificates,
    figures: { requests: requests.figures, rateRefusals, connections: https.connections },
    endSessions(isGone) {
      endRequests(isGone)
      https.forget(isGone)
    },
    listen: (inherited) => listen(app, { ...config.api, inherited, local }),
    renewCertificate: async () => useCertificate(await certificates.ensure()),
    reloadCertificate: async () => useCertificate(await certificates.reload()),
    async close() {
      const deadline = setTimeout(() => {
        https.closeConnections()
        local.closeConnections()
      }, drainMs)
      https.closeIdle()
      await Promise.all([app.close(), local.close()])
      clearTimeout(deadline)
      https.stop()
    },
  }
}

/** An administrator's pair, where one is configured. */
function ownCertificate({ api: { tls } }: Pick<Config, 'api'>) {
  const { certificateFile, keyFile } = tls
  return certificateFile !== undefined && keyFile !== undefined ? { certificateFile, keyFile } : undefined
}
