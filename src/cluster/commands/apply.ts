// `cluster diff` and `apply` make one write of the whole request, `PUT …/cluster/profiles` (`apply.ts`, `choose-definition.ts`): a dry run
// with the ETag of the read document is shown, and the same write with the same ETag is sent, so that only the shown change is applied
// (`perform-change.ts`). The number of the new revision follows from that condition. `perform-change.ts` takes events as the trigger, and
// the revisions as the truth.

import type { CommandLine } from '../../ctl/command.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { hasValues, parsePointInTime, readGivenOf } from '../../ctl/given-values.ts'
import {
  type Order,
  readPresent,
  tryChange,
  WouldDiscard,
  readRevisions,
  type Revision,
} from './change-host.ts'
import { chooseDefinition } from './choose-definition.ts'
import type { Chosen } from '../../definition/commands/upload.ts'
import type { Context } from '../../ctl/client.ts'
import {
  moment,
  plural,
  oneLine,
  wrap,
  renderFacts,
  type Fact,
  type Paper,
  renderTable,
  type Column,
} from '../../ctl/layout.ts'
import { performChange, requireYes, placeHints, renderChange, titleOfRevision } from './perform-change.ts'
import { readKeys, shortKey } from '../../ctl/request-body.ts'
import type { ClusterDetails } from '../schemas.ts'
import { requireDetails } from '../../ctl/cluster.ts'
import { printable } from '../../base/printable.ts'

/** Options of `cluster diff` and `cluster apply` that make up the request. */
export type RequestOption = 'definition' | 'file' | 'signature' | 'update' | 'set' | 'set-file'

export interface ReadRequest {
  /** Start time of the change, RFC 3339; undefined: at once. */
  readonly scheduleAt: string | undefined
  /** The write. @throws Failure usage for values that the definition does not have */
  orderOf(chosen: Chosen, isApplied?: boolean): Promise<Order>
}

/** The request of a command line: definition and values. @throws Failure usage */
export function readRequest(line: CommandLine<RequestOption>, now = Date.now()): ReadRequest {
  const { 'schedule-at': at } = line.options as Readonly<Record<string, string | undefined>>
  const scheduleAt = at === undefined ? undefined : parsePointInTime('--schedule-at', at, now, true)
  if (scheduleAt !== undefined && Date.parse(scheduleAt) <= now)
    throw new Failure('usage', `--schedule-at must be in the future; it is ${scheduleAt}`)
  return {
    scheduleAt,
    async orderOf({ path, profiles }, isApplied = false) {
      const given = hasValues(line) ? readGivenOf(line, await profiles()) : []
      return {
        method: 'PUT',
        path: '/profiles',
        body: {
          spec: {
            archiveUploadPath: path,
            ...(given.length > 0 ? { profileVariables: given } : {}),
            // A diff also shows a revision that waits for its time; an applied one starts at once, or at the given time.
            ...(isApplied ? { scheduleAt: scheduleAt ?? '' } : {}),
          },
        },
      }
    },
  }
}

/** `edgehostctl cluster apply`. */
export async function applyChange(
  context: Context<RequestOption | 'schedule-at' | 'yes' | 'no-wait'>,
): Promise<'failed' | undefined> {
  const { line } = context
  const { scheduleAt, orderOf } = readRequest(line)
  requireYes(context)
  const present = await readPresent(context)
  const chosen = await chooseDefinition(context, present, hasValues(line))
  const order = await orderOf(chosen, true)
  const found = await tryChange(context, order, present.etag)
  return performChange(context, present, {
    order,
    found,
    hints: chosen.hints,
    ...(scheduleAt === undefined ? {} : { scheduleAt }),
    what:
      scheduleAt === undefined
        ? 'The host makes this change now, and takes it back by itself if the cluster does not run with it.'
        : `The host makes this change at ${moment(scheduleAt)}, and takes it back by itself if the cluster does not run with it.`,
  })
}

