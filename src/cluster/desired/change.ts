import { masked } from '../../base/mask.ts'
import { type PreparedVariable, preparedFiles, readProfiles, readDesired, readDesiredOf } from './prepared.ts'
import {
  type Stored,
  currentFor,
  type Draft,
  type DraftOptions,
  type Write,
  judgeFixed,
  deleting,
  draftOf,
} from './draft.ts'
import { AppError } from '../../errors/app-error.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { type ClusterRecord, isUpdate } from '../cluster-store.ts'
import { clusterErrors } from '../codes.ts'
import type { Revision, RevisionStore, NewRevision } from './revisions.ts'
import { isOlder } from './version.ts'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Lock } from '../../base/lock.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { AddEvent } from '../events/event-log.ts'
import { sensitiveValues, givenIn, readConfiguration, type HostFacts } from './configuration.ts'
import { type Accept, type Examine, type Examined, plannedSteps, summaryOf } from './acceptance.ts'
import { diffClusters, maskDiff, type DiffSide } from './diff.ts'
import type { Observed } from '../loop/observed.ts'
import { plan, type PlanParts } from '../loop/plan.ts'
import { lineOf, documentOf, etagOf } from './revision-document.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { DesiredState, DesiredKubernetes } from './desired-state.ts'
import type { ClusterChangeDryRun } from './schemas.ts'
import { neededContent } from './file-sync.ts'

/**
 * Masked values stay masked: another definition may declare a variable that is not sensitive any more, and a mask that is sent back would
 * then show the stored value to everyone who may read the cluster. Only another value is shown. Pure.
 * @param stored the revisions whose values may be kept
 */
function keepSensitive(
  variables: readonly PreparedVariable[],
  stored: readonly Stored[],
): readonly PreparedVariable[] {
  const kept = new Set(stored.flatMap(maskedValues).map(([name, value]) => keyOf(name, value)))
  // By the name alone: each version of a profile has a uid of its own.
  return variables.map((each) =>
    each.isSensitive || !kept.has(keyOf(each.name, each.value)) ? each : { ...each, isSensitive: true },
  )
}

const keyOf = (name: string, value: string) => JSON.stringify([name, value])

/** Name and plain text of masked values. */
function maskedValues({ posted, plain }: Stored): readonly (readonly [string, string])[] {
  const plainOnes = plain?.spec?.profileVariables ?? []
  return (posted.spec?.profileVariables ?? []).flatMap(({ name = '', value }, index) => {
    const text = plainOnes[index]?.value ?? ''
    return value === masked && text !== '' ? [[name, text] as const] : []
  })
}

interface Rollback extends Pick<Write, 'ifMatch' | 'by' | 'onTurn'> {
  /** Undefined: the last good revision before the present one. */
  readonly revision: number | undefined
  /** Writes to the API of Kubernetes since the copy may be lost. */
  readonly discardChanges: boolean
}

/** Time of the copy of Kubernetes to which a revision can go back; undefined where none is kept. Milliseconds since 1970. */
type CopyTime = (revision: Revision) => Promise<number | undefined>

/** @throws AppError as `currentFor`; BadRequest, WouldDiscardChanges */
async function rollbackOf(
  options: DraftOptions & { readonly copyTime: CopyTime },
  rollback: Rollback,
): Promise<Draft> {
  const { record, shown } = currentFor(options, rollback)
  const target = targetOf(options.revisions, record, shown, rollback.revision)
  const version = target.summary.kubernetes.version
  const present = record.summary.kubernetes.version
  const copiedAt = isOlder(version, present) ? await options.copyTime(target) : undefined
  if (copiedAt !== undefined && !rollback.discardChanges) {
    const time = new Date(copiedAt).toISOString()
    throw new AppError(
      clusterErrors.WouldDiscardChanges,
      `revision ${target.generation} has Kubernetes ${version}, and the cluster ${present}: the copy of ${time} would be restored, and what was written to the API of Kubernetes since then be lost; send discardChanges true to do that`,
      { details: { copyTimestamp: time } },
    )
  }
  if (target.generation === shown.generation) return draft(undefined)
  if (!target.plain)
    throw refuse(
      `${target.generation} cannot be applied again: its sensitive values cannot be read any more, since the secret of the state folder was replaced; PUT /v1/edge-mgmt/cluster with the values instead`,
    )
  return draft(target.plain)

  function draft(plain: Draft['plain']): Draft {
    return {
      record,
      shown,
      origin: 'rollback',
      plain,
      scheduleAt: null,
      copyOf: target,
      hasCopy: copiedAt !== undefined,
    }
  }
}

