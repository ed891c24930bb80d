// In connected mode `uplink/link.ts` is the one loop that talks to the platform, and only outgoing calls are made. Each turn does what is due, in
// order: registration (`session.ts`), login, heartbeat, facts, events. The first refusal ends the turn; it has a cause (`cause.ts`), which the
// route, the document of the host, the console and the command line show, and the next attempt is up to a minute later (`client.ts`), later where
// an operator has to decide. `client.ts` never rejects: each failure is a cause.
//
// - `link-store.ts` keeps the registration and the generation in a file beside the key (`host-key.ts`), not in the database: a host whose database
//   was damaged would look like a second one. The generation is on the disk before the token is used.
// - `facts.ts` is pure: the reported facts, and their hash, which decides whether. The reply to a login has the hash that the platform
//   knows, so a platform that was restored gets the facts again.
// - `event-queue.ts` keeps events in the database until the platform has them, at most 10,000. The oldest `Normal` ones give way; the gap becomes
//   an event itself. The cluster hands its events over in the transaction that stores them.
// - The clock of the host plays no part: times between calls are of the monotonic clock.
// - A stop ends each call and download at once, also one whose connection is still being made (`outgoing/exchange.ts`), and nothing is sent after
//   it.
// - The message of a refusal is escaped and cut where the cause is made, and secrets sent to the platform are masked there, in parts too:
//   `cause.ts` keeps the last registration tokens, session tokens and keys of the kubeconfig in memory, since any later reply may repeat
//   them.
//
// `uplink/desired` is the cluster that the platform wants. The reply to a heartbeat says its number and ETag (`desired-store.ts`, header
// `Edgehost-Wanted`); `follow.ts` is a loop of its own, so that a download holds up no heartbeat.
//
// - `decide.ts` is pure: from the announcement, the order kept in `platform/wanted.json` (`desired-store.ts`) and the cluster of this host
//   to the next action. The number only rises: an older one, or the same with another ETag, is `NewerOnHost` and is not fetched. A change
//   that was made on the host while it was disconnected counts as newer than the desired state of the first heartbeat after it. Numbers of
//   another cluster begin anew: where the platform wants a lower one after a deletion, it is fetched once to see whether it is another
//   cluster.
// - `download.ts` fetches over a connection of its own (`uplink/fetch.ts`), into `platform/download`. A length and a sum that begins as the ETag
//   does are required before the first byte is written. Every 16 MiB the bytes are on the disk and counted as kept; a cut or a restart continues
//   from there with `Range` and `If-Range`. The whole has to have the sum of `Repr-Digest`, or is thrown away. The disk never has it readable,
//   since it has secrets and may wait for content for days: it is encrypted on its way (`secrets/encrypted-file.ts`), with a key of its own that is
//   sealed in `download.json`.
// - `read-delivery.ts` takes a tar of `cluster.json` and the archive of the definition apart, and accepts nothing else.
// - The root hands in `cluster/api/platform.ts`, which does what an administrator of the host would do: the definition is taken as an upload, into
//   a slot of its own, `platform`, so that neither an uploaded definition nor the running cluster notices; then `creation`, `change` with the whole
//   configuration, or the deletion. The revision has the number of the platform in its row, in the transaction that accepts it, so an order that
//   comes again after a kill is known. Then `wanted.json` is written and the download removed; it stays only while content is missing.
// - `reports.ts` sends heartbeat, conditions, packs and kubeconfig of the cluster at the end of a turn of the link, each when it has changed, the
//   heartbeat each minute. A report that is refused or not known there ends no turn.

import { type HostEvent, createEventQueue } from './event-queue.ts'
import { type HostHealth, createLink, type Link } from './link.ts'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Mode } from '../base/role.ts'
import { inSeconds } from '../base/sample.ts'
import { formatTime } from '../base/time.ts'
import { largestDescription } from '../definition/examination/protocol.ts'
import { notApplicable, type PlatformOfHostInfo } from '../host/document.ts'
import type { Host } from '../host/room.ts'
import type { EdgeHostInfo } from '../host/schemas.ts'
import { readAuthorities } from '../outgoing/authorities.ts'
import { proxyOf } from '../outgoing/connection.ts'
import { proxyShown, type HostWay } from '../outgoing/proxy.ts'
import type { Check, FiguresOf, Ground, Room, StateSource } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { about } from './about.ts'
import { causeInWords, type Cause, createOwnSecrets, secretsOfKubeconfig } from './cause.ts'
import { createPlatformClient, type PlatformClient, type PlatformClientOptions } from './client.ts'
import type { PlatformOfHost } from './config.ts'
import { reportedFacts, type ReportedFacts } from './facts.ts'
import { createFetch, type Fetch } from './fetch.ts'
import { openHostKey, platformFolder, registeredName, createTokenFile } from './host-key.ts'
import { openLinkStore, type LinkStore, type Registration } from './link-store.ts'
import { platformLinkRoutes } from './routes.ts'
import type { PlatformLink, RegistrationStatus } from './schemas.ts'
import { createHandshake } from './session.ts'
import { conditionInWords } from './desired/decide.ts'
import { createDownload } from './desired/download.ts'
import { createFollow, type ClusterToFollow, type Follow } from './desired/follow.ts'
import { tarOverhead } from './desired/read-delivery.ts'
import { createReports, type ClusterReport, type Reports } from './desired/reports.ts'
import { openDesiredStore } from './desired/desired-store.ts'

