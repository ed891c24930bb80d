import type { ClusterDetails } from '../../../cluster/schemas.ts'
import type { ContentUsage } from '../../../content/schemas.ts'
import type { EdgeHostInfo, HostUsage } from '../../../host/schemas.ts'
import type { AttentionList } from '../../../service/schemas.ts'
import type { PlatformLink } from '../../../uplink/schemas.ts'
import { bytes, day, plain, span, time } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import { Disks, Nics } from '../../shared/machine.tsx'
import { Badge, Card, Command, Facts, PageHeader, Shown, type Mood } from '../../shared/parts.tsx'
import { useReading, type Reading } from '../../shared/read.ts'
import { clockAheadMs, hostNow, lastContact } from '../../shared/request.ts'
import { api, hostPath, remote, text } from '../host.tsx'
import { moodOfCluster } from './cluster.tsx'

const moods = { error: 'bad', warning: 'warning', info: 'info' } as const

/** A clock that is off by more ends sessions and certificates too early, or too late. */
const badClockMs = 60_000

export function Overview() {
  const t = text.value.overview
  const host = useReading<EdgeHostInfo>(`${api}/edgehosts/current`, 10_000)
  const attention = useReading<AttentionList>(`${api}/edgehosts/current/attention`, 10_000)
  // One that is not there would be an error in the console of the browser.
  const cluster = useReading<ClusterDetails>(
    host.body?.status.isClusterPhase === true ? `${api}/cluster/details?kubeconfig=false` : undefined,
    10_000,
  )
  const usage = useReading<ContentUsage>(`${api}/content/usage`, 60_000)
  const link = useReading<PlatformLink>(`${api}/platform`, 30_000)
  const now = useReading<HostUsage>(`${hostPath}/usage`, 30_000)
  const { status, metadata, spec } = host.body ?? {}
  const address = spec?.networkInfo.find(({ isDefault }) => isDefault)?.ip
  return (
    <>
      <PageHeader title={status?.hostName ?? metadata?.name ?? location.hostname}>
        {[address, host.body && t.checked(time(lastContact.value))].filter(Boolean).join(' · ')}
      </PageHeader>
      {attention.body && <Attention items={attention.body.items} />}
      <div class="grid">
        <ClusterCard reading={cluster} isAbsent={host.body?.status.isClusterPhase === false} />
        <Card
          title={text.value.content.title}
          icon="content"
          width="third"
          aside={<a href="#/content">{t.open}</a>}
        >
          <Shown reading={usage} lines={2}>
            {({ bundles, storedBytes, fileSystem }) => (
              <>
                <p class="big">{t.images(bundles)}</p>
                <p class="dim">{t.room(bytes(fileSystem.availableBytes), bytes(storedBytes))}</p>
              </>
            )}
          </Shown>
        </Card>
        <Card title={t.platform} icon="link" width="third">
          <Shown reading={link} lines={2}>
            {({ mode, isConnected, url, cause }) =>
              mode === 'airgap' ? (
                <>
                  <p class="big">{t.airgap}</p>
                  <p class="dim">{t.airgapLong}</p>
                </>
              ) : (
                <>
                  <p>
                    <Badge mood={isConnected ? 'good' : 'warning'}>
                      {isConnected ? t.connected : t.notConnected}
                    </Badge>
                  </p>
                  <p class="dim">{cause ? plain(cause.message) : url}</p>
                </>
              )
            }
          </Shown>
        </Card>
        <Card title={t.thisHost} icon="host" width="half">
          <Shown reading={host} lines={8}>
            {(body) => <HostFacts host={body} now={now.body} />}
          </Shown>
        </Card>
        <div class="half stack">
          <Card title={t.disks} icon="disk">
            <Shown reading={host}>
              {({ spec: { hardwareSpec } }) => <Disks disks={hardwareSpec.disks} />}
            </Shown>
          </Card>
          <Card title={t.network} icon="network" aside={<a href="#/network">{t.open}</a>}>
            <Shown reading={host}>{({ spec: { networkInfo } }) => <Nics nics={networkInfo} />}</Shown>
          </Card>
        </div>
      </div>
      <Command command={remote('status')} />
    </>
  )
}