function targetOf(
  revisions: RevisionStore,
  { generation, goodGeneration }: ClusterRecord,
  shown: Revision,
  desired: number | undefined,
): Revision {
  const all = revisions.list()
  const listed = 'GET /v1/edge-mgmt/cluster/revisions lists them'
  if (desired !== undefined) {
    const found = all.find((each) => each.generation === desired)
    if (found) return found
    throw refuse(`${desired} is not kept; ${listed}`)
  }
  const before = all.find((each) =>
    // While a revision is being applied, waits or is held, the last good one is the one before it.
    (goodGeneration !== generation || shown.generation !== generation) && goodGeneration !== 0
      ? each.generation === goodGeneration
      : each.outcome === 'good' && each.generation !== generation,
  )
  if (before) return before
  throw refuse(`has to be given: no revision before the present one was good; ${listed}`)
}

const refuse = (reason: string) => refusedField('revision', reason)

interface ChangeOptions extends DraftOptions {
  /** One write at a time, also of the creation. */
  readonly inTurn: Lock
  readonly examine: Examine
  readonly accept: Accept
  /** @throws AppError Busy while the host does something that a change of the cluster has to wait for */
  readonly refuseBusy: () => void
  readonly facts: () => HostFacts
  readonly parts: PlanParts
  /** Observes the host for a desired state, and changes nothing. */
  readonly observe: (desired: DesiredState, signal: AbortSignal) => Promise<Observed>
  readonly copyTime: CopyTime
  /** Generations to which a copy of Kubernetes can go back. */
  readonly copies: () => Promise<readonly number[]>
  readonly add: AddEvent
  /** Called when a revision was accepted. */
  readonly onAccepted: () => void
}

export interface Changed {
  readonly cluster: { readonly name: string; readonly uid: string }
  /** The accepted revision; undefined where nothing changed. */
  readonly revision: number | undefined
  /** ETag of the document of GET now. */
  readonly etag: string
}

/** Writes of the configuration of the cluster; the loop applies them. */
export interface Change {
  /** @throws AppError NotFound, ClusterDeleting, Busy, PreconditionFailed, BadRequest, CannotChange, PreflightFailed, InsufficientStorage */
  write(write: Write, signal: AbortSignal): Promise<Changed>
  /** @throws AppError as `write`, and WouldDiscardChanges */
  rollBack(rollback: Rollback, signal: AbortSignal): Promise<Changed>
  /** Makes all checks and the plan, and changes nothing. @throws AppError as `write`, but not PreflightFailed */
  tryWrite(write: Write, signal: AbortSignal): Promise<ClusterChangeDryRun>
  tryRollBack(rollback: Rollback, signal: AbortSignal): Promise<ClusterChangeDryRun>
}

type Writer = Pick<Write, 'by' | 'platformNumber' | 'onTurn'>
type Filled = Draft & { readonly plain: ClusterConfiguration }

