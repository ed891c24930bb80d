import type { Observed } from '../observed.ts'
import type { PackWork } from '../packs/pack-work.ts'
import type { StepRecord } from '../steps/step-store.ts'
import type { Wanted } from '../wanted.ts'

export interface LateInput {
  /** Why the revision has to go, as far as it is known by looking at the host. */
  readonly reason: string
  readonly wanted: Wanted
  readonly observed: Observed
  /** Steps that are planned, as they are stored. */
  readonly steps: readonly StepRecord[]
  readonly whyNot: PackWork['whyNot']
  readonly signal: AbortSignal
}

/**
 * Why a revision has to go, for operators: with why its step failed last, and with the pod and the container that do not run.
 * @returns the reason as it is where the API server does not answer
 */
export async function whyLate({
  reason,
  wanted,
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
  for (const { id, digest } of wanted.packs) {
    const seen = observed.packs.get(id)
    if (seen?.appliedDigest === digest && seen.wasAvailable) continue
    const pod = await whyNot(id, signal).catch(() => '')
    if (pod === '') continue
    if (!parts.some((part) => part.includes(pod))) parts.push(pod)
    break
  }
  return parts.join('; ')
}