/** Health of this host; reports an event when it changes. */
function createHostHealth(
  failing: () => readonly string[],
  report: (event: HostEvent) => void,
): () => HostHealth {
  let known = ''
  return () => {
    const names = failing().join(', ')
    if (names !== known)
      report({
        component: 'edgehostd',
        ...(names === ''
          ? { severity: 'Normal', reason: 'HostReady', message: 'all checks of the host hold again' }
          : { severity: 'Warning', reason: 'HostNotReady', message: `checks of the host fail: ${names}` }),
      })
    known = names
    return names === ''
      ? { state: 'healthy', message: '' }
      : { state: 'unhealthy', message: `checks fail: ${names}`.slice(0, 1_024) }
  }
}

/** Parts of the ground that the link needs. */
export type UplinkGround = Pick<
  Ground<{
    readonly platform: PlatformOfHost
    readonly host: { readonly mode: Mode; readonly name?: string }
  }>,
  'config' | 'version' | 'stateDirectory' | 'secrets' | 'database' | 'record' | 'stopping' | 'clock' | 'log'
>

interface UplinkOptions {
  readonly hostId: string
  readonly host: Pick<Host, 'current' | 'firstReading' | 'hostName' | 'refresh'>
  /** Proxies and authorities that this host has for all calls. */
  readonly hostWay?: HostWay
  /** Limits of downloads. */
  readonly limits: {
    /** Bytes of a definition. */
    readonly definitionBytes: number
    /** Space that stays free on the disk. */
    readonly reserveBytes: number
  }
  /** Replaces the calls over the network, in tests. */
  readonly client?: PlatformClient | undefined
  /** Replaces the downloads, in tests. */
  readonly fetch?: Fetch | undefined
  /** Replaces the time that passes between calls, in tests. */
  readonly pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined
}

/** The cluster of this host: orders of the platform, and reports to it; no report without a cluster. */
export interface LinkedCluster extends ClusterToFollow {
  report(): Promise<ClusterReport | undefined>
}

/** The link of this host to its platform, as other rooms use it. */
export interface Uplink extends Room {
  /** The state of the link, as the reply has it. */
  link(): PlatformLink
  /** Reports an event to the platform; in airgap mode nothing happens. */
  report(event: HostEvent): void
  /** Its part of `GET /v1/edge-mgmt/edgehosts/current`. */
  inHostInfo(): PlatformOfHostInfo
  /** One line for the console; undefined in airgap mode. */
  consoleLine(): string | undefined
  onChange(listener: () => void): void
  /** Has the link send a heartbeat at once on a new connection. */
  reconnect(): void
  /** Registers a listener, called for each reply to a heartbeat. @param connectedSince its connection was made after this time, monotonic milliseconds */
  onBeat(listener: (connectedSince: number) => void): void
  /** How the platform of the configuration is reached; undefined in airgap mode, and without one. @throws Error for unreadable authorities */
  way(): Promise<PlatformClientOptions | undefined>
  /** Removes key and registration of this host on the platform; the next start makes others. */
  forget(): Promise<void>
  /** Content has come or gone: missing content of the cluster may be there. */
  contentChanged(): void
  /** The cluster that follows the platform; before the start. */
  attachCluster(cluster: LinkedCluster): void
  /** The checks of all rooms, whose failures are reported to the platform; before the start. */
  attachChecks(checks: readonly Check[]): void
}