export function createChange(options: ChangeOptions): Change {
  const { store, revisions, inTurn, examine, parts, add } = options

  const drafts = {
    write: (write: Write) => draftOf(options, write),
    rollBack: (rollback: Rollback) => rollbackOf(options, rollback),
  }

  /** Prepares the desired state and makes all checks. */
  async function check<T>(
    draft: Filled,
    signal: AbortSignal,
    use: (examined: Examined, sides: { readonly before: DiffSide; readonly after: DiffSide }) => Promise<T>,
  ): Promise<T> {
    const { record, shown, plain, copyOf, hasCopy } = draft
    const { uid, name, summary } = record
    const read = readConfiguration(plain, options.facts())
    const [running, runningProfiles] = await Promise.all([readDesired(record), readProfiles(record)])
    const active = revisions.find(record.generation)
    const kept = await keptKubernetes(record, copyOf)
    const before: DiffSide = {
      desired: running,
      definition: summary.definition,
      profiles: runningProfiles,
      given: givenIn((active?.plain ?? record.posted).spec ?? {}),
    }
    // The place of this host in the cluster stays, whatever addresses it has got since.
    const { labels, taints } = read.node
    const problems = read.problems.filter(({ code }) => code !== 'AddressInvalid')
    const request = {
      uid,
      name,
      generation: nextGeneration(),
      settings: read.settings,
      variables: read.variables,
      archiveUploadPath: read.archiveUploadPath,
      node: { ...summary.node, labels, taints },
      ...(copyOf ? { source: sourceOf(copyOf) } : {}),
      ...(kept ? { kubernetes: kept } : {}),
    }
    return examine({ request, problems, running }, signal, async ({ prepared: found, report }) => {
      const stored = copyOf ? [shown, copyOf] : [shown]
      const prepared = { ...found, variables: keepSensitive(found.variables, stored) }
      // Messages of a change also quote the running cluster.
      const hide = createHideOf([...record.sensitive, ...sensitiveValues(prepared)])
      const fixed = await judgeFixed(prepared.desired, running, hasCopy)
      const said = takenValues(shown, prepared.variables)
      const all = [...fixed, ...report.problems].map((each) => ({
        ...each,
        message: hide(said(each.message)),
      }))
      const isPossible = report.isPossible && fixed.length === 0
      const { desired, definition, profiles } = prepared
      return use(
        { prepared, report: { ...report, problems: all, isPossible }, hide },
        { before, after: { desired, definition, profiles, given: read.variables } },
      )
    })
  }

  const nextGeneration = () => (revisions.newest()?.generation ?? 0) + 1

  async function accept(
    draft: Filled,
    { by, platformNumber }: Writer,
    { prepared, report }: Examined,
  ): Promise<Revision> {
    const { record, plain, origin, scheduleAt, copyOf } = draft
    const outcome = report.isPossible ? 'waiting' : 'held'
    const reason = report.isPossible ? '' : summaryOf('values are missing', report.problems)
    const accepted = await options.accept({
      prepared,
      report,
      plain,
      copyOf,
      by,
      origin,
      outcome,
      reason,
      scheduleAt,
      platformNumber,
      needed: neededContent(revisions, record, await options.copies()),
      writeRows(revision) {
        const now = store.current()
        if (now?.uid !== record.uid || now.deleteRequestedAt !== null) throw deleting(record)
        tell(revision)
      },
      removeFiles: () => rm(prepared.desired.folder, { recursive: true, force: true }),
      notDone: 'the cluster was not changed',
    })
    options.onAccepted()
    return { ...accepted, plain, reason, endedAt: null, platformNumber: platformNumber ?? null }

    function tell(revision: NewRevision): void {
      // Its values are masked, not only the active revision's.
      const subject = { ...record, sensitive: [...record.sensitive, ...revision.sensitive] }
      const what = lineOf(revision)
      if (outcome === 'held') add(subject, { reason: 'UpdateHeld', message: `${what}; ${reason}` })
      else if (scheduleAt !== null)
        add(subject, {
          reason: 'UpdateScheduled',
          message: `${what}; it is begun at ${new Date(scheduleAt).toISOString()}`,
        })
      else add(subject, { reason: 'UpdateAccepted', message: what })
      for (const { message, severity } of report.problems)
        if (severity === 'warning') add(subject, { reason: 'PreflightWarning', message })
    }
  }

  const perform = <Order extends Writer>(
    make: (order: Order) => Promise<Draft>,
    order: Order,
    signal: AbortSignal,
  ): Promise<Changed> =>
    inTurn(async () => {
      order.onTurn?.()
      const draft = await make(order)
      const { record, shown, plain } = draft
      const { name, uid } = record
      const etag = (revision: Revision) => etagOf(documentOf(record, revision))
      const cluster = { name, uid }
      if (!plain) return { cluster, revision: undefined, etag: etag(shown) }
      options.refuseBusy()
      return check({ ...draft, plain }, signal, async (examined) => {
        const { problems, isPossible } = examined.report
        if (!isPossible && !isHeld(examined))
          throw new AppError(
            clusterErrors.PreflightFailed,
            summaryOf('the cluster cannot be changed', problems),
            { details: { problems } },
          )
        signal.throwIfAborted()
        const revision = await accept({ ...draft, plain }, order, examined)
        return { cluster, revision: revision.generation, etag: etag(revision) }
      })
    })

  const tryOut = <Order>(
    make: (order: Order) => Promise<Draft>,
    order: Order,
    signal: AbortSignal,
  ): Promise<ClusterChangeDryRun> =>
    inTurn(async () => {
      const draft = await make(order)
      const { record, shown, origin, copyOf } = draft
      const isChanged = draft.plain !== undefined
      const target = origin === 'rollback' && copyOf ? { revision: copyOf.generation } : {}
      const isActive = shown.generation === record.generation
      // A waiting revision is shown as it would be applied.
      const waiting = isActive ? undefined : shown.plain && { ...draft, plain: shown.plain, copyOf: shown }
      const filled = draft.plain ? { ...draft, plain: draft.plain } : waiting
      if (!filled) return { isPossible: true, isChanged, isHeld: false, problems: [], plan: [], ...target }
      return check(filled, signal, async (examined, { before, after }) => {
        const { prepared, report, hide } = examined
        const { isPossible, problems } = report
        const isWaiting = !isPossible && isHeld(examined)
        const stages = isPossible
          ? plan(parts, {
              desired: prepared.desired,
              isDeleting: false,
              hasRun: false,
              isRenewalAskedFor: false,
              isUpdate: isUpdate(record),
              observed: await options.observe(prepared.desired, signal),
            })
          : []
        return {
          isPossible,
          isChanged,
          isHeld: isWaiting,
          problems: [...problems],
          plan: plannedSteps(stages, hide),
          ...target,
          // A state with errors may be without some of its packs.
          ...(isPossible || isWaiting ? { diff: maskDiff(diffClusters(before, after, hide), hide) } : {}),
        }
      })
    })

  return {
    write: (write, signal) => perform(drafts.write, write, signal),
    rollBack: (rollback, signal) => perform(drafts.rollBack, rollback, signal),
    tryWrite: (write, signal) => tryOut(drafts.write, write, signal),
    tryRollBack: (rollback, signal) => tryOut(drafts.rollBack, rollback, signal),
  }
}

