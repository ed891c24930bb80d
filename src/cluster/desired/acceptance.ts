import { createHideOf } from '../../definition/slots/secrets.ts'
import type { ContentAccess } from '../../content/store/find.ts'
import { AppError } from '../../errors/app-error.ts'
import { seeDisk } from '../../errors/advice.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Database } from '../../store/database.ts'
import { isUnwritable } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { Stage } from '../loop/plan.ts'
import type { ClusterConfiguration, ClusterDryRun } from '../schemas.ts'
import { canonicalText, maskConfiguration, sensitiveValues } from './configuration.ts'
import type { DesiredState } from './desired-state.ts'
import type { Preflight } from './preflight.ts'
import type { PreflightProblem } from './preflight-codes.ts'
import type { Prepare, Prepared, PrepareRequest } from './prepared.ts'
import type { NewRevision, Revision, RevisionStore, Sealed } from './revisions.ts'

/** Holds the content that the cluster needs; ContentInUse names it. */
export const pinHolder = 'the cluster of this host'

interface ExamineOptions {
  readonly prepare: Prepare
  readonly preflight: (
    prepared: Prepared,
    posted: readonly PreflightProblem[],
    signal: AbortSignal,
    running?: DesiredState,
  ) => Promise<Preflight>
}

/** A desired state that is prepared and checked. */
export interface Examined {
  readonly prepared: Prepared
  /** Messages are masked. */
  readonly report: Preflight
  /** Masks the sensitive values in a text. */
  readonly hide: (text: string) => string
}

/** Prepares a desired state and makes all checks. */
export type Examine = <T>(
  order: {
    readonly request: PrepareRequest
    /** Findings of the posted configuration. */
    readonly problems: readonly PreflightProblem[]
    /** The running cluster of this host, for a change of it. */
    readonly running?: DesiredState
  },
  signal: AbortSignal,
  /** The staged files are removed after it, unless it has kept them. */
  use: (examined: Examined) => Promise<T>,
) => Promise<T>

export function createExamine({ prepare, preflight }: ExamineOptions): Examine {
  return async ({ request, problems: posted, running }, signal, use) => {
    const prepared = await prepare.prepare(request, signal)
    try {
      const found = await preflight(prepared, posted, signal, running)
      const hide = createHideOf(sensitiveValues(prepared))
      const problems = found.problems.map((each) => ({ ...each, message: hide(each.message) }))
      return await use({ prepared, report: { ...found, problems }, hide })
    } finally {
      await prepared.discard()
    }
  }
}

/** A summary of errors, for a refusal. @param what the refused action, for example `the cluster cannot be created` */
export function summaryOf(what: string, problems: readonly PreflightProblem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  const more = errors.length > 1 ? `, and ${errors.length - 1} more errors; see details.problems` : ''
  return `${what}: ${first?.message ?? ''}${more}`
}

/** A plan for the API. @param hide masks sensitive values, which may be in the names of releases and packs */
export const plannedSteps = (
  stages: readonly Stage[],
  hide: (text: string) => string,
): ClusterDryRun['plan'] =>
  stages.flat().map(({ key, title, pack, timeoutMs }) => ({
    key: hide(key),
    title: hide(title),
    timeoutSeconds: timeoutMs / 1_000,
    ...(pack === undefined ? {} : { pack: hide(pack) }),
  }))

/** A desired state that is to become a revision. */
interface Proposal extends Pick<
  NewRevision,
  'by' | 'origin' | 'outcome' | 'reason' | 'scheduleAt' | 'platformNumber'
> {
  readonly prepared: Prepared
  readonly report: Preflight
  readonly plain: ClusterConfiguration
  /** The revision that it goes back to. */
  readonly copyOf?: Revision | undefined
  /** Digests of the content that other revisions need. */
  readonly needed: readonly string[]
  /** Writes more files of it, before it is accepted. */
  readonly writeFiles?: (revision: NewRevision) => Promise<void>
  /** Writes more rows of it, and its events, in the transaction that accepts it. @throws AppError where it may not be accepted any more */
  readonly writeRows: (revision: NewRevision) => void
  /** Removes its files, where it was not accepted. */
  readonly removeFiles: () => Promise<void>
  /** For a refusal, for example `the cluster was not created`. */
  readonly notDone: string
}

interface AcceptanceOptions {
  readonly database: Database
  readonly revisions: Pick<RevisionStore, 'add'>
  readonly sealed: Sealed
  readonly content: Pick<ContentAccess, 'pin' | 'renewPins'>
  /** @throws AppError Busy while the host does something that a change of the cluster has to wait for */
  readonly refuseBusy: () => void
  readonly clock: Clock
}

/** Accepts a checked state as a revision. */
export type Accept = (proposal: Proposal) => Promise<NewRevision>

/**
 * The one acceptance of a desired state, of a new cluster and of a change: its content is pinned, its files are kept, and one
 * transaction writes its revision, its other rows and its events. After a failure all of it is as before.
 * @returns a function that throws AppError InsufficientStorage, Busy
 */
export function createAcceptance(options: AcceptanceOptions): Accept {
  const { database, revisions, sealed, content, refuseBusy, clock } = options
  return async (proposal) => {
    const { prepared, report, needed } = proposal
    const revision = revisionOf(proposal, sealed, clock.now())
    try {
      // New content first: it has to be there now.
      await content.pin(pinHolder, report.digests)
      await content.renewPins(pinHolder, [...new Set([...needed, ...report.digests])])
      await prepared.keep()
      await proposal.writeFiles?.(revision)
      // It may have begun since the checks did.
      refuseBusy()
      database.transaction(() => {
        proposal.writeRows(revision)
        revisions.add(revision)
      })
      return revision
    } catch (error) {
      await proposal.removeFiles()
      await content.renewPins(pinHolder, needed)
      if (isUnwritable(error))
        throw new AppError(
          generalErrors.InsufficientStorage,
          `${proposal.notDone}: the database cannot be written; ${seeDisk}`,
          { cause: error },
        )
      throw error
    }
  }
}

function revisionOf(proposal: Proposal, sealed: Sealed, at: number): NewRevision {
  const { prepared, report, plain, copyOf, by, origin, outcome, reason, scheduleAt, platformNumber } =
    proposal
  const { desired, variables, definition } = prepared
  const { kubernetes, node, folder, generation } = desired
  const { kubernetesOf } = copyOf?.summary ?? {}
  return {
    generation,
    at,
    by,
    origin,
    folder,
    plain,
    outcome,
    ...(reason === undefined ? {} : { reason }),
    scheduleAt,
    platformNumber,
    posted: maskConfiguration(plain, variables),
    // The configuration of a Kubernetes that stays may contain values of its own definition.
    sensitive: [
      ...new Set([...sensitiveValues(prepared), ...(kubernetesOf ? (copyOf?.sensitive ?? []) : [])]),
    ],
    mark: sealed.mark(canonicalText(plain)),
    summary: {
      kubernetes: { pack: kubernetes.pack, version: kubernetes.version },
      node,
      definition,
      content: report.digests,
      ...(kubernetesOf === undefined ? {} : { kubernetesOf }),
    },
  }
}
