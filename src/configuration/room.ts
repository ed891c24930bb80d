// The configuration of this host that users set over the API: its proxies and authorities (`configuration.ts`).

import { networkInterfaces } from 'node:os'
import type { ExternalRegistry } from '../content/registry/external-registry.ts'
import { createSeal } from '../secrets/seal.ts'
import { isThere } from '../system/files.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import type { Ground, Room } from '../root/room.ts'
import type { Verbs } from '../verbs/call.ts'
import { createConfiguration, type ConfiguredCluster } from './configuration.ts'
import { createPlatformLinker } from './platform-link.ts'
import { restartDaemon } from '../power/verbs.ts'
import { activeUnits } from './place.ts'
import { configurationRoutes } from './routes.ts'
import { userDataRoutes } from './routes-user-data.ts'
import { createUserData, type UserDataOptions } from './user-data.ts'
import { openUserDataStore } from './user-data-store.ts'
import { openConfigurationStore } from './store.ts'
import { authorityProgram } from './placement.ts'
import { createStagesRunner } from './stages-runner.ts'
import { placeConfiguration, runStages } from './verbs.ts'
import type { UserDataSettings } from './config.ts'

interface ConfigurationRoomOptions {
  readonly verbs: Verbs
}

/** What user data is applied by, of other rooms. */
type UserDataParts = Omit<UserDataOptions, 'store' | 'configuration' | 'clock' | 'takesStages' | 'linker'>

export interface ConfigurationRoom extends Room {
  /** The way of outgoing calls of the daemon. */
  readonly way: HostWay
  /** The registry of others that user data has. */
  externalRegistry(): ExternalRegistry | undefined
  /** Before the start. */
  attachCluster(cluster: ConfiguredCluster): void
  /** What user data is applied by; before the routes are added. */
  attachParts(parts: UserDataParts): void
  /** Registers a listener, called when the way of outgoing calls is another one. */
  onChange(listener: () => void): void
}

const noCluster: ConfiguredCluster = {
  ranges: async () => ({ networks: [], addresses: [] }),
  busy: () => [],
}

/** Builds the room. */
export function createConfigurationRoom(
  ground: Ground<{ readonly userData: UserDataSettings }>,
  { verbs }: ConfigurationRoomOptions,
): ConfigurationRoom {
  const { config, database, secrets, runner, record, clock, log } = ground
  let cluster = noCluster
  let parts: UserDataParts | undefined
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
  const userData = openUserDataStore(database, createSeal(secrets.derive('user data of the host')))
  const stages = createStagesRunner({
    store: userData,
    // Who has sent them was an administrator.
    run: async (steps) => verbs.call(runStages, { steps: [...steps] }, 'service'),
    record,
    clock,
    log,
  })
  let isRestartWanted = false
  /** A restart for the link to a platform would cut stages off. */
  async function turn(): Promise<void> {
    await stages.tick()
    if (!isRestartWanted || stages.busy().length > 0) return
    isRestartWanted = false
    try {
      await verbs.call(restartDaemon, {}, 'service')
    } catch (error) {
      log.error(
        { err: error },
        'the link to the platform is written, and edgehostd could not be started anew; run: systemctl restart edgehostd',
      )
    }
  }
  return {
    way: configuration.way,
    externalRegistry: () => userData.current()?.registry,
    attachCluster: (attached) => void (cluster = attached),
    attachParts: (attached) => void (parts = attached),
    onChange: (listener) => void listeners.push(listener),
    async routes(app) {
      await configurationRoutes(app, { configuration })
      if (!parts) throw new Error('user data has no parts that apply it')
      await userDataRoutes(app, {
        userData: createUserData({
          ...parts,
          store: userData,
          configuration,
          linker: createPlatformLinker(verbs),
          takesStages: config.userData.stages,
          clock,
        }),
        restart: () => void (isRestartWanted = true),
      })
    },
    jobs: [
      {
        name: 'configuration of the host',
        schedule: '* * * * * *',
        stuckAfterMs: 600_000,
        run: configuration.tick,
      },
      {
        name: 'user data',
        schedule: '* * * * * *',
        stuckAfterMs: 2_000_000,
        run: turn,
      },
    ],
    prepare: stages.resume,
    attention: () => [...configuration.attention(), ...stages.attention()],
    busy: () => [...configuration.busy(), ...stages.busy()],
  }
}
