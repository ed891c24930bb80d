import { createHideOf } from '../definition/slots/secrets.ts'
import { sensitiveValues } from './configuration/mask-configuration.ts'
import type { Preflight } from './preflight/collect.ts'
import type { Prepare, Prepared, PrepareRequest } from './prepare/prepared.ts'
import type { PreflightProblem } from './problem.ts'
import type { Wanted } from './wanted.ts'

export interface ExamineOptions {
  readonly prepare: Prepare
  readonly preflight: (
    prepared: Prepared,
    posted: readonly PreflightProblem[],
    signal: AbortSignal,
    running?: Wanted,
  ) => Promise<Preflight>
}

export interface Examined {
  readonly prepared: Prepared
  /** Messages are masked. */
  readonly report: Preflight
  /** Masks the sensitive values in a text. */
  readonly hide: (text: string) => string
}

/** Prepares a cluster and makes all checks. */
export type Examine = <T>(
  order: {
    readonly request: PrepareRequest
    /** Findings of what was posted. */
    readonly problems: readonly PreflightProblem[]
    /** What runs on this host, for a change of it. */
    readonly running?: Wanted
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

/** A summary of errors, for a refusal. @param what cannot be done, for example `the cluster cannot be created` */
export function summaryOf(what: string, problems: readonly PreflightProblem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  const more = errors.length > 1 ? `, and ${errors.length - 1} more errors; see details.problems` : ''
  return `${what}: ${first?.message ?? ''}${more}`
}
