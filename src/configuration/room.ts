// The configuration of this host that users set over the API: its proxies and authorities (`configuration.ts`).

import { networkInterfaces } from 'node:os'
import { createSeal } from '../secrets/seal.ts'
import { isThere } from '../system/files.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import type { Ground, Room } from '../root/room.ts'
import type { Verbs } from '../verbs/call.ts'
import { createConfiguration, type ConfiguredCluster } from './configuration.ts'
import { activeUnits } from './place.ts'
import { configurationRoutes } from './routes.ts'
import { userDataRoutes } from './routes-user-data.ts'
import { createUserData, type UserDataOptions } from './user-data.ts'
import { openConfigurationStore } from './store.ts'
import { authorityProgram } from './placement.ts'
import { placeConfiguration } from './verbs.ts'

interface ConfigurationRoomOptions {
  readonly verbs: Verbs
}

export interface ConfigurationRoom extends Room {
  /** The way of outgoing calls of the daemon. */
  readonly way: HostWay
  /** Before the start. */
  attachCluster(cluster: ConfiguredCluster): void
  /** What user data is applied by; before the routes are added. */
  attachParts(parts: Omit<UserDataOptions, 'database' | 'configuration' | 'clock'>): void
  /** Registers a listener, called when the way of outgoing calls is another one. */
  onChange(listener: () => void): void
}

const noCluster: ConfiguredCluster = {
  ranges: async () => ({ networks: [], addresses: [] }),
  busy: () => [],
}

/** Builds the room. */
export function createConfigurationRoom(
  ground: Ground,
  { verbs }: ConfigurationRoomOptions,
): ConfigurationRoom {
  const { database, secrets, runner, record, clock, log } = ground
  let cluster = noCluster
  let parts: Omit<UserDataOptions, 'database' | 'configuration' | 'clock'> | undefined
  const listeners: (() => void)[] = []
  const configuration = createConfiguration({
    store: openConfigurationStore(
      database,
      createSeal(secrets.derive('configuration of the host')),
      secrets.derive('marks of the configuration of the host'),
    ),
    place: async (placement) => verbs.call(placeConfiguration, placement, 'service'),
    activeUnits: () => activeUnits((args) => runner.run('systemctl', args, { timeoutMs: 10_000 })),
    canTrust: () => isThere(authorityProgram),
    addresses: () =>
      Object.values(networkInterfaces()).flatMap((each = []) =>
        each.flatMap(({ cidr, internal }) => (cidr === null || internal ? [] : [cidr])),
      ),
    cluster: { ranges: () => cluster.ranges(), busy: () => cluster.busy() },
    onChange: () => listeners.forEach((listener) => listener()),
    record,
    clock,
    log,
  })
  return {
    way: configuration.way,
    attachCluster: (attached) => void (cluster = attached),
    attachParts: (attached) => void (parts = attached),
    onChange: (listener) => void listeners.push(listener),
    async routes(app) {
      await configurationRoutes(app, { configuration })
      if (!parts) throw new Error('user data has no parts that apply it')
      await userDataRoutes(app, { userData: createUserData({ ...parts, database, configuration, clock }) })
    },
    jobs: [
      {
        name: 'configuration of the host',
        schedule: '* * * * * *',
        stuckAfterMs: 600_000,
        run: configuration.tick,
      },
    ],
    attention: configuration.attention,
    busy: configuration.busy,
  }
}