/** Builds the room. In airgap mode it has nothing but its route. */
export async function createUplink(ground: UplinkGround, own: UplinkOptions): Promise<Uplink> {
  const { config, version, stateDirectory, stopping, clock, log } = ground
  const { host, hostId } = own
  const settings = config.platform
  const { mode } = config.host
  const folder = join(stateDirectory, platformFolder)
  const downloads = join(folder, 'download')
  const forget = () => rm(folder, { recursive: true, force: true })
  if (mode === 'airgap') {
    // Of a platform that this host has left: up to a definition, which no platform asks for now.
    await rm(downloads, { recursive: true, force: true }).catch((error: unknown) =>
      log.warn({ err: error }, 'the downloads from the former platform cannot be removed'),
    )
    return { ...airgapped(), forget }
  }
  const { url } = settings
  const store = await openLinkStore(stateDirectory, log)
  const desiredStore = await openDesiredStore(stateDirectory, log)
  const queue = createEventQueue({ ...ground, onEvent: () => link?.wake() })
  const listeners: (() => void)[] = []
  const beatListeners: ((connectedSince: number) => void)[] = []
  let link: Link | undefined
  let follow: Follow | undefined
  /** Why these settings allow no link. */
  let unusable: Cause | undefined = url === undefined ? noUrl : undefined
  let reportsOf: Reports | undefined
  let client: PlatformClient | undefined
  let running: Promise<void> | undefined
  let hasStarted = false
  const ownSecrets = createOwnSecrets()
  const ofHost = own.hostWay === undefined ? {} : { hostWay: own.hostWay }
  const wait = own.pause ?? pause
  let checks: readonly Check[] = []
  let cluster: LinkedCluster = noCluster
  const changed = () => listeners.forEach((listener) => listener())
  // A platform that does not answer does not hold up a stop.
  stopping.addEventListener('abort', () => client?.close(), { once: true })

  /** The obstacle may pass: a disk that is full, or a file on one that is not mounted yet. */
  async function keepGoing(address: string): Promise<void> {
    while (!stopping.aborted) {
      try {
        await begin(address)
        return
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        if (unusable?.message !== message) {
          unusable = { kind: 'settings', message }
          log.error({ err: error }, `not connected to the platform: ${message}`)
          changed()
        }
        await wait(againMs, stopping)
      }
    }
  }

  async function begin(address: string): Promise<void> {
    client?.close()
    const way = { ...(await readTrust(address, settings, store, clock, own.hostWay)), ownSecrets }
    client = own.client ?? createPlatformClient(way)
    const key = await openHostKey(stateDirectory)
    const onRegistered = ({ edgeHostUid }: Pick<Registration, 'edgeHostUid'>) =>
      ground.record({
        action: 'create',
        kind: 'platformRegistration',
        resourceUid: edgeHostUid,
        message: `Register this host on the platform ${address}`,
      })
    const { readToken, removeToken } = createTokenFile(settings.registrationTokenFile, log)
    const { definitionBytes, reserveBytes } = own.limits
    const followed = createFollow({
      store: desiredStore,
      cluster,
      limitBytes: definitionBytes,
      download: createDownload({
        fetch: own.fetch ?? createFetch(way),
        folder: downloads,
        key: ground.secrets.derive('downloads from the platform'),
        limitBytes: definitionBytes + largestDescription + tarOverhead,
        reserveBytes,
      }),
      path() {
        const { edgeHostUid } = store.current() ?? {}
        return edgeHostUid === undefined ? undefined : `/v1/edgehosts/${edgeHostUid}/spc/download`
      },
      token: () => link?.token(),
      tenantUid: () => store.current()?.tenantUid,
      onChange() {
        reports.wake()
        link?.wake()
        changed()
      },
      pause,
      random: Math.random,
      stopping,
      log,
    })
    follow = followed
    const reports = createReports({
      read: readReport,
      desired: followed.status,
      agentVersion: version,
      random: Math.random,
      clock,
      log,
    })
    reportsOf = reports
    link = createLink({
      client,
      store,
      queue,
      hostId,
      agentVersion: version,
      random: Math.random,
      stopping,
      clock,
      log,
      onDesired: followed.announce,
      onBeat: (connectedSince) => beatListeners.forEach((listener) => listener(connectedSince)),
      reports,
      handshake: createHandshake({ client, key, store, hostId, onRegistered }),
      name: () => registeredName(config.host.name ?? hostId, host.hostName(), hostId),
      facts: createFactsReader(host),
      health: createHostHealth(failing, queue.add),
      async readToken() {
        const token = await readToken()
        if (token !== undefined) ownSecrets.add('registrationToken', token)
        return token
      },
      removeToken,
      onChange: changed,
      pause: wait,
    })
    if (unusable) {
      unusable = undefined
      changed()
    }
    // A stop may come before the first reading of the facts.
    const stopped = new Promise<void>((resolve) =>
      stopping.addEventListener('abort', () => resolve(), { once: true }),
    )
    await Promise.race([host.firstReading(), stopped])
    if (stopping.aborted) return
    if (!hasStarted)
      queue.add({
        severity: 'Normal',
        reason: 'HostStarted',
        component: 'edgehostd',
        message: `edgehostd ${version} has started`,
      })
    hasStarted = true
    await Promise.all([link.run(), followed.run()])
  }

  async function readReport(): Promise<ClusterReport | undefined> {
    const report = await cluster.report()
    for (const secret of secretsOfKubeconfig(report?.kubeconfig ?? '')) ownSecrets.add('kubeconfig', secret)
    return report
  }

  const failing = () => checks.filter(({ holds }) => !holds()).map(({ name }) => name)

  const cause = () => unusable ?? link?.state().cause
  const status = () => statusOf(store.current(), hostId, cause())

  function inReply(): PlatformLink {
    const registration = store.current()
    const registrationStatus = status()
    const { isConnected = false, since, lastContactAt, nextAttemptAt } = { ...link?.state() }
    const found = cause()
    const projectName = link?.projectName()
    const time = (name: 'since' | 'lastContactTimestamp' | 'nextAttemptTimestamp', at: number | undefined) =>
      at === undefined ? {} : { [name]: formatTime(at) }
    return {
      mode,
      registrationStatus,
      isConnected,
      events: queue.counts(),
      ...(url === undefined ? {} : { url }),
      ...shownProxy(),
      ...(registration &&
        registrationStatus !== 'pending' && {
          edgeHostUid: registration.edgeHostUid,
          projectUid: registration.projectUid,
          ...(projectName === undefined ? {} : { projectName }),
        }),
      ...time('since', since),
      ...time('lastContactTimestamp', lastContactAt),
      ...time('nextAttemptTimestamp', nextAttemptAt),
      ...(found && { cause: { ...found } }),
      ...desiredInReply(),
    }
  }

  function shownProxy(): { readonly proxy?: string } {
    const { proxy } = settings
    const used =
      url === undefined ? proxy : proxyOf({ url, ...(proxy === undefined ? {} : { proxy }), ...ofHost })
    return used === undefined ? {} : { proxy: proxyShown(used) }
  }

  function desiredInReply(): Pick<PlatformLink, 'wanted'> {
    const { uid, name, number, accepted, condition, download } = { ...follow?.status() }
    if (number === undefined && condition === undefined) return {}
    return {
      wanted: {
        ...(number === undefined ? {} : { number }),
        acceptedNumber: accepted ?? 0,
        ...(uid === undefined ? {} : { clusterUid: uid }),
        ...(name === undefined ? {} : { clusterName: name }),
        ...(condition && { condition: { ...condition } }),
        ...(download && { download: { ...download } }),
      },
    }
  }

  return {
    report(event) {
      queue.add(event)
      if (event.component !== 'cluster') return
      reportsOf?.wake()
      follow?.wake()
    },
    forget,
    contentChanged: () => follow?.contentChanged(),
    attachCluster: (attached) => void (cluster = attached),
    attachChecks: (attached) => void (checks = attached),
    inHostInfo() {
      const found = cause()
      return {
        ...(url === undefined ? {} : { url }),
        registrationStatus: status(),
        ...(found && {
          problem: {
            reason: found.kind.replace(/^./, (first) => first.toUpperCase()),
            message: found.message,
          },
        }),
      }
    },
    consoleLine() {
      const found = cause()
      const how =
        link?.state().isConnected === true ? 'connected' : found ? causeInWords(found) : 'connecting'
      const condition = follow?.status().condition
      return `${url ?? 'no URL'}: ${how}${condition === undefined ? '' : `, ${conditionInWords(condition)}`}`
    },
    onChange: (listener) => void listeners.push(listener),
    reconnect: () => link?.reconnect(),
    onBeat: (listener) => void beatListeners.push(listener),
    way: async () =>
      settings.url === undefined ? undefined : readTrust(settings.url, settings, store, clock, own.hostWay),
    link: inReply,
    states: [statesOf(inReply)],
    attention() {
      const found = cause()
      const condition = follow?.status().condition
      const { isConnected = false, since } = { ...link?.state() }
      const command = 'edgehostctl platform status'
      return [
        ...(isConnected || !found
          ? []
          : [
              {
                ...({ code: 'PlatformUnreachable', severity: 'error', command } as const),
                message: `this host is not connected to its platform: ${found.message}`,
                ...(since === undefined ? {} : { since }),
              },
            ]),
        ...(condition?.status === 'False'
          ? [
              {
                ...({ code: 'OrderNotApplied', severity: 'error', command } as const),
                message: `${conditionInWords(condition)}${condition.message === '' ? '' : `: ${condition.message}`}`,
              },
            ]
          : []),
      ]
    },
    async routes(app) {
      await platformLinkRoutes(app, { link: inReply })
    },
    background() {
      if (url === undefined) {
        log.warn(`not connected to the platform: ${noUrl.message}`)
        return
      }
      running = keepGoing(url)
    },
    figures(): FiguresOf<typeof about.families> {
      return {
        edgehostd_platform_silent_seconds: inSeconds(
          link === undefined || link.state().isConnected ? 0 : clock.now() - link.state().since,
        ),
        edgehostd_platform_waiting_events: queue.counts().waiting,
      }
    },
    async stop() {
      await running
    },
  }
}