/** What needs the operator, the most urgent first; and a clock that differs from that of this device. */
function Attention({ items }: AttentionList) {
  const t = text.value.overview
  const ahead = clockAheadMs.value
  const clock =
    Math.abs(ahead) > badClockMs
      ? [(ahead > 0 ? t.clockAhead : t.clockBehind)(span(Math.abs(ahead) / 1_000))]
      : []
  const problems = items.filter(({ severity }) => severity !== 'info').length + clock.length
  const mood: Mood = items.some(({ severity }) => severity === 'error')
    ? 'bad'
    : problems > 0
      ? 'warning'
      : 'good'
  return (
    <section class={`hero ${mood}`} aria-live="polite">
      <Icon name={mood} />
      <div>
        <h2>{problems > 0 ? t.trouble(problems) : items.length > 0 ? t.working : t.good}</h2>
        {items.length + clock.length > 0 && (
          <ul>
            {clock.map((message) => (
              <li key={message}>
                <Icon name="warning" />
                <span>{message}</span>
              </li>
            ))}
            {items.map(({ code, severity, message, command, sinceTimestamp }) => (
              <li key={`${code} ${message}`}>
                <Icon name={moods[severity]} />
                <span>
                  {plain(message)}
                  {sinceTimestamp !== undefined && (
                    <span class="dim">
                      {' '}
                      {t.since(span((hostNow() - Date.parse(sinceTimestamp)) / 1_000))}
                    </span>
                  )}
                  {command !== undefined && (
                    <>
                      <br />
                      <code>{plain(command)}</code>
                    </>
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  )
}

function ClusterCard({ reading, isAbsent }: { reading: Reading<ClusterDetails>; isAbsent: boolean }) {
  const t = text.value.cluster
  return (
    <Card
      title={t.title}
      icon="cluster"
      width="third"
      aside={<a href="#/cluster">{text.value.overview.open}</a>}
    >
      {isAbsent ? (
        <>
          <p class="big">{t.none}</p>
          <p class="dim">{t.noneLong}</p>
        </>
      ) : (
        <Shown reading={reading} lines={2}>
          {(details) => (
            <>
              <p class="big">{plain(details.metadata.name ?? '')}</p>
              <p>
                <Badge mood={moodOfCluster(details)}>{t.states[details.status.clusterState]}</Badge>
              </p>
              <p class="dim">
                {t.kubernetes}&nbsp;{details.status.k8sVersion} · {t.revision}&nbsp;{details.status.revision}
              </p>
            </>
          )}
        </Shown>
      )}
    </Card>
  )
}

function clockText(now: HostUsage | undefined): string | undefined {
  const t = text.value.overview
  if (now?.clock.isSynchronized === undefined) return undefined
  return now.clock.isSynchronized ? t.synchronized : t.notSynchronized
}

interface HostFactsProps {
  readonly host: EdgeHostInfo
  readonly now: HostUsage | undefined
}

function HostFacts({ host: { metadata, spec, status }, now }: HostFactsProps) {
  const t = text.value.overview
  const { os, cpu, memory, archType } = spec.hardwareSpec
  const words = (...parts: readonly (string | undefined)[]) => parts.filter(Boolean).join(' ')
  return (
    <Facts
      facts={[
        [t.name, status.hostName ?? metadata.name],
        [t.id, <code>{metadata.id}</code>],
        [
          t.os,
          [words(os.family, os.version), words(os.kernel, os.kernelVersion)].filter(Boolean).join(' · '),
        ],
        [t.processor, [archType, cpu.cores && t.cores(cpu.cores)].filter(Boolean).join(' · ')],
        [
          t.memory,
          now?.memory
            ? t.usedOf(bytes(now.memory.usedBytes), bytes(now.memory.totalBytes))
            : bytes((memory.sizeInMB ?? 0) * 1024 ** 2),
        ],
        [
          t.load,
          now?.load && [now.load.oneMinute, now.load.fiveMinutes, now.load.fifteenMinutes].join(' · '),
        ],
        [t.uptime, now?.uptimeSeconds !== undefined && span(now.uptimeSeconds)],
        [t.clock, clockText(now)],
        spec.hostInfo.secureBoot !== undefined && [t.secureBoot, spec.hostInfo.secureBoot ? t.on : t.off],
        [t.version, status.agentVersion],
        [t.nameServers, status.dns.nameservers.join(', ') || '–'],
        [t.timeServers, [...status.ntp.ntpServers, ...status.ntp.fallbackNtpServers].join(', ') || '–'],
        [t.inUseSince, day(metadata.creationTimestamp)],
      ]}
    />
  )
}
