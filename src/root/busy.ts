import { hostApiErrors } from '../api/codes.ts'
import { AppError } from '../errors/app-error.ts'
import type { Logger } from '../system/log.ts'
import type { Busy, BusyReason, Room } from './room.ts'

/**
 * Asks the rooms what they are busy with. A room that cannot say it counts as busy. Nothing comes between a question and what its caller does
 * next, unless that waits: of two operations that exclude each other the second one finds the first.
 * @param rooms asked for at each call, since a room that needs the answer is built before others
 */
export function createBusy(rooms: () => readonly Room[], log: Pick<Logger, 'warn'>): Busy {
  function reasonsOf({ busy }: Room): readonly BusyReason[] {
    try {
      return busy?.() ?? []
    } catch (error) {
      log.warn({ err: error }, 'a part of the daemon could not say whether it is busy')
      return [{ reason: 'Unknown', message: 'a part of edgehostd could not say whether it is busy' }]
    }
  }
  const reasons = () => rooms().flatMap(reasonsOf)
  return {
    reasons,
    refuse(what, concerns = () => true) {
      const found = reasons().filter(concerns)
      if (found.length === 0) return
      throw new AppError(
        hostApiErrors.Busy,
        `${what} would break off or disturb what this host does: ${found.map(({ message }) => message).join('; ')}`,
        { details: { reasons: found } },
      )
    },
  }
}

/** The refusal of all changes while the host is being reset. @param reset the sentence about it; empty for none */
export function refusalInReset(reset: readonly BusyReason[]): AppError | undefined {
  const [first] = reset
  return (
    first &&
    new AppError(hostApiErrors.Busy, `${first.message}; nothing can be changed until that is done`, {
      details: { reasons: reset },
    })
  )
}

/** Reasons of the host as a whole: changes of its cluster and of what a reset removes wait for these. */
export const isOfHost = ({ reason }: BusyReason): boolean =>
  ['NetworkChange', 'Reset', 'HostStopping', 'Stages'].includes(reason)
