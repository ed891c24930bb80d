import { clientOf as clientAmong, type ClientOf } from '../base/client.ts'
import { inSeconds, sampleEach } from '../base/sample.ts'
import type { FiguresOf, Ground, Room } from '../root/room.ts'
import type { CommandFollower } from '../system/follower.ts'
import type { about } from './about.ts'
import type { HostSettings } from './config.ts'
import { createChangeWatches } from './change-watch.ts'
import { notApplicable, outOfCluster, type HostInCluster, type PlatformOfHostInfo } from './document.ts'
import { createOwnAddresses } from './network/network.ts'
import { hostRoutes } from './routes.ts'
import { settingsOf } from './settings.ts'
import { createSnapshot, type Snapshot, type SnapshotOptions } from './snapshot.ts'
import { readUsage } from './usage.ts'

interface HostOptions extends Pick<SnapshotOptions, 'record' | 'files' | 'privileged' | 'supplement'> {
  readonly follower: CommandFollower
  /** Replaces parts of the snapshot, for tests that need fixed facts. */
  readonly facts?: Partial<Snapshot> | undefined
}

/** Facts of this machine. */
export interface Host
  extends
    Room,
    Pick<
      Snapshot,
      | 'current'
      | 'firstReading'
      | 'hostName'
      | 'addresses'
      | 'nics'
      | 'onNamesChange'
      | 'hardware'
      | 'refresh'
    > {
  /** Says which addresses count as one client, by the present addresses of this host. */
  readonly clientOf: ClientOf
  /** From now on the document has the state of this host in the cluster. */
  attachCluster(cluster: { hostInCluster(): HostInCluster }): void
  /** From now on the document, and the order of the addresses, have the choice of the management interface. */
  attachManagement(management: { name(): string }): void
  /** From now on the document has the state of the link to the platform. */
  attachPlatform(platform: { inHostInfo(): PlatformOfHostInfo }): void
}

/** Builds the room. Host name and addresses are known when it returns, the other facts after the first reading. */
export async function createHost(
  ground: Ground<{ readonly host: HostSettings }>,
  own: HostOptions,
): Promise<Host> {
  const { version, log } = ground
  const { files, follower, facts } = own
  const config = ground.config.host
  const ownAddresses = createOwnAddresses(files)
  await ownAddresses.refresh()
  let cluster: Parameters<Host['attachCluster']>[0] = { hostInCluster: () => outOfCluster }
  let platform: Parameters<Host['attachPlatform']>[0] = { inHostInfo: () => notApplicable }
  let management: Parameters<Host['attachManagement']>[0] = { name: () => '' }
  const snapshot = {
    ...createSnapshot({
      ...ground,
      ...own,
      config,
      agentVersion: version,
      cluster: () => cluster.hostInCluster(),
      platform: () => platform.inHostInfo(),
      management: () => management.name(),
    }),
    ...facts,
  }
  await snapshot.refreshNames()
  const watches = createChangeWatches({ follower, log }, (part) => void snapshot.refresh(part))

  return {
    current: snapshot.current,
    firstReading: snapshot.firstReading,
    hostName: snapshot.hostName,
    addresses: snapshot.addresses,
    nics: snapshot.nics,
    onNamesChange: snapshot.onNamesChange,
    hardware: snapshot.hardware,
    refresh: snapshot.refresh,
    attachCluster: (attached) => void (cluster = attached),
    attachManagement: (attached) => void (management = attached),
    attachPlatform: (attached) => void (platform = attached),
    clientOf: (address) => clientAmong(address, ownAddresses.current()),
    async routes(app) {
      const usage = () => readUsage(files, snapshot)
      await hostRoutes(app, { snapshot, usage, settings: settingsOf(config.mode) })
    },
    jobs: [
      {
        name: 'host facts, seconds',
        schedule: '*/5 * * * * *',
        stuckAfterMs: 300_000,
        run: () => snapshot.refresh('seconds', ...watches.unwatched()),
      },
      {
        name: 'own addresses',
        schedule: '*/5 * * * * *',
        stuckAfterMs: 300_000,
        run: () => ownAddresses.refresh(),
      },
      {
        name: 'host facts, minutes',
        schedule: '32 */5 * * * *',
        stuckAfterMs: 900_000,
        run: () => snapshot.refresh('minutes', 'network', 'mounts', 'services'),
      },
    ],
    figures(): FiguresOf<typeof about.families> {
      const readings = snapshot.readings()
      const byName = ({ name }: { readonly name: string }) => ({ fact: name })
      return {
        edgehostd_fact_age_seconds: sampleEach(
          readings,
          ({ name, refreshClass }) => ({ fact: name, refresh: refreshClass }),
          ({ ageMs }) => inSeconds(ageMs),
        ),
        edgehostd_fact_read_duration_seconds: sampleEach(readings, byName, ({ durationMs }) =>
          inSeconds(durationMs),
        ),
        edgehostd_fact_failing: sampleEach(readings, byName, ({ isFailing }) => Number(isFailing)),
      }
    },
    states: [
      {
        type: 'host',
        access: 'viewer',
        paths: ['/v1/edge-mgmt/edgehosts/current', '/v1/edge-mgmt/edgehosts/current/attention'],
        read: () => ({ hostName: snapshot.hostName(), addresses: snapshot.addresses() }),
        behind: () => snapshot.current()?.etag,
      },
      {
        type: 'link',
        access: 'viewer',
        paths: [
          ...['interfaces', 'bonds', 'vlans', 'bridges'].map((name) => `/v1/edge-mgmt/network/${name}`),
          '/v1/edge-mgmt/edgehosts/current',
        ],
        read: () => snapshot.nics().map(({ nicName, ip, isDefault }) => ({ nicName, ip, isDefault })),
      },
    ],
    checks: [{ name: 'host facts', kind: 'ready', holds: () => snapshot.current() !== undefined }],
    attention: () =>
      snapshot.failures().map(({ fact, message }) => ({
        code: 'FactUnreadable',
        severity: 'warning',
        message: `the fact ${fact} could not be read: ${message}`,
        command: 'journalctl -u edgehostd -p warning',
        object: { kind: 'fact', name: fact },
      })),
    background() {
      void snapshot.firstReading()
      watches.start()
    },
    stop() {
      watches.stop()
      snapshot.stop()
    },
  }
}
