import type { CommandLine } from '../../ctl/command.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parsePointInTime } from '../../ctl/point-in-time.ts'
import type { Order } from './change-host.ts'
import type { Chosen } from './choose-definition.ts'
import { readGiven } from '../../ctl/given-values.ts'

/** Options of `cluster diff` and `cluster apply` that say what is wanted. */
export type WishOption = 'file' | 'signature' | 'update' | 'set' | 'set-file'

export interface ReadWish {
  readonly hasValues: boolean
  /** When the change is to be begun, RFC 3339; undefined: at once. */
  readonly scheduleAt: string | undefined
  /** The write. @throws Failure usage for values that the definition does not have */
  orderOf(chosen: Chosen, isApplied?: boolean): Promise<Order>
}

/** What a command line wants of the definition and its values. @throws Failure usage */
export function readWish(line: CommandLine<WishOption>, now = Date.now()): ReadWish {
  const { lists = {} } = line
  const settings = { set: lists.set ?? [], setFile: lists['set-file'] ?? [] }
  const hasValues = settings.set.length + settings.setFile.length > 0
  const { 'schedule-at': at } = line.options as Readonly<Record<string, string | undefined>>
  const scheduleAt = at === undefined ? undefined : parsePointInTime('--schedule-at', at, now, true)
  if (scheduleAt !== undefined && Date.parse(scheduleAt) <= now)
    throw new Failure('usage', `--schedule-at must be in the future; it is ${scheduleAt}`)
  return {
    hasValues,
    scheduleAt,
    async orderOf({ path, profiles }, isApplied = false) {
      const given = hasValues ? readGiven(settings, await profiles()) : []
      return {
        ...{ method: 'PUT', path: '/profiles' },
        body: {
          spec: {
            archiveUploadPath: path,
            ...(given.length > 0 ? { profileVariables: given } : {}),
            // A diff also shows what waits for its time; what is applied begins at once, or at the given time.
            ...(isApplied ? { scheduleAt: scheduleAt ?? '' } : {}),
          },
        },
      }
    },
  }
}
