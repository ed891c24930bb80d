// The network of this host. `links` reads it: what runs, from the kernel by ip(8), and what is configured, from the backend that owns each link:
// systemd-networkd, netplan (whose files are networkd's), NetworkManager, ifupdown. No link is moved from one to another. `backends` has the files of each
// of them, and plans a change as the two states of a `ChangeSet`; `preflight` says, before that, everything that speaks against it.
//
// The network is read when it is asked for, since the answer is about this moment, also during a change; requests at the same time share a reading.

import { AppError } from '../errors/app-error.ts'
import type { HostFiles } from '../host/files.ts'
import type { Ground, Room } from '../root/room.ts'
import type { CommandRunner } from '../system/runner.ts'
import { networkErrors } from './codes.ts'
import type { NetworkSettings } from './config.ts'
import { readLinks, type NetworkReading } from './links/links.ts'
import { createPlanner, type Planner } from './planner.ts'
import { networkRoutes } from './routes.ts'
import { networkWriteRoutes, type NetworkWritesOptions } from './routes-writes.ts'
import type { Shown } from './wire.ts'

export interface NetworkOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly findDevice: (address: string, link: string) => Promise<string | undefined>
  /** Addresses of the cluster on this host: of the node and of its control plane. */
  readonly clusterAddresses: () => readonly string[]
  readonly trials: NetworkWritesOptions['trials']
}

/** The network of this host. */
export interface Network extends Room {
  /** Reads it now; calls during a reading share the next one. @throws AppError NetworkUnreadable */
  read(): Promise<NetworkReading>
  readonly planner: Planner
}

/** Builds the room. */
export function createNetwork(
  ground: Ground<{ readonly network: NetworkSettings }>,
  own: NetworkOptions,
): Network {
  const { config } = ground
  const { files, runner, findDevice, clusterAddresses } = own
  let running: Promise<NetworkReading> | undefined
  let next: Promise<NetworkReading> | undefined

  const start = (): Promise<NetworkReading> => {
    running = readLinks({ files, runner }).finally(() => (running = undefined))
    return running
  }
  // One that runs may have begun before the change that the caller wants to see.
  const startNext = () => {
    next = undefined
    return start()
  }
  const read = async (): Promise<NetworkReading> => {
    try {
      return await (running === undefined ? start() : (next ??= running.then(startNext, startNext)))
    } catch (error) {
      throw new AppError(networkErrors.NetworkUnreadable, (error as Error).message, { cause: error })
    }
  }
  const shown = (): Shown => ({
    clusterAddresses: new Set(clusterAddresses()),
  })
  const planner = createPlanner({ files, runner, read, findDevice, clusterAddresses })
  return {
    read,
    planner,
    async routes(app) {
      await networkRoutes(app, { read, shown, selected: () => '' })
      await networkWriteRoutes(app, { ...own, ...config.network, read, planner })
    },
  }
}
