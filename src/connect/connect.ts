import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../ctl/exit-codes.ts'
import { oneLine } from '../ctl/layout.ts'
import type { EdgeHostInfo } from '../host/schemas.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import type { EdgeHostRegistration } from '../platform/hosts/schemas.ts'
import { reportedFacts, toRegistration } from '../uplink/facts.ts'
import type { PlatformRecord } from '../uplink/session.ts'
import { passingHostKey, readHostKey, registeredName } from '../uplink/host-key.ts'
import type { PlatformLink } from '../uplink/schemas.ts'
import { readKeptOrder, type KeptOrder } from '../uplink/desired/desired-store.ts'
import { checkPlatform, command } from './checks.ts'
import { dropInText, requireEffective, type PlatformSettings } from './drop-in.ts'
import { discardStaged, inTurn, requireReplaceable, staged, stageFiles } from './files.ts'
import { effectiveOf, readClusterUid, readHost, readLink, restartDaemon, type ThisHost } from './host.ts'

/** Input of the operator. */
export interface ConnectRequest {
  /** `https://name:port`. */
  readonly url: string
  /** Empty where none is given: then the platform has to know the host by its key. */
  readonly token: string
  /** PEM. */
  readonly authorities?: string
  /** `AA:BB:…` */
  readonly fingerprint?: string
  readonly proxy?: string
}

export interface ConnectOptions extends ThisHost {
  readonly request: ConnectRequest
  /** Proxies and authorities of all calls of this host. */
  readonly hostWay?: HostWay
  readonly now: () => number
  /** For each step of the checks. */
  readonly timeoutMs?: number
  /** Longest wait for the connection after the restart. */
  readonly waitMs?: number
}

const defaultWaitMs = 30_000
const askAgainMs = 500

/**
 * Connects this host to a platform. All is checked before anything is written; the written files take effect in one step, so that an
 * interruption leaves either the old state or the new one. It may be done again.
 * @returns the connection of the host
 * @throws Failure, FileRefused, ConfigInvalid
 */
export const connectHost = (options: ConnectOptions): Promise<PlatformLink> =>
  inTurn(options.places, async () => {
    await placeLink(options, await prepare(options))
    await restartDaemon(options, 'the settings are in place')
    options.say('edgehostd is restarted; waiting until it is connected')
    return waitUntilConnected(options)
  })

/** Checks whether this host can be connected. Nothing is changed. @returns what the platform has of it @throws as `connectHost` */
export const checkLink = (options: ConnectOptions): Promise<PlatformRecord> =>
  inTurn(options.places, async () => (await prepare(options)).record)

/** Checks it, and writes the settings of the connection, which the next start of the daemon reads. @throws as `connectHost` */
export const writeLink = (options: ConnectOptions): Promise<PlatformRecord> =>
  inTurn(options.places, async () => {
    const prepared = await prepare(options)
    await placeLink(options, prepared)
    return prepared.record
  })

/** A connection that was checked. */
interface Prepared {
  readonly settings: PlatformSettings
  readonly record: PlatformRecord
  /** Whether the host is connected to this platform already. */
  readonly isConnected: boolean
}

