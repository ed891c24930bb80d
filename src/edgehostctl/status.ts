import type { AttentionList, ServiceStatus } from '../service/schemas.ts'
import type { AuditView } from '../audit/schemas.ts'
import type { SessionItem } from '../auth/schemas.ts'
import type { ClusterDetails } from '../cluster/schemas.ts'
import type { EdgeHostInfo } from '../host/schemas.ts'
import type { PlatformLink } from '../uplink/schemas.ts'
import { renderFacts, type Fact, type Paper, moment, oneLine, plural, span } from '../ctl/layout.ts'
import { getIfThere, type Client, type Context, type Items } from '../ctl/client.ts'
import { hostPath, readDetails, shownVersion } from '../ctl/cluster.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { understand } from '../ctl/reply.ts'

/** Content of the screen; parts for administrators are `undefined` for other users. */
export interface HostStatus {
  readonly host: EdgeHostInfo
  readonly service: ServiceStatus | undefined
  /** Its connection; undefined in airgap mode. */
  readonly platform: PlatformLink | undefined
  /** Undefined without one. */
  readonly cluster: Pick<ClusterDetails, 'metadata' | 'status'> | undefined
  /** What there is to know or to do; undefined where an older daemon does not say it. */
  readonly attention: AttentionList['items'] | undefined
  readonly sessions: readonly SessionItem[]
  /** Records without success among the newest 50, newest first. */
  readonly errors: readonly AuditView[] | undefined
}

export interface StatusOptions {
  readonly paper: Paper
  /** The command line of edgehostctl, for the commands that the screen names. */
  readonly command: string
  /** Milliseconds since 1970. */
  readonly now: number
}

const dayMs = 86_400_000
const soonDays = 30
const shownErrors = 5
const fullShare = 0.9
const gibibyte = 1_073_741_824

export function renderStatus(found: HostStatus, options: StatusOptions): string {
  const next = nextLines(found, options.command)
  return renderFacts(
    [
      ...identity(found),
      ...platformFacts(found.platform),
      ...clusterFacts(found.cluster),
      ...(found.service ? serviceFacts(found.service, options) : []),
      factsFact(found.host),
      ...diskFacts(found),
      sessionFact(found.sessions),
      errorFact(found.errors),
      nextFact(found, next),
    ],
    options.paper,
  )
}

function nextFact(found: HostStatus, lines: readonly string[]): Fact {
  const label = 'Next'
  if (lines.length === 0)
    return found.attention
      ? { label, lines: ['nothing to do'], mood: 'good' }
      : { label, lines: ['not known: the edgehostd of this host is older'] }
  const mood = moodOf(found)
  return { label, lines, ...(mood ? { mood } : {}) }
}

function identity({ host: { metadata, spec, status }, service }: HostStatus): Fact[] {
  const failing = service?.failing ?? []
  const state: Fact =
    failing.length > 0
      ? { label: 'State', lines: [`not ready: ${failing.join(', ')}`], mood: 'bad' }
      : { label: 'State', lines: ['running'], mood: 'good' }
  const notes = service?.notes ?? []
  const checks: Fact = { label: 'Checks', lines: [`failing: ${notes.join(', ')}`], mood: 'warning' }
  return [
    { label: 'Host', lines: [status.hostName ?? metadata.name] },
    { label: 'ID', lines: [metadata.id] },
    state,
    ...(notes.length > 0 ? [checks] : []),
    {
      label: 'Mode',
      lines: [
        `${spec.connectionMode}, managed ${spec.managementMode === 'local' ? 'here' : 'by the platform'}`,
      ],
    },
    { label: 'Version', lines: [`edgehostd ${status.agentVersion}`] },
  ]
}

function platformFacts(link: PlatformLink | undefined): Fact[] {
  if (!link) return []
  const { url = 'unknown', isConnected, since, cause } = link
  const state = `${isConnected ? 'connected' : 'not connected'}${since === undefined ? '' : ` since ${moment(since)}`}`
  return [
    {
      label: 'Platform',
      lines: [url, state, ...(cause ? [cause.message] : [])],
      mood: isConnected ? 'good' : 'bad',
    },
  ]
}