/** The copy of a definition that the cluster has of its own. */
const sourceOf = ({ folder, summary: { definition } }: Revision) => ({
  file: join(folder, preparedFiles.definition),
  details: join(folder, preparedFiles.details),
  definition,
})

/** Kubernetes of a revision, where it differs from its copy of the definition. */
async function keptKubernetes(
  record: ClusterRecord,
  copyOf: Revision | undefined,
): Promise<DesiredKubernetes | undefined> {
  if (copyOf?.summary.kubernetesOf === undefined) return undefined
  return (await readDesiredOf(record, copyOf)).kubernetes
}

/** Whether values of required variables are all that is missing: the revision waits for a write that has them. */
function isHeld({ prepared: { variables }, report: { problems } }: Examined): boolean {
  const missing = new Set(variables.flatMap(({ missing: message }) => message ?? []))
  const errors = problems.filter(({ severity }) => severity === 'error')
  return errors.length > 0 && errors.every(({ message }) => missing.has(message))
}

/**
 * A value that a required variable has, and that the write takes away, is not waited for: a mistaken omission is reported at once.
 * @returns the problem of a change, from the message of the missing value
 */
function takenValues(present: Revision, variables: readonly PreparedVariable[]): (message: string) => string {
  const { profileVariables = [] } = (present.plain ?? present.posted).spec ?? {}
  const isTaken = ({ name, profileUid }: PreparedVariable) =>
    profileVariables.some(
      (each) =>
        each.name === name && (each.value ?? '') !== '' && ['', profileUid].includes(each.profileUid ?? ''),
    )
  const taken = new Set(variables.flatMap((each) => (each.missing && isTaken(each) ? [each.missing] : [])))
  return (message) =>
    taken.has(message)
      ? `${message}, and this change would take its value away; send the value, or ${masked} to keep it`
      : message
}
