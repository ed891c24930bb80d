import { setTimeout as sleep } from 'node:timers/promises'
import { notLoggedIn, type Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { parseBody, toFailure, renderProblems } from '../../ctl/reply.ts'
import type { ClusterRevisions, ClusterChangeDryRun } from '../desired/schemas.ts'
import {
  revisionsPath,
  type HostContext,
  type Revision,
  sendChange,
  shownOf,
  waitingOf,
  type Order,
  type Present,
} from './change-host.ts'
import { showUntil } from './watch.ts'
import { escapeInvisible } from '../../base/printable.ts'
import { masked } from '../../base/mask.ts'
import {
  renderFacts,
  type Fact,
  type Paper,
  renderTable,
  type Column,
  moment,
  oneLine,
  plural,
  wrapLines,
} from '../../ctl/layout.ts'
import { shortKey } from '../../ctl/request-body.ts'
import { confirm } from '../../ctl/confirm.ts'

const acceptedReasons = ['UpdateAccepted', 'UpdateScheduled', 'UpdateHeld']
// Reasons after which a revision may have ended.
const turns = [
  ...acceptedReasons,
  ...['UpdateStarted', 'Updated', 'UpdateFailed', 'RolledBack', 'RollbackFailed'],
  ...['Running', 'Deleting', 'Deleted'],
]

/**
 * Shows events since a revision was accepted, until it is good. The host continues whatever becomes of this program.
 * @throws Failure where it was taken back, a later one took its place, or the cluster is deleted
 */
async function followRevision(context: HostContext, revision: number): Promise<void> {
  const isOfIt = new RegExp(`^revision ${revision}\\b`)
  await showUntil(context, {
    isFirst: ({ reason, message }) => acceptedReasons.includes(reason) && isOfIt.test(message),
    async isLast({ reason, message }) {
      if (!turns.includes(reason)) return false
      if (reason === 'Deleting' || reason === 'Deleted') throw deleted()
      return hasEnded(await readPatiently(context), revision, reason === 'RollbackFailed' ? message : '')
    },
    isPatient: true,
    interrupted: `Interrupted. The host continues with revision ${revision}: edgehostctl cluster watch`,
  })
}

/**
 * Whether a revision is good. Pure.
 * @param stuck why the way back, or a restoration that was asked for, does not come either; empty otherwise
 * @throws Failure where it will not be good
 */
export function hasEnded(revisions: readonly Revision[], revision: number, stuck: string): boolean {
  const found = revisions.find((each) => each.revision === revision)
  const name = `revision ${revision}`
  const fail = (text: string) => new Failure('failed', text)
  const see = 'see: edgehostctl cluster events'
  const active = revisions.find(({ isActive }) => isActive)
  switch (found?.outcome) {
    case 'good':
      return true
    case 'rolledBack': {
      // Its reason says what runs again.
      if (active?.origin === 'goingBack' && active.revision > revision)
        throw fail(`${name} failed, and was taken back: ${found.reason ?? see}`)
      const back = active === undefined ? 'the last good one' : `revision ${active.revision}`
      throw fail(`${name} failed, and ${back} runs again: ${found.reason ?? see}`)
    }
    case 'failed':
      if (stuck !== '') throw fail(`${name} failed, and the way back too: ${stuck}`)
      // A later write took the place of the way back.
      if (active && active.revision > revision && active.origin !== 'goingBack')
        throw fail(
          `${name} failed, and revision ${active.revision} is applied instead: ${found.reason ?? see}`,
        )
      return false
    case 'held':
      throw fail(
        `${name} is held: ${found.reason ?? see}; give the values: edgehostctl cluster apply --set NAME=VALUE`,
      )
    case 'superseded':
      throw fail(`a later change took the place of ${name}: edgehostctl cluster revisions`)
    case undefined:
      throw fail(`${name} is not kept any more: edgehostctl cluster revisions`)
    case 'applying':
      if (stuck !== '') throw fail(`${name} is not good, and there is no way back by itself: ${stuck}`)
      return false
    case 'waiting':
      return false
  }
}

const deleted = () => new Failure('failed', 'the cluster was deleted meanwhile')

const firstPauseMs = 500
const longestPauseMs = 15_000

/** The revisions, also of a host that is away for a while, as while its daemon is restarted. @throws Failure */
async function readPatiently(context: HostContext): Promise<readonly Revision[]> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
    try {
      const revisions = await askRevisions(context)
      if (revisions !== 'later') return revisions
    } catch (error) {
      if (!(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    }
    await sleep(pauseMs)
  }
}

async function askRevisions({ client, target }: HostContext): Promise<readonly Revision[] | 'later'> {
  const reply = await client.ask({ method: 'GET', path: revisionsPath })
  // A daemon that starts, stops or has too much to do.
  if ([429, 503].includes(reply.status)) return 'later'
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status === 404) throw deleted()
  if (reply.status !== 200) throw toFailure(reply)
  return parseBody<ClusterRevisions>(reply, ['items']).items
}