/** `edgehostctl cluster diff`. */
export async function diffCluster(context: Context<RequestOption | 'yes'>): Promise<'failed' | undefined> {
  const { line, output } = context
  const present = await readPresent(context)
  const { orderOf } = readRequest(line)
  const chosen = await chooseDefinition(context, present, hasValues(line))
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

type SettingsContext = Context<'ntp' | 'ssh-key' | 'none' | 'yes' | 'no-wait'>

/** `edgehostctl cluster settings`: shows the settings, or replaces them as a whole. */
export async function clusterSettings(context: SettingsContext): Promise<'failed' | undefined> {
  const { line } = context
  const { lists = {}, options } = line
  const { ntp, 'ssh-key': keyFiles } = lists
  const isNone = options.none !== undefined
  if (isNone && (ntp ?? keyFiles) !== undefined)
    throw new Failure('usage', '--none takes all of them away; leave out --ntp and --ssh-key')
  if (!isNone && (ntp ?? keyFiles) === undefined) {
    const given = (['yes', 'no-wait'] as const).find((name) => options[name] !== undefined)
    if (given !== undefined)
      throw new Failure('usage', `--${given} is for a change: add --ntp SERVER, --ssh-key FILE or --none`)
    return showSettings(context)
  }
  const body = { ntpServers: ntp ?? [], sshKeys: (keyFiles ?? []).flatMap(readKeys) }
  requireYes(context)
  const present = await readPresent(context)
  const order: Order = { method: 'PUT', path: '/settings', body }
  const found = await tryChange(context, order, present.etag)
  const { ntpServers, sshKeys } = body
  return performChange(context, present, {
    order,
    found,
    hints: [],
    what: `From then on the cluster has ${plural(ntpServers.length, 'NTP server')} and ${plural(sshKeys.length, 'SSH key')} for this host; all others are taken away.`,
  })
}

async function showSettings(context: SettingsContext): Promise<undefined> {
  const { spec, status } = await requireDetails(context)
  const { ntpServers, sshKeys } = spec
  const { ntpServersApplied, sshKeysApplied } = status
  const settings = { ntpServers, sshKeys, ntpServersApplied, sshKeysApplied }
  const reasonOf = (type: string) =>
    status.clusterConditions.find((each) => each.type === type && each.status === 'False')?.message
  const reasons = { ntpServers: reasonOf('NtpServersApplied'), sshKeys: reasonOf('SshKeysApplied') }
  await context.output.show(settings, (paper) => renderFacts(factsOf(settings, reasons), paper))
  return undefined
}

type Shown = Pick<ClusterDetails['spec'], 'ntpServers' | 'sshKeys'> &
  Pick<ClusterDetails['status'], 'ntpServersApplied' | 'sshKeysApplied'>

/** Why a setting is not applied; undefined where none is given. */
type Reasons = Readonly<Record<'ntpServers' | 'sshKeys', string | undefined>>

const factsOf = (
  { ntpServers, sshKeys, ntpServersApplied, sshKeysApplied }: Shown,
  reasons: Reasons,
): Fact[] => [
  factOf('NTP servers', ntpServers, ntpServersApplied, reasons.ntpServers),
  factOf('SSH keys', sshKeys.map(shortKey), sshKeysApplied, reasons.sshKeys),
]

function factOf(label: string, items: readonly string[], isApplied: boolean, reason?: string): Fact {
  const lines = items.length === 0 ? ['none'] : items
  if (isApplied || (items.length === 0 && reason === undefined))
    return items.length === 0 ? { label, lines } : { label, lines, mood: 'good' }
  const why = reason === undefined ? 'not applied yet: edgehostctl cluster watch' : `not applied: ${reason}`
  return { label, lines: [...lines, why], mood: 'warning' }
}

/** `edgehostctl cluster rollback`. */
export async function rollBackCluster(
  context: Context<'discard-changes' | 'yes' | 'no-wait'>,
): Promise<'failed' | undefined> {
  const { line } = context
  const revision = parseRevision(line.arguments[0])
  const mayDiscard = line.options['discard-changes'] !== undefined
  requireYes(context)
  const present = await readPresent(context)
  const orderOf = (desired: number | undefined, discardChanges: boolean): Order => ({
    method: 'POST',
    path: '/rollback',
    body: {
      ...(desired === undefined ? {} : { revision: desired }),
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
    found,
    isBack: true,
    hints: [...(target ? [`This goes back to ${title}.`] : []), ...loss],
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

const layout: readonly Column<Revision>[] = [
  { title: 'REVISION', read: ({ revision, isActive }) => `${revision}${isActive ? ' *' : ''}` },
  { title: 'TIME', read: ({ creationTimestamp }) => moment(creationTimestamp), isFlexible: true },
  { title: 'BY', read: ({ by }) => by, isFlexible: true },
  { title: 'ORIGIN', read: ({ origin }) => origin },
  {
    title: 'DEFINITION',
    read: ({ definition: { name, version } }) => `${name} ${version}`,
    isFlexible: true,
  },
  { title: 'KUBERNETES', read: ({ kubernetesVersion }) => kubernetesVersion },
  { title: 'OUTCOME', read: outcomeOf, isFlexible: true },
]

/** `edgehostctl cluster revisions`. */
export async function listRevisions(context: Context): Promise<undefined> {
  const items = await readRevisions(context)
  await context.output.show({ items }, (paper) => renderRevisions(items, paper))
  return undefined
}

// A reason names pods by words that no column has room for, so it is below the table.
function renderRevisions(items: readonly Revision[], { columns }: Paper): string {
  const reasons = items.flatMap(({ revision, outcome, reason }) =>
    reason === undefined ? [] : [`${revision} ${outcome}: ${oneLine(reason)}`],
  )
  const below = reasons.flatMap((reason) => ['', ...wrap(reason, columns)])
  return [renderTable(items, layout, columns), ...below.map((line) => `${line}\n`)].join('')
}

function outcomeOf({ outcome, scheduleAt }: Revision): string {
  const isOpen = outcome === 'waiting' || outcome === 'held'
  return isOpen && scheduleAt !== undefined ? `${outcome} for ${moment(scheduleAt)}` : outcome
}