async function prepare(options: ConnectOptions): Promise<Prepared> {
  const { request, places, client, load, say } = options
  const { url, authorities, fingerprint, proxy } = request
  await requireReplaceable(places)
  const host = await readHost(client)
  const { isConnected, made } = await requireConnectable(options)
  const settings: PlatformSettings = {
    url,
    ...(authorities === undefined ? {} : { caFile: places.authorities }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    registrationTokenFile: places.token,
    ...(proxy === undefined ? {} : { proxy }),
  }
  await discardStaged(places)
  const text = dropInText(settings)
  requireEffective(effectiveOf(await load({ file: places.dropIn, text }, false)), settings, places.dropIn)

  const record = await checkPlatform({
    url,
    now: options.now,
    registration: await registrationOf(host, options),
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(proxy === undefined ? {} : { proxy }),
    ...(options.hostWay === undefined ? {} : { hostWay: options.hostWay }),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    tell: (check, found, mood) => say(`${check.padStart(6)}: ${found}`, mood),
  })

  if (made && made.tenantUid !== record.tenantUid)
    throw new Failure(
      'failed',
      `this host has the cluster ${made.name}, which another platform has made; only that one may take it back. Connect this host to it, or delete the cluster first: ${command('cluster delete --wait')}. Nothing was changed`,
    )
  if (made) say(`cluster: ${made.name} was made by this platform, which takes it back`)
  return { settings, record, isConnected }
}

async function placeLink(options: ConnectOptions, { settings, isConnected }: Prepared): Promise<void> {
  const { request, places, load, say } = options
  const { token, authorities } = request
  const text = dropInText(settings)
  const files = await stageFiles(places, { token, authorities, dropIn: text })
  try {
    const asStaged = {
      ...settings,
      ...(authorities === undefined ? {} : { caFile: staged(places.authorities) }),
      registrationTokenFile: staged(places.token),
    }
    await load({ file: places.dropIn, text: dropInText(asStaged) }, true)
    await files.commit()
  } catch (error) {
    await files.discard()
    throw error
  }
  say(isConnected ? `renewed: ${places.dropIn}` : `written: ${places.dropIn}`)
}

/** Result of the checks on the host before a connection. */
interface Connectable {
  /** Whether the host is connected to this platform already. */
  readonly isConnected: boolean
  /** The cluster of this host, where a platform has made it; which one is known only after the checks. */
  readonly made?: Pick<KeptOrder, 'tenantUid' | 'name'>
}

/** Requires that nothing prevents a connection. @throws Failure */
async function requireConnectable({
  request,
  client,
  load,
  stateDirectory,
}: ConnectOptions): Promise<Connectable> {
  const effective = effectiveOf(await load(undefined, false))
  const present = effective('platform.url')?.value
  if (effective('host.mode')?.value === 'connected' && typeof present === 'string') {
    if (URL.parse(present)?.origin === request.url) return { isConnected: true }
    throw new Failure(
      'failed',
      `this host is connected to ${oneLine(present)}; first: ${command('platform disconnect')}. Nothing was changed`,
    )
  }
  const cluster = await readClusterUid(client)
  if (cluster === undefined) return { isConnected: false }
  const kept = await readKeptOrder(stateDirectory)
  if (kept?.uid === cluster) return { isConnected: false, made: kept }
  throw new Failure(
    'failed',
    `this host has a cluster that was made here, and a platform does not take over such clusters; delete it first: ${command('cluster delete --wait')}. Nothing was changed`,
  )
}

/** Registration of the host. */
async function registrationOf(
  host: EdgeHostInfo,
  { request: { token }, stateDirectory }: ConnectOptions,
): Promise<EdgeHostRegistration> {
  const { publicKey } = (await readHostKey(stateDirectory)) ?? passingHostKey()
  const { id, name: given } = host.metadata
  const name = registeredName(given, host.status.hostName ?? '', id)
  return toRegistration({ name, hostId: id, token, publicKey }, reportedFacts(host))
}

async function waitUntilConnected({ client, waitMs = defaultWaitMs }: ConnectOptions): Promise<PlatformLink> {
  const endsAt = performance.now() + waitMs
  for (;;) {
    // The daemon may not listen yet.
    const link = await readLink(client).catch((error: unknown) => {
      if (error instanceof Failure) return error
      throw error
    })
    const isFailure = link instanceof Failure
    if (!isFailure && link.isConnected && link.registrationStatus === 'registered') return link
    if (performance.now() >= endsAt) {
      const cause = isFailure ? link.message : (link.cause?.message ?? 'it has not said why')
      throw new Failure(
        'failed',
        `the settings are in place, but this host is not connected yet: ${cause}\nIt keeps trying; look again with: ${command('platform status')}`,
      )
    }
    await pause(askAgainMs)
  }
}