type Diff = NonNullable<ClusterChangeDryRun['diff']>
type PackChange = Diff['packs'][number]
type VariableChange = Diff['variables'][number]
type Effect = Diff['effects'][number]

const longestValue = 200

const packLayout: readonly Column<PackChange>[] = [
  { title: 'PACK', read: ({ name, displayName }) => displayName ?? name, isFlexible: true },
  {
    title: 'VERSION',
    read: ({ fromVersion, toVersion }) => fromTo(fromVersion, toVersion),
    isFlexible: true,
  },
  { title: 'CHANGE', read: ({ change }) => change },
  { title: 'OF IT', read: partsOf, isFlexible: true },
]

const variableLayout: readonly Column<VariableChange>[] = [
  { title: 'VARIABLE', read: ({ name }) => name, isFlexible: true },
  { title: 'CHANGE', read: ({ change }) => change },
  { title: 'FROM', read: (change) => valueOf(change, 'from'), isFlexible: true },
  { title: 'TO', read: (change) => valueOf(change, 'to'), isFlexible: true },
]

const effectLayout: readonly Column<Effect>[] = [
  { title: 'WHAT IS DONE', read: ({ message }) => message, isFlexible: true },
  { title: 'RESTARTS', read: ({ restarts }) => restarts.join(', '), isFlexible: true },
]

/**
 * A change of the cluster, for people. Pure.
 * @param hints further lines, such as replacements
 */
export function renderChange(found: ClusterChangeDryRun, hints: readonly string[], paper: Paper): string {
  const { problems, diff } = found
  return [
    renderFacts([...verdictOf(found), ...(diff ? factsOf(diff) : []), ...hintsOf(hints)], paper),
    ...(problems.length > 0 ? [renderProblems(problems, paper)] : []),
    ...(diff ? tablesOf(diff, paper) : []),
  ].join('\n')
}

function verdictOf({ isPossible, isHeld }: ClusterChangeDryRun): Fact[] {
  if (isPossible) return [{ label: 'Pre-flight', lines: ['the change is possible'], mood: 'good' }]
  return [
    isHeld
      ? {
          label: 'Pre-flight',
          lines: ['required variables have no value: give them with --set or --set-file'],
          mood: 'bad',
        }
      : { label: 'Pre-flight', lines: ['the change is not possible'], mood: 'bad' },
  ]
}

const hintsOf = (hints: readonly string[]): Fact[] =>
  hints.length === 0 ? [] : [{ label: 'Note', lines: hints, mood: 'warning' }]

function factsOf({ isEmpty, definition, kubernetes, node, settings }: Diff): Fact[] {
  return [
    ...(isEmpty ? [{ label: 'Changes', lines: ['nothing differs from what the host runs'] }] : []),
    ...(definition
      ? [
          {
            label: 'Definition',
            lines: [
              definition.from === definition.to
                ? `${definition.to}, with other content`
                : fromTo(definition.from, definition.to),
            ],
          },
        ]
      : []),
    ...(kubernetes ? [kubernetesFact(kubernetes)] : []),
    ...(node ? [{ label: 'Node', lines: [`another ${node.fields.join(', ')}`] }] : []),
    ...(settings.ntpServers ? [{ label: 'NTP servers', lines: listLines(settings.ntpServers) }] : []),
    ...(settings.sshKeys ? [{ label: 'SSH keys', lines: listLines(settings.sshKeys, shortKey) }] : []),
  ]
}

