// `inventory.cjs` (`src/inventory/program`) is the only program that loads systeminformation. It starts itself once for each call of the library,
// also runs `lsblk`, `lscpu`, `smartctl` and `ethtool`, cleans their output by `src/inventory/rules`, and writes JSON. The daemon runs it as a
// transient unit (`system/transient-unit.ts`) when it is due (`schedule.ts`), and stores the last reading in the database. The room `host` takes
// facts that the files of the kernel lack from the inventory (`host/fact.ts`), and the route of the inventory shows the facts of the host where
// these exist: docs/inventory.md.

import type { HostFiles } from '../host/files.ts'
import type { Host } from '../host/room.ts'
import type { Supplement } from '../host/fact.ts'
import type { Ground, Room } from '../root/room.ts'
import type { CommandRunner } from '../system/runner.ts'
import { listDevices, createReader } from './reader.ts'
import { inventoryRoutes } from './routes.ts'
import { supplementOf } from './rules/agree.ts'
import { createSchedule } from './schedule.ts'
import { openStoredInventory } from './stored-inventory.ts'

interface InventoryOptions {
  /** Runs the program outside the sandbox of the daemon. */
  readonly outside: CommandRunner
  /** Path of `inventory.cjs`. */
  readonly program: string
  readonly files: HostFiles
}

/** Limits of the program: it parses data that devices supply, and yields to all other work on the host. */
export const inventoryUnit = {
  description: 'inventory of the hardware',
  properties: [
    // A reading took 60 MiB at its peak; each disk that is read at the same time adds a smartctl.
    ...[
      'MemoryMax=256M',
      'TasksMax=128',
      'Nice=19',
      'CPUWeight=1',
      'IPAddressDeny=any',
      'NoNewPrivileges=yes',
    ],
    ...['ProtectSystem=strict', 'ProtectHome=yes', 'PrivateTmp=yes'],
    // A tool that hangs may outlive the program and ignore SIGTERM: systemd would wait 90 s for it and report a failed unit.
    ...['KillSignal=SIGKILL', 'TimeoutStopSec=5'],
    // If a tool is killed for its memory, only its own answer is lost.
    'OOMPolicy=continue',
  ],
}

/** The inventory in two steps, since the host needs its supplement and the room needs the host. */
export interface InventoryRoom {
  readonly supplement: Supplement
  /** Builds the room for the host whose facts the inventory agrees with. */
  with(host: Pick<Host, 'hardware' | 'refresh'>): Room
}

/** Hardware inventory of this machine: read by a program of its own, kept in the database. */
export function createInventory(ground: Ground, own: InventoryOptions): InventoryRoom {
  const { database, clock, log } = ground
  const { outside, files } = own
  const stored = openStoredInventory(database, log)
  return {
    supplement: supplementOf(() => stored.current()?.hardware),
    with(host) {
      const reader = createReader({
        ...ground,
        ...own,
        runner: outside,
        stored,
        onRead: () => host.refresh('seconds'),
      })
      const schedule = createSchedule({ clock, stored })
      const readIfDue = async () => {
        if (!reader.hasFailedLately() && schedule.isDue(await listDevices(files))) await reader.refresh()
      }
      return {
        async routes(app) {
          await inventoryRoutes(app, { stored, reader, hardware: host.hardware })
        },
        jobs: [{ name: 'inventory', schedule: '*/15 * * * * *', stuckAfterMs: 900_000, run: readIfDue }],
        stop: reader.stop,
      }
    },
  }
}
