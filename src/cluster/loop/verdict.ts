import type { ClusterRecord } from '../cluster-store.ts'
import type { Observed } from './observed.ts'
import { isRefusal } from '../engine/notes.ts'
import type { StepRecord } from './step-store.ts'
import type { PackWork } from '../packs/pack-work.ts'
import type { DesiredState } from '../desired/desired-state.ts'

/** Time limits after which a change is taken back, milliseconds. */
export interface UpdateLimits {
  /** Until everything is available again; a change of the version of Kubernetes does not count. */
  readonly availableMs: number
  /** Until a change of the version of Kubernetes is good. */
  readonly kubernetesMs: number
  /** Longest silence of the API server in such a change. */
  readonly silentMs: number
}

export interface VerdictInput {
  readonly record: Pick<ClusterRecord, 'generation' | 'ranGeneration' | 'goodGeneration'>
  readonly observed: Observed
  /** The revision is a way back: the last good one again, or its packs with another Kubernetes. */
  readonly isGoingBack: boolean
  /** Problem of a part that the revision has changed; empty for none. */
  readonly trouble: string
  /** Steps that are planned, as they are stored. */
  readonly steps: readonly StepRecord[]
  /** Silence of the API server. */
  readonly silentMs: number
  /** Time for which the revision has been applied, in a change of the version of Kubernetes and otherwise. */
  readonly inChangeMs: number
  readonly elsewhereMs: number
}

export type Verdict =
  | { readonly kind: 'wait' }
  /** The last good revision is to be applied again. */
  | { readonly kind: 'back'; readonly reason: string }
  /** It is a way back, or a restoration, and does not come either: there is no further one. */
  | { readonly kind: 'stuck'; readonly reason: string }

/** Time that is left to a revision, and what follows. */
export interface Deadline {
  readonly leftMs: number
  readonly action: 'takenBack' | 'stuck'
}

const wait: Verdict = { kind: 'wait' }

/** Whether a revision that is being applied may come, or has to go. Pure. */
export function verdictOf(input: VerdictInput, limits: UpdateLimits): Verdict {
  const { record, observed, isGoingBack, trouble, steps, silentMs, inChangeMs, elsewhereMs } = input
  const { generation, ranGeneration, goodGeneration } = record
  // The first revision has nothing to go back to: it is tried until it comes, or is deleted.
  if (goodGeneration === 0 || ranGeneration === generation) return wait
  const failed = steps.find(({ state, failures }) => state === 'failed' && failures > 0)
  const { change } = observed.engine
  // There is no way back from a way back: it is tried again.
  const isReturning = isGoingBack || change?.phase === 'restoring'
  if (isReturning && change && failed) return { kind: 'stuck', reason: `${failed.title}: ${failed.reason}` }
  const late = trouble === '' ? 'it is not available' : trouble
  if (isReturning)
    return inChangeMs + elsewhereMs > limits.availableMs + limits.silentMs
      ? { kind: 'stuck', reason: late }
      : wait
  const back = (reason: string): Verdict => ({ kind: 'back', reason })
  if (failed && isRefusal(failed.reason)) return back(failed.reason)
  if (!change) {
    if (elsewhereMs <= limits.availableMs) return wait
    return back(`${late}, ${seconds(limits.availableMs)} s after it was begun`)
  }
  // Before there is a copy nothing was changed: the step is tried again until its time is over.
  const hasCopy = change.phase !== 'copying'
  // Once Kubernetes is upgraded, it is not given up for a step that fails once, as on a busy host.
  const mostFailures = change.phase === 'upgraded' ? 3 : 1
  if (failed && hasCopy && failed.failures >= mostFailures) return back(`${failed.title}: ${failed.reason}`)
  if (silentMs > limits.silentMs)
    return back(`the API server has not answered for ${seconds(limits.silentMs)} s`)
  if (inChangeMs > limits.kubernetesMs)
    return back(`Kubernetes was not good ${seconds(limits.kubernetesMs)} s after its change was begun`)
  return wait
}

const seconds = (ms: number) => Math.round(ms / 1_000)

interface LateInput {
  /** Why the revision has to go, as far as the host shows it. */
  readonly reason: string
  readonly desired: DesiredState
  readonly observed: Observed
  /** Steps that are planned, as they are stored. */
  readonly steps: readonly StepRecord[]
  readonly whyNot: PackWork['whyNot']
  readonly signal: AbortSignal
}

/**
 * Why a revision has to go, for operators: with the last failure of its step, and with the failing pod and container.
 * @returns the reason as it is where the API server does not answer
 */
export async function whyLate({
  reason,
  desired,
  observed,
  steps,
  whyNot,
  signal,
}: LateInput): Promise<string> {
  const failed = steps.find(
    ({ state, failures, reason: why }) => state !== 'done' && failures > 0 && why !== '',
  )
  const step = failed ? `${failed.title}: ${failed.reason}` : ''
  const parts = [reason, ...(step === '' || reason.includes(failed?.reason ?? '') ? [] : [step])]
  if (observed.engine.api !== 'answers') return parts.join('; ')
  for (const { id, digest } of desired.packs) {
    const seen = observed.packs.get(id)
    if (seen?.appliedDigest === digest && seen.wasAvailable) continue
    const pod = await whyNot(id, signal).catch(() => '')
    if (pod === '') continue
    if (!parts.some((part) => part.includes(pod))) parts.push(pod)
    break
  }
  return parts.join('; ')
}