const noCluster: LinkedCluster = {
  current: () => undefined,
  apply: () => Promise.resolve({ kind: 'refused', message: 'this host has no clusters' }),
  report: () => Promise.resolve(undefined),
}

const noLink = (): PlatformLink => ({
  mode: 'airgap',
  registrationStatus: 'not applicable',
  isConnected: false,
  events: { waiting: 0, dropped: 0 },
})

const statesOf = (link: () => PlatformLink): StateSource => ({
  type: 'platform',
  access: 'viewer',
  paths: ['/v1/edge-mgmt/platform', '/v1/edge-mgmt/edgehosts/current/attention'],
  read: link,
})

const airgapped = (): Omit<Uplink, 'forget'> => ({
  link: noLink,
  report: () => undefined,
  contentChanged: () => undefined,
  attachCluster: () => undefined,
  attachChecks: () => undefined,
  inHostInfo: () => notApplicable,
  consoleLine: () => undefined,
  onChange: () => undefined,
  reconnect: () => undefined,
  onBeat: () => undefined,
  way: async () => undefined,
  states: [statesOf(noLink)],
  async routes(app) {
    await platformLinkRoutes(app, { link: noLink })
  },
  figures: (): FiguresOf<typeof about.families> => ({
    edgehostd_platform_silent_seconds: 0,
    edgehostd_platform_waiting_events: 0,
  }),
})