function clusterFacts(cluster: HostStatus['cluster']): Fact[] {
  if (!cluster) return []
  const { clusterState, phase, health } = cluster.status
  const state = phase === clusterState ? phase : `${clusterState} (${phase})`
  const mood = clusterState === 'Error' ? 'bad' : health.status === 'Healthy' ? 'good' : 'warning'
  const what = `${cluster.metadata.name ?? ''}, Kubernetes ${shownVersion(cluster.status)}`
  return [{ label: 'Cluster', lines: [what, `${state}, ${health.status}`], mood }]
}

function serviceFacts(service: ServiceStatus, { now, paper }: StatusOptions): Fact[] {
  const { addresses, port, certificate, startTimestamp, uptimeSeconds } = service
  const leftDays = Math.floor((Date.parse(certificate.expirationTimestamp) - now) / dayMs)
  const end = moment(certificate.expirationTimestamp).slice(0, 10)
  const mood = leftDays < 0 ? 'bad' : leftDays < soonDays ? 'warning' : undefined
  const { fingerprint } = certificate
  return [
    { label: 'Uptime', lines: [`${span(uptimeSeconds)}, since ${moment(startTimestamp)}`] },
    {
      label: 'Address',
      lines: addresses.map((each) => `https://${each.includes(':') ? `[${each}]` : each}:${port}`),
    },
    {
      label: 'Certificate',
      lines: [leftDays < 0 ? `ended ${end}` : `until ${end}, ${plural(leftDays, 'day')} left`],
      ...(mood ? { mood } : {}),
    },
    {
      label: 'Fingerprint',
      // 95 characters: on a narrow terminal lines of 16 or 8 bytes, which are easy to compare.
      lines: splitFingerprint(fingerprint, paper.columns >= 112 ? 32 : paper.columns >= 64 ? 16 : 8),
    },
  ]
}

const splitFingerprint = (fingerprint: string, bytesPerLine: number): string[] =>
  fingerprint.match(new RegExp(`.{1,${3 * bytesPerLine}}`, 'g')) ?? [fingerprint]

function factsFact({ status: { conditions = [] } }: EdgeHostInfo): Fact {
  if (conditions.length === 0) return { label: 'Facts', lines: ['all were read'] }
  return {
    label: 'Facts',
    lines: [
      `${plural(conditions.length, 'fact')} could not be read`,
      ...conditions.map(({ type, message }) => `${type}: ${message}`),
    ],
    mood: 'warning',
  }
}

function diskFacts({ host, service }: HostStatus): Fact[] {
  const partitions = host.spec.hardwareSpec.disks.flatMap((disk) => disk.partitions)
  const known = partitions.flatMap(({ mountPoint, totalSpace, usedSpace, freeSpace }) =>
    totalSpace !== undefined && usedSpace !== undefined && freeSpace !== undefined
      ? [`${mountPoint}: ${freeSpace} of ${totalSpace} GiB free`]
      : [],
  )
  const lines = [...new Set(known)].slice(0, 6)
  if (service) {
    const { freeBytes, totalBytes } = service.state
    const size = (bytes: number) => (bytes / gibibyte).toFixed(1)
    lines.push(`state of edgehostd: ${size(freeBytes)} of ${size(totalBytes)} GiB free`)
  }
  return lines.length === 0
    ? []
    : [{ label: 'Disk', lines, ...(isFull(service) ? { mood: 'bad' as const } : {}) }]
}

const isFull = (service: ServiceStatus | undefined) =>
  service !== undefined && service.state.freeBytes < (1 - fullShare) * service.state.totalBytes

