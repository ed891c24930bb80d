import { hostApiErrors } from '../api/codes.ts'
import { AppError } from '../errors/app-error.ts'
import type { Logger } from '../system/log.ts'
import type { Busy, BusyReason, Room } from './room.ts'

/**
 * Asks the rooms what they are busy with. A room that cannot say it counts as busy.
 * @param rooms asked for at each call, since a room that needs the answer is built before others
 */
export function createBusy(rooms: () => readonly Room[], log: Pick<Logger, 'warn'>): Busy {
  async function reasonsOf({ busy }: Room): Promise<readonly BusyReason[]> {
    try {
      return (await busy?.()) ?? []
    } catch (error) {
      log.warn({ err: error }, 'a part of the daemon could not say whether it is busy')
      return [{ reason: 'Unknown', message: 'a part of edgehostd could not say whether it is busy' }]
    }
  }
  const reasons = async () => (await Promise.all(rooms().map(reasonsOf))).flat()
  return {
    reasons,
    async refuse(what) {
      const found = await reasons()
      if (found.length === 0) return
      throw new AppError(
        hostApiErrors.Busy,
        `${what} would break off what this host does: ${found.map(({ message }) => message).join('; ')}`,
        { details: { reasons: found } },
      )
    },
  }
}
