import type { Busy, BusyReason, Ground, ResetPart, Room } from '../root/room.ts'
import type { Verbs } from '../verbs/call.ts'
import { describeConfiguration } from './remove-configuration.ts'
import { createReset, type ResetPhase } from './reset.ts'
import { powerRoutes } from './routes.ts'
import { createStopStore } from './stop-store.ts'
import { createStops, type ClusterOfStops, type PowerEvent } from './stops.ts'
import { removeConfiguration, restartDaemon } from './verbs.ts'

interface PowerOptions {
  readonly busy: Busy
  readonly verbs: Verbs
  /** The id of this boot of the host. */
  readonly bootId: () => Promise<string>
  readonly cluster: ClusterOfStops
  readonly hostName: () => string
  /** The platform that manages this host; undefined for none. */
  readonly platform: () => string | undefined
  /** What a reset removes of other rooms. */
  readonly parts: Readonly<Record<Exclude<ResetPhase, 'configuration'>, ResetPart>>
  /** Ends every session. @param reason for the trail */
  readonly endSessions: (reason: string) => void
  readonly onEvent: (event: PowerEvent) => void
}

// Pods that a stop has ended are reported for some time after the API server answers again.
const settlesForMs = 180_000

/** The room, as other rooms use it. */
export interface PowerRoom extends Room {
  /** The reset that is under way; empty for none. */
  underReset(): readonly BusyReason[]
}

/** Builds the room of reboot, shutdown and reset. */
export function createPower(ground: Ground, own: PowerOptions): PowerRoom {
  const { database, stateDirectory, runner, record, clock, log } = ground
  const { cluster, verbs, endSessions } = own
  const stops = createStops({ ...own, store: createStopStore(database), runner, record, clock, log })
  const reset = createReset({
    ...own,
    database,
    stateDirectory,
    parts: {
      ...own.parts,
      configuration: {
        describe: describeConfiguration,
        async clear() {
          await verbs.call(removeConfiguration, {}, 'service')
          return true
        },
      },
    },
    restart: async () => {
      await verbs.call(restartDaemon, {}, 'service')
    },
    record,
    clock,
    log,
  })
  /** Until when the cluster is settled after a stop, monotonic milliseconds; undefined while its API has not answered. */
  let settlesUntil: number | undefined
  let isSettled = false

  async function settle(): Promise<void> {
    if (isSettled || stops.busy().length > 0 || !(await cluster.settle())) return
    settlesUntil ??= clock.monotonic() + settlesForMs
    isSettled = clock.monotonic() > settlesUntil
  }

  return {
    async routes(app) {
      await powerRoutes(app, {
        stops,
        reset,
        stateDirectory,
        onReset: () => endSessions('the host is reset'),
      })
    },
    jobs: [
      { name: 'stop of the host', schedule: '* * * * * *', stuckAfterMs: 600_000, run: stops.tick },
      { name: 'reset of the host', schedule: '* * * * * *', stuckAfterMs: 6 * 3_600_000, run: reset.tick },
      { name: 'cluster after a stop', schedule: '*/10 * * * * *', stuckAfterMs: 300_000, run: settle },
    ],
    attention: () => [...stops.attention(), ...reset.attention()],
    busy: () => [...stops.busy(), ...reset.busy()],
    underReset: reset.busy,
    async start() {
      try {
        stops.begin(await own.bootId())
      } catch (error) {
        // A full disk, or a systemd that does not answer, keeps no daemon from its work.
        log.error(
          { err: error },
          'it could not be noted how the host came back; see: systemctl is-system-running',
        )
      }
    },
    stop() {
      try {
        stops.end()
      } catch (error) {
        log.error(
          { err: error },
          'the end of the daemon could not be noted; the next boot counts as disorderly',
        )
      }
    },
  }
}