function sessionFact(sessions: readonly SessionItem[]): Fact {
  const users = [...new Set(sessions.map(({ userName }) => userName))]
  const names = users.length > 5 ? `${users.slice(0, 5).join(', ')} ...` : users.join(', ')
  return { label: 'Sessions', lines: [sessions.length === 0 ? 'none' : `${sessions.length} (${names})`] }
}

function errorFact(errors: readonly AuditView[] | undefined): Fact {
  if (!errors) return { label: 'Errors', lines: ['only administrators see them'] }
  if (errors.length === 0) return { label: 'Errors', lines: ['none in the last 50 audit records'] }
  return {
    label: 'Errors',
    lines: errors.slice(0, shownErrors).map(({ metadata, spec }) => {
      const who = spec.actor.uid === '' ? '' : `, ${spec.actor.uid}`
      return `${moment(metadata.createTimestamp)} ${spec.outcome}: ${spec.message}${who}`
    }),
    mood: errors.some(({ spec }) => spec.outcome === 'failed') ? 'bad' : 'warning',
  }
}

/**
 * What there is to know or to do, the most urgent first, each with its next command.
 * @param command the command line of edgehostctl for this target, in the place of its name
 */
function nextLines({ attention, errors }: HostStatus, command: string): string[] {
  const ofHost = (attention ?? []).flatMap(({ message, command: next, sinceTimestamp: since }) => [
    `${oneLine(message)}${since === undefined ? '' : ` (since ${moment(since)})`}`,
    ...(next === undefined ? [] : [`-> ${oneLine(next).replace(/^edgehostctl(?= )/, command)}`]),
  ])
  return [...ofHost, ...(hasFailed(errors) ? ['an operation has failed', `-> ${command} audit list`] : [])]
}

const hasFailed = (errors: HostStatus['errors']) =>
  errors?.some(({ spec }) => spec.outcome === 'failed') === true

/** The mood of the most urgent one: what only goes on or waits is no warning. */
function moodOf({ attention, errors }: HostStatus): Fact['mood'] {
  const severities = new Set(attention?.map(({ severity }) => severity))
  if (severities.has('error')) return 'bad'
  return severities.has('warning') || hasFailed(errors) ? 'warning' : undefined
}

/** Reads replies of the API and shows them on one screen. */
export async function status({ client, output, target }: Context): Promise<undefined> {
  const host = await client.get<EdgeHostInfo>(hostPath, ['metadata', 'spec', 'status'])
  const service = await unlessForbidden(() => client.get<ServiceStatus>(`${hostPath}/status`, []))
  const platform =
    host.spec.connectionMode === 'connected'
      ? await client.get<PlatformLink>('/v1/edge-mgmt/platform', ['isConnected'])
      : undefined
  const cluster = host.status.isClusterPhase ? await readDetails({ client }) : undefined
  // A daemon of an older version does not have it.
  const attention = await getIfThere<AttentionList>(client, `${hostPath}/attention`, ['items'])
  const audits = await unlessForbidden(() => readAudits(client))
  const sessions = await client.list<SessionItem>('/v1/users/sessions', {}, 0)
  const found: HostStatus = {
    host,
    service,
    platform,
    cluster,
    attention: attention?.items,
    sessions: sessions.items,
    errors: audits && understand(() => audits.items.filter(({ spec }) => spec.outcome !== 'success')),
  }
  const prefix = target.kind === 'host' ? `edgehostctl --host ${target.name}` : 'edgehostctl'
  const value = {
    host,
    service: service ?? null,
    platform: platform ?? null,
    cluster: cluster ?? null,
    attention: found.attention ?? null,
    sessions: found.sessions,
    errors: found.errors ?? null,
  }
  await output.show(value, (paper) => renderStatus(found, { paper, command: prefix, now: Date.now() }))
  return undefined
}

const readAudits = (client: Client): Promise<Items<AuditView>> =>
  client.list<AuditView>(`${hostPath}/audits`, {}, 50)

/** `undefined` where the user may not read a reply. */
async function unlessForbidden<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Failure && error.message.includes('(Forbidden)')) return undefined
    throw error
  }
}
