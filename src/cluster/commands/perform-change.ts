import type { Context } from '../../ctl/context.ts'
import { confirm } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { moment, oneLine, plural, wrapLines } from '../../ctl/text.ts'
import type { ClusterChangeDryRun } from '../change/schemas.ts'
import { sendChange, shownOf, waitingOf, type Order, type Present } from './change-host.ts'
import { followRevision } from './follow-revision.ts'
import { renderChange } from './show-diff.ts'

export type PerformContext = Context<'yes' | 'no-wait'>

/** What is asked before a change is sent. */
export interface Wish {
  readonly order: Order
  readonly found: ClusterChangeDryRun
  /** What takes the place of what; lines for people. */
  readonly hints: readonly string[]
  /** For example `The revision 2 is applied again.` */
  readonly what: string
  /** When it is begun; absent: at once. RFC 3339. */
  readonly scheduleAt?: string
  /** Whether it goes back to an earlier revision. */
  readonly isBack?: true
}

/**
 * Refuses a command that would have to ask, before it does anything.
 * @throws Failure usage
 */
export function requireYes({ line, output, terminal }: PerformContext): void {
  if (line.options.yes !== undefined) return
  if (output.format !== 'table')
    throw new Failure(
      'usage',
      `-o ${output.format} shows nothing that could be asked about; look first, with edgehostctl cluster diff, then add --yes`,
    )
  if (!terminal.isThere())
    throw new Failure(
      'usage',
      'there is no terminal to confirm the change on; look first, with edgehostctl cluster diff, then add --yes. Nothing was changed',
    )
}

/**
 * Lines on what a write does to what was accepted before. Pure.
 * @param isBack whether it goes back, instead of adding to what waits
 */
export function placeHints(
  present: Pick<Present, 'revisions'>,
  { isChanged }: Pick<ClusterChangeDryRun, 'isChanged'>,
  isBack = false,
): string[] {
  const waiting = waitingOf(present)
  const shown = shownOf(present)
  if (waiting) {
    const { revision, scheduleAt, outcome } = waiting
    const until =
      outcome === 'held'
        ? 'is held, since values are missing'
        : `waits${scheduleAt ? ` for ${moment(scheduleAt)}` : ''}`
    if (!isChanged) return [`This is revision ${revision}, which was accepted and ${until}.`]
    return [
      `Revision ${revision}, which ${until}, is ${isBack ? 'given up' : 'part of this; the new revision takes its place'}.`,
    ]
  }
  if (shown?.outcome === 'applying' && shown.isActive)
    return [
      isChanged
        ? `Revision ${shown.revision} is being applied; this one comes in its place.`
        : `Revision ${shown.revision} is being applied: edgehostctl cluster watch`,
    ]
  return []
}

/**
 * Shows a change, asks, sends it on condition that the cluster is as it was shown, and follows it until it is good.
 * @throws Failure, also where it was taken back
 */
export async function performChange(
  context: PerformContext,
  present: Present,
  { order, found, hints, what, scheduleAt, isBack }: Wish,
): Promise<'failed' | undefined> {
  const { line, output, terminal } = context
  const { yes, 'no-wait': noWait } = line.options
  const lines = [...placeHints(present, found, isBack), ...hints]
  const isJson = output.format !== 'table'
  // What runs may be what is wanted while another revision waits: it is cancelled so.
  const isNothing = !found.isChanged || (found.diff?.isEmpty === true && !waitingOf(present) && !scheduleAt)
  if (!isJson || !found.isPossible || isNothing)
    await output.show(found, (paper) => renderChange(found, lines, paper))
  if (!found.isPossible) throw refusalOf(found)
  if (isNothing) {
    output.note('Nothing is to be changed, so nothing was sent.')
    return undefined
  }
  if (yes === undefined)
    confirm(terminal, { what: wrapLines(what, output.paper.columns), ask: 'Apply it?', done: 'applied' })
  const revision = await sendChange(context, order, present)
  if (revision === undefined) {
    output.note('Nothing was changed.')
    return undefined
  }
  const isFollowed = noWait === undefined && scheduleAt === undefined
  if (isJson && !isFollowed) await output.show({ accepted: revision, ...found }, () => '')
  if (scheduleAt !== undefined)
    output.note(
      `Revision ${revision} is begun at ${moment(scheduleAt)}. To cancel it: edgehostctl cluster rollback ${activeOf(present)}`,
    )
  else if (noWait !== undefined)
    output.note(`Revision ${revision} is accepted; the host applies it: edgehostctl cluster watch`)
  if (isFollowed) {
    await followRevision(context, revision)
    output.note(`Revision ${revision} is good.`)
  }
  return undefined
}

function refusalOf({ isHeld, problems }: ClusterChangeDryRun): Failure {
  const errors = problems.filter(({ severity }) => severity === 'error').length
  return new Failure(
    'failed',
    isHeld
      ? 'required variables have no value, so nothing was applied: give them with --set NAME=VALUE or --set-file NAME=FILE'
      : `${plural(errors, 'error was', 'errors were')} found, so nothing was applied`,
  )
}

const activeOf = ({ revisions }: Present) => revisions.find(({ isActive }) => isActive)?.revision ?? ''

/** A revision for people. */
export const titleOfRevision = ({
  revision,
  definition,
  kubernetesVersion,
  creationTimestamp,
  by,
}: Present['revisions'][number]): string =>
  `revision ${revision} (${oneLine(definition.name)} ${oneLine(definition.version)}, Kubernetes ${oneLine(kubernetesVersion)}, of ${moment(creationTimestamp)}${by === '' ? '' : ` by ${oneLine(by)}`})`
