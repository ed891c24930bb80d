import type { Context } from '../../ctl/context.ts'
import { moment } from '../../ctl/text.ts'
import { readPresent, tryChange } from './change-host.ts'
import { chooseDefinition } from './choose-definition.ts'
import { performChange, requireYes } from './perform-change.ts'
import { readWish, type WishOption } from './read-wish.ts'

/** `edgehostctl cluster apply`. */
export async function applyChange(
  context: Context<WishOption | 'schedule-at' | 'yes' | 'no-wait'>,
): Promise<'failed' | undefined> {
  const { line } = context
  const { hasValues, scheduleAt, orderOf } = readWish(line)
  requireYes(context)
  const present = await readPresent(context)
  const chosen = await chooseDefinition(context, present, hasValues)
  const order = await orderOf(chosen, true)
  const found = await tryChange(context, order, present.etag)
  return performChange(context, present, {
    ...{ order, found, hints: chosen.hints },
    ...(scheduleAt === undefined ? {} : { scheduleAt }),
    what:
      scheduleAt === undefined
        ? 'The host makes this change now, and takes it back by itself if the cluster does not run with it.'
        : `The host makes this change at ${moment(scheduleAt)}, and takes it back by itself if the cluster does not run with it.`,
  })
}
