import type { Context } from '../../ctl/context.ts'
import { readPresent, tryChange } from './change-host.ts'
import { chooseDefinition } from './choose-definition.ts'
import { placeHints } from './perform-change.ts'
import { readWish, type WishOption } from './read-wish.ts'
import { renderChange } from './show-diff.ts'

/** `edgehostctl cluster diff`. */
export async function diffCluster(context: Context<WishOption | 'yes'>): Promise<'failed' | undefined> {
  const { line, output } = context
  const present = await readPresent(context)
  const { hasValues, orderOf } = readWish(line)
  const chosen = await chooseDefinition(context, present, hasValues)
  const found = await tryChange(context, await orderOf(chosen), present.etag)
  const hints = [...placeHints(present, found), ...chosen.hints]
  const isNothing = !found.isChanged && found.diff === undefined && found.isPossible
  await output.show(found, (paper) =>
    isNothing && hints.length === 0
      ? 'Nothing differs, and nothing waits.\n'
      : renderChange(found, hints, paper),
  )
  return found.isPossible ? undefined : 'failed'
}
