import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { printable } from '../../base/printable.ts'
import { moment } from '../../ctl/text.ts'
import { readPresent, tryChange, WouldDiscard, type Order } from './change-host.ts'
import { performChange, requireYes, titleOfRevision } from './perform-change.ts'

/** `edgehostctl cluster rollback`. */
export async function rollBackCluster(
  context: Context<'discard-changes' | 'yes' | 'no-wait'>,
): Promise<'failed' | undefined> {
  const { line } = context
  const revision = parseRevision(line.arguments[0])
  const mayDiscard = line.options['discard-changes'] !== undefined
  requireYes(context)
  const present = await readPresent(context)
  const orderOf = (wanted: number | undefined, discardChanges: boolean): Order => ({
    ...{ method: 'POST', path: '/rollback' },
    body: {
      ...(wanted === undefined ? {} : { revision: wanted }),
      ...(discardChanges ? { discardChanges } : {}),
    },
  })
  let discarded: WouldDiscard | undefined
  const check = async (discards: boolean) => tryChange(context, orderOf(revision, discards), present.etag)
  // Not with the permission at once: the refusal says what would be lost.
  const found = await check(false).catch(async (error: unknown) => {
    if (!(error instanceof WouldDiscard) || !mayDiscard) throw error
    discarded = error
    return check(true)
  })
  const target = present.revisions.find((each) => each.revision === (found.revision ?? revision))
  const title = target ? titleOfRevision(target) : 'an earlier revision'
  const loss = discarded
    ? [
        `Kubernetes is restored from its copy of ${moment(discarded.copyTimestamp)}: everything that was written to its API since then is lost.`,
      ]
    : []
  return performChange(context, present, {
    // The one that was shown, also where none was named.
    order: orderOf(target?.revision ?? revision, discarded !== undefined),
    ...{ found, isBack: true, hints: [...(target ? [`This goes back to ${title}.`] : []), ...loss] },
    what: [`The configuration and the definition of ${title} are applied again.`, ...loss].join('\n'),
  })
}

function parseRevision(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new Failure(
    'usage',
    `REVISION must be the number of a revision, see edgehostctl cluster revisions; it is ${printable(text) || 'empty'}`,
  )
}
