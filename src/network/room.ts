// The network of this host. `links` reads it: what runs, from the kernel by ip(8), and what is configured, from the backend that owns each link:
// systemd-networkd, netplan (whose files are networkd's), NetworkManager, ifupdown. No link is moved from one to another. `backends` has the files of each
// of them, and plans a change as the two states of a `ChangeSet`; `preflight` says, before that, everything that speaks against it.
//
// The network is read when it is asked for, since the answer is about this moment, also during a change; requests at the same time share a reading.

import { createSharedRun } from '../base/shared-run.ts'
import { AppError } from '../errors/app-error.ts'
import type { HostFiles } from '../host/files.ts'
import type { Ground, ResetPart, Room } from '../root/room.ts'
import type { CommandRunner } from '../system/runner.ts'
import { networkErrors } from './codes.ts'
import type { NetworkSettings } from './config.ts'
import { openManagement, type Management } from './management.ts'
import { readLinks, type NetworkReading } from './links/links.ts'
import { createPlanner } from './planner.ts'
import { createLinksByName, type LinksByName } from './user-data.ts'
import { networkRoutes } from './routes.ts'
import { managementRoutes } from './routes-management.ts'
import { networkWriteRoutes, type NetworkWritesOptions } from './routes-writes.ts'
import type { Trials } from './trial/trials.ts'
import type { Shown } from './wire.ts'

export interface NetworkOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly findDevice: (address: string, link: string) => Promise<string | undefined>
  /** Addresses of the cluster on this host: of the node and of its control plane. */
  readonly clusterAddresses: () => readonly string[]
  readonly trials: Pick<Trials, 'start' | 'open' | 'lastEnded' | 'requireNone' | 'onEnd'>
  /** What a reset takes away of links. */
  readonly resetOfLinks: ResetPart
  readonly busy: NetworkWritesOptions['busy']
  readonly isPlatformConnected: NetworkWritesOptions['isPlatformConnected']
  /** Called after another link was chosen for management. */
  readonly onManagement: () => Promise<void>
}

/** The network of this host. */
export interface Network extends Room {
  readonly resetPart: ResetPart
  readonly management: Pick<Management, 'name'>
  readonly links: LinksByName
}

/** Builds the room. */
export function createNetwork(
  ground: Ground<{ readonly network: NetworkSettings }>,
  own: NetworkOptions,
): Network {
  const { config, database, log } = ground
  const { trials, onManagement } = own
  const management = openManagement(database)
  const { files, runner, findDevice, clusterAddresses } = own
  const readings = createSharedRun(() => readLinks({ files, runner }))
  const read = async (): Promise<NetworkReading> => {
    try {
      return await readings.run()
    } catch (error) {
      throw new AppError(networkErrors.NetworkUnreadable, (error as Error).message, { cause: error })
    }
  }
  const shown = (): Shown => ({
    clusterAddresses: new Set(clusterAddresses()),
  })
  const planner = createPlanner({ files, runner, read, findDevice, clusterAddresses })
  /** Not while a change is tried, since it may be taken back. */
  async function followAddress(): Promise<void> {
    if (management.name() === '' || trials.open() !== undefined) return
    const { links } = await read()
    if (trials.open() !== undefined || !management.follow(links)) return
    log.info({ link: management.name() }, 'the management interface has moved along with its address')
    await onManagement()
  }
  const followSoon = () => {
    followAddress().catch((error: unknown) =>
      log.warn(
        { err: error },
        'whether the management interface has moved could not be seen; the next start looks again',
      ),
    )
  }
  trials.onEnd(({ state }) => {
    if (state === 'confirmed') followSoon()
  })
  return {
    management,
    resetPart: {
      ...own.resetOfLinks,
      async describe() {
        const chosen = management.name()
        const choice = chosen === '' ? [] : [`the choice of ${chosen} as the management interface`]
        return [...(await own.resetOfLinks.describe()), ...choice]
      },
      async clear() {
        management.choose('', [])
        return own.resetOfLinks.clear()
      },
    },
    // A daemon that was killed may have missed the end of a change.
    background: followSoon,
    links: createLinksByName({ ...own, ...config.network, read, planner }),
    async routes(app) {
      await networkRoutes(app, { read, shown })
      await managementRoutes(app, { read, management, trials, onChoice: onManagement })
      await networkWriteRoutes(app, { ...own, ...config.network, read, planner })
    },
  }
}
