import { program } from '../base/program.ts'
import { formatTime } from '../base/time.ts'
import type { Attention, Room } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { AttentionList, ServiceStatus } from './schemas.ts'

const dayMs = 86_400_000
const soonDays = 30
const leastFreeShare = 0.1

/** What the daemon itself needs of an operator. Pure. @param now milliseconds since 1970 */
export function attentionOfService(
  { failing, notes, state, unwrittenAudits, certificate }: Omit<ServiceStatus, 'mode'>,
  { stateDirectory, now }: { readonly stateDirectory: string; readonly now: number },
): Attention[] {
  const { freeBytes, totalBytes } = state
  const { isOwn, expirationTimestamp } = certificate
  const leftMs = Date.parse(expirationTimestamp) - now
  const day = expirationTimestamp.slice(0, 10)
  const found: Attention[] = []
  if (failing.length > 0)
    found.push({
      code: 'NotReady',
      severity: 'error',
      message: `${program.daemon} is not ready: ${failing.join(', ')}`,
      command: `journalctl -u ${program.daemon} -p warning -n 20`,
    })
  if (freeBytes < leastFreeShare * totalBytes)
    found.push({
      code: 'StateDiskFull',
      severity: 'error',
      message: `the file system of ${stateDirectory} is nearly full: less than ${leastFreeShare * 100} % of it is free`,
      command: `df -h ${stateDirectory}`,
    })
  if (leftMs < soonDays * dayMs) {
    const end = leftMs < 0 ? `ended ${day}` : `ends ${day}`
    found.push({
      code: 'CertificateEnding',
      severity: leftMs < 0 ? 'error' : 'warning',
      ...(isOwn
        ? {
            message: `the certificate of this host ${end}, and should have been renewed`,
            command: `journalctl -u ${program.daemon} -g certificate`,
          }
        : {
            message: `the certificate of this host ${end}: put a new one in its place, then have it read`,
            command: `systemctl reload ${program.daemon}`,
          }),
    })
  }
  if (notes.length > 0)
    found.push({
      code: 'CheckFails',
      severity: 'warning',
      message: `checks fail: ${notes.join(', ')}`,
      command: `journalctl -u ${program.daemon} -p warning`,
    })
  if (unwrittenAudits > 0)
    found.push({
      code: 'AuditsUnwritten',
      severity: 'warning',
      message: `audit records that are only in the journal: ${unwrittenAudits}`,
      command: `${program.ctl} audit verify`,
    })
  return found
}

interface AttentionOptions {
  /** Those of all rooms. */
  readonly sources: readonly NonNullable<Room['attention']>[]
  readonly status: () => Promise<Omit<ServiceStatus, 'mode'>>
  readonly stateDirectory: string
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

const weights = { error: 0, warning: 1, info: 2 } as const

/** Collects what an operator has to know or to do; the most urgent first. */
export function createAttention({ sources, status, stateDirectory, clock, log }: AttentionOptions) {
  const ofService = async () => attentionOfService(await status(), { stateDirectory, now: clock.now() })
  return async (): Promise<AttentionList> => {
    const found = await Promise.all(
      [ofService, ...sources].map(async (source) => {
        try {
          return await source()
        } catch (error) {
          log.warn({ err: error }, 'a part of the daemon could not say what it needs')
          return [
            {
              code: 'AttentionUnknown',
              severity: 'warning',
              message: 'a part of the daemon could not say what it needs',
              command: `journalctl -u ${program.daemon} -p warning`,
            } as const,
          ]
        }
      }),
    )
    const items = found.flat().toSorted((one, other) => weights[one.severity] - weights[other.severity])
    return {
      items: items.map(({ since, object, ...item }) => ({
        ...item,
        ...(object === undefined ? {} : { object: { ...object } }),
        ...(since === undefined ? {} : { sinceTimestamp: formatTime(since) }),
      })),
    }
  }
}