// The time of a heartbeat: an operator watches for a minute after a repair.
const againMs = 60_000

const noUrl: Cause = {
  kind: 'settings',
  message: 'host.mode is connected and platform.url is not set; run: edgehostctl platform connect',
}

function statusOf(
  registration: Registration | undefined,
  hostId: string,
  cause: Cause | undefined,
): RegistrationStatus {
  // The record is of another platform, where this one does not know the host and refuses its token.
  const isOfOther = cause?.kind === 'tokenRefused' || cause?.kind === 'alreadyRegistered'
  if (registration?.hostId !== hostId || isOfOther) return 'pending'
  if (registration.isRemoved) return 'removed'
  return cause?.kind === 'existsTwice' ? 'duplicate' : 'registered'
}

/** @throws Error for a file of authorities that cannot be read */
async function readTrust(
  url: string,
  { caFile, fingerprint, proxy }: PlatformOfHost,
  store: Pick<LinkStore, 'pinnedKey' | 'learnKey'>,
  clock: Clock,
  hostWay: HostWay | undefined,
): Promise<PlatformClientOptions> {
  const ca =
    caFile === undefined || fingerprint !== undefined
      ? undefined
      : await readAuthorities('platform.caFile', caFile)
  return {
    url,
    now: () => clock.now(),
    ...(proxy === undefined ? {} : { proxy }),
    ...(hostWay === undefined ? {} : { hostWay }),
    ...(fingerprint === undefined
      ? {}
      : {
          fingerprint,
          pinnedKey: {
            known: () => store.pinnedKey(fingerprint),
            learn: (key: string) => store.learnKey({ fingerprint, key }),
          },
        }),
    ...(ca === undefined ? {} : { ca }),
  }
}

/** Reads the facts from the reply that the host has ready; they are computed again only when that has changed. */
function createFactsReader(host: Pick<Host, 'current'>): () => ReportedFacts {
  let known: { readonly etag: string; readonly facts: ReportedFacts } | undefined
  return () => {
    const reply = host.current()
    if (!reply) throw new Error('the facts of this host are not read yet')
    if (known?.etag !== reply.etag)
      known = { etag: reply.etag, facts: reportedFacts(JSON.parse(reply.body) as EdgeHostInfo) }
    return known.facts
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  // The signal ends it early, which is no error.
  sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
