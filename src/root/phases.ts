import type { Api } from '../api/room.ts'
import type { Room } from './room.ts'
import type { Daemon } from './run-program.ts'
import type { State } from './state.ts'
import type { AnonymousLog } from '../system/anonymous-log.ts'
import type { Logger } from '../system/log.ts'

export interface PhasesOptions {
  /** Every room, in the order of the start. */
  readonly rooms: readonly Room[]
  readonly api: Api
  /** Number of sockets that systemd has passed to the daemon. */
  readonly inherited: number
  readonly state: State
  /** Aborted when a stop begins. */
  readonly stop: AbortController
  readonly anonymousLog: AnonymousLog
  readonly log: Logger
}

// Background work waits, so that the first requests are answered fast. On a host, a request for facts starts their first reading itself.
const backgroundAfterMs = 1_000

/** Calls the phases of the rooms in their order, with the port between: see docs/architecture.md. */
export function createPhases(options: PhasesOptions): Daemon {
  const { rooms, api, inherited, state, stop, anonymousLog, log } = options
  let background: NodeJS.Timeout | undefined
  return {
    async start() {
      for (const room of rooms) await room.prepare?.()
      const port = await api.listen(inherited)
      for (const room of rooms) await room.start?.(port)
      background = setTimeout(() => rooms.forEach((room) => room.background?.()), backgroundAfterMs)
    },
    async stop() {
      stop.abort()
      clearTimeout(background)
      await api.close()
      for (const room of rooms.toReversed()) await room.stop?.()
      anonymousLog.stop()
      await state.close()
      log.info('stopped')
    },
    async reload() {
      for (const room of rooms) await room.reload?.()
    },
  }
}