function kubernetesFact({ from, to, configurationChanged }: NonNullable<Diff['kubernetes']>): Fact {
  if (from === to) return { label: 'Kubernetes', lines: [`${to}, with another configuration`] }
  return {
    label: 'Kubernetes',
    lines: [
      `${fromTo(from, to)}${configurationChanged ? ', with another configuration' : ''}`,
      `Once ${to} is good, going back to ${from} restores a copy, and discards what was written to the API of Kubernetes since.`,
    ],
    mood: 'warning',
  }
}

/** Removed and added items, a line each. */
function listLines(
  { from, to }: { readonly from: readonly string[]; readonly to: readonly string[] },
  show: (item: string) => string = (item) => item,
): string[] {
  const lines = [
    ...from.filter((item) => !to.includes(item)).map((item) => `- ${show(item)}`),
    ...to.filter((item) => !from.includes(item)).map((item) => `+ ${show(item)}`),
  ]
  return lines.length === 0 ? ['another order'] : lines
}

function tablesOf({ packs, variables, effects }: Diff, paper: Paper): string[] {
  const { columns } = paper
  return [
    ...(packs.length > 0 ? [renderTable(packs, packLayout, columns)] : []),
    ...packs.flatMap(valuesOf),
    ...(variables.length > 0 ? [renderTable(variables, variableLayout, columns)] : []),
    ...(effects.length > 0 ? [renderTable(effects, effectLayout, columns)] : []),
  ]
}

/** The lines in which the values of a pack differ. */
function valuesOf({ name, displayName, values = [], valuesLeftOut = 0 }: PackChange): string[] {
  if (values.length === 0) return []
  const width = Math.max(...values.map(({ line }) => String(line).length))
  const lines = values.map(
    ({ change, line, text }) =>
      `${marks[change] ?? ''} ${String(line).padStart(width)}  ${escapeInvisible(text)}`,
  )
  const more = valuesLeftOut > 0 ? [`and ${valuesLeftOut} more`] : []
  return [
    `Values of ${escapeInvisible(displayName ?? name)}, line by line:\n${[...lines, ...more].map((line) => `  ${line}\n`).join('')}`,
  ]
}

const fromTo = (from: string | undefined, to: string | undefined): string =>
  from === undefined || to === undefined || from === to ? (to ?? from ?? '') : `${from} -> ${to}`

function partsOf({ fields, charts, manifests, namespaces, isApplied, change }: PackChange): string {
  const names = (items: readonly { readonly name: string; readonly change: string }[]) =>
    items.map((item) => `${marks[item.change] ?? ''}${item.name}`).join(' ')
  const parts = [
    ...fields.filter((field) => ['values', 'order', 'content'].includes(field)),
    ...charts.map(
      (chart) =>
        `chart ${marks[chart.change] ?? ''}${chart.name} ${fromTo(chart.fromVersion, chart.toVersion)}`,
    ),
    ...(manifests.length > 0 ? [`manifests ${names(manifests)}`] : []),
    ...(namespaces.length > 0 ? [`namespaces ${names(namespaces)}`] : []),
    ...(change === 'changed' && !isApplied ? ['nothing is applied for it'] : []),
  ]
  return parts.join(', ')
}

const marks: Readonly<Record<string, string>> = { added: '+', removed: '-' }

function valueOf(change: VariableChange, side: 'from' | 'to'): string | undefined {
  const isThere = change.change === 'changed' || (change.change === 'added') === (side === 'to')
  if (!isThere) return undefined
  if (change.isSensitive) return masked
  const value = change[side] ?? ''
  if (value === '') return '""'
  return value.length > longestValue ? `${value.slice(0, longestValue)}...` : value
}

type PerformContext = Context<'yes' | 'no-wait'>

/** Question before a change is sent. */
interface ChangeRequest {
  readonly order: Order
  readonly found: ClusterChangeDryRun
  /** Replacements; lines for people. */
  readonly hints: readonly string[]
  /** For example `The revision 2 is applied again.` */
  readonly what: string
  /** Its start time; absent: at once. RFC 3339. */
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
 * Lines on the effect of a write on earlier revisions. Pure.
 * @param isBack whether it goes back, instead of adding to a waiting revision
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
  { order, found, hints, what, scheduleAt, isBack }: ChangeRequest,
): Promise<'failed' | undefined> {
  const { line, output, terminal } = context
  const { yes, 'no-wait': noWait } = line.options
  const lines = [...placeHints(present, found, isBack), ...hints]
  const isJson = output.format !== 'table'
  // The requested revision may run already while another one waits: that is cancelled so.
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
