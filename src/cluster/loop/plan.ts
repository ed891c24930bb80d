import type { ClusterHost } from '../host/cluster-host.ts'
import type { Engine } from '../engine/engine.ts'
import { emptyHost, type EngineObserved, type Observed, type SettingObserved } from './observed.ts'
import type { PackWork } from '../packs/pack-work.ts'
import type { Step } from './step.ts'
import type { DesiredState, DesiredPack } from '../desired/desired-state.ts'

/** The parts whose steps a plan consists of; they plan without input or output. */
export interface PlanParts {
  readonly host: Pick<ClusterHost, 'recordSteps' | 'addressSteps' | 'settingsSteps' | 'restoreSteps'>
  readonly engine: Pick<Engine, 'prepare' | 'init' | 'change' | 'renew' | 'reset'>
  readonly packs: Pick<PackWork, 'steps' | 'removeSteps'>
}

/**
 * Steps whose stage before has to be complete. Within a stage steps are done in order, and a step of a pack that waits for its next try
 * holds up only that pack.
 */
export type Stage = readonly Step[]

export interface PlanInput {
  readonly desired: DesiredState
  readonly observed: Observed
  /** The cluster is to be deleted. */
  readonly isDeleting: boolean
  /** An administrator has asked for a renewal of the certificates of the control plane. */
  readonly isRenewalAskedFor: boolean
  /** The cluster was Running with this generation. From then on applied packs are watched, and not waited for. */
  readonly hasRun: boolean
  /** The cluster was Running with an earlier generation: a pack that did not change is not waited for either. */
  readonly isUpdate: boolean
}

/** Remaining steps, in order; empty if the desired state is reached. Pure. */
export function plan(
  parts: PlanParts,
  { desired, observed, isDeleting, isRenewalAskedFor, hasRun, isUpdate }: PlanInput,
): readonly Stage[] {
  const { host, engine, packs } = parts
  if (isDeleting)
    return nonEmpty([engine.reset(desired, observed.engine), host.restoreSteps(desired, observed)]).map(
      (stage) => stage.map((step) => ({ ...step, isDeletion: true })),
    )
  const left = (pack: DesiredPack) => {
    const seen = observed.packs.get(pack.id)
    const isWatched = hasRun || (isUpdate && seen?.wasAvailable === true)
    return isWatched && seen?.appliedDigest === pack.digest ? [] : packs.steps(desired, pack, seen)
  }
  return nonEmpty([
    host.recordSteps(observed),
    host.addressSteps(desired, observed),
    engine.prepare(desired, observed.engine),
    engine.init(desired, observed.engine),
    engine.change(desired, observed.engine),
    engine.renew(desired, observed.engine, isRenewalAskedFor),
    ...notDesired(desired, observed).map(([id, seen]) => packs.removeSteps(desired, id, seen)),
    ...byOrder(desired.packs).map((same) => waitsLast(same.map(left))),
    // Last: their problems keep no workload from running.
    host.settingsSteps(desired, observed),
  ])
}

/** Every step that a cluster may have, whatever is observed; each once. Pure. */
export function everyStep(parts: PlanParts, desired: DesiredState): readonly Step[] {
  const { engine } = emptyHost
  const setting: SettingObserved = { isApplied: false, isDue: true, isPlaced: true, problem: '' }
  const settings = { ntpServers: setting, sshKeys: setting }
  const complete = { ...engine, controlPlane: 'complete', version: desired.kubernetes.version } as const
  const engines: readonly EngineObserved[] = [
    engine,
    { ...engine, controlPlane: 'partial' },
    { ...complete, isPrepared: true, containerd: 'stopped' },
    { ...complete, isConfigured: false },
    ...versionChanges(complete),
  ]
  const making = engines.flatMap((each) =>
    plan(parts, {
      desired,
      observed: { ...emptyHost, isAddressHeld: false, engine: each, settings },
      isDeleting: false,
      hasRun: false,
      isUpdate: false,
      isRenewalAskedFor: true,
    }),
  )
  const deleting = plan(parts, {
    desired,
    observed: { ...emptyHost, isHostRecorded: true, engine: { ...engine, isPresent: true }, settings },
    isDeleting: true,
    hasRun: false,
    isUpdate: false,
    isRenewalAskedFor: false,
  })
  return [...new Map([...making, ...deleting].flat().map((step) => [step.key, step])).values()]
}

/** An upgrade from the version before, and a restoration. */
function versionChanges(complete: EngineObserved): readonly EngineObserved[] {
  const { version } = complete
  const [major, minor, patch] = version.split('.')
  const from = `${major}.${Number(minor) - 1}.${patch}`
  const change = { from, to: version, generation: 0, phase: 'restoring' } as const
  return [
    { ...complete, version: from },
    { ...complete, version: from, change },
  ]
}

const nonEmpty = (stages: readonly Stage[]) => stages.filter(({ length }) => length > 0)

/** Present packs that are not desired any more; they go before packs that may take their place, as their ports. */
const notDesired = ({ packs }: DesiredState, observed: Observed) => {
  const ids = new Set(packs.map(({ id }) => id))
  return [...observed.packs].filter(([id]) => !ids.has(id))
}

/** Packs of one order are independent; the next order starts when all before are available. */
const byOrder = (packs: readonly DesiredPack[]): readonly (readonly DesiredPack[])[] =>
  [...Map.groupBy(packs, ({ order }) => order)]
    .sort(([one], [other]) => one - other)
    .map(([, group]) => group)

/** Installs all packs of a stage before it waits for one: the last step of a pack waits until its workloads are available. */
const waitsLast = (steps: readonly Stage[]): Stage => [
  ...steps.flatMap((each) => each.slice(0, -1)),
  ...steps.flatMap((each) => each.slice(-1)),
]

/** Leaves out stages that wait for their next try and hold up nothing. @returns also their wait, milliseconds */
export function withoutAside(
  stages: readonly Stage[],
  waitMs: (key: string) => number,
): { readonly stages: readonly Stage[]; readonly asideMs: number } {
  const waitOf = (stage: Stage) =>
    stage.every(({ isAside }) => isAside) ? Math.max(0, ...stage.map(({ key }) => waitMs(key))) : 0
  const waits = stages.map(waitOf).filter((ms) => ms > 0)
  return { stages: stages.filter((stage) => waitOf(stage) === 0), asideMs: Math.min(Infinity, ...waits) }
}

/** Next action; undefined if the plan is empty. */
export type Next =
  | { readonly step: Step }
  /** So many milliseconds until a step may be tried again. */
  | { readonly waitMs: number }
  /** Every step of the stage was done, and yet the stage is still planned: it is repeated. */
  | { readonly again: Step }
  | undefined

/** History of the steps of a plan, by their keys. */
export interface StepHistory {
  /** Milliseconds until the step may be tried; 0 or less for one that need not wait. */
  readonly waitMs: (key: string) => number
  /** Whether it was done since the stage was gone through from its beginning. */
  readonly isDone: (key: string) => boolean
  /** Whether its last try failed. */
  readonly hasFailed: (key: string) => boolean
}

/**
 * Chooses from the first stage. A step that waits for its next try holds up the other steps of its pack, or of the stage where it belongs
 * to no pack: they are done again before it, since their results may be gone. Independent packs are not held up by one that fails: its
 * tries, which may take minutes each, come after the installations of other packs, and the waits for workloads come last.
 */
export function nextOf([stage]: readonly Stage[], { waitMs, isDone, hasFailed }: StepHistory): Next {
  const last = stage?.at(-1)
  if (!stage || !last) return undefined
  const waits = new Map<string | undefined, number>()
  const failed = new Set<string | undefined>()
  const endOf = new Map<string | undefined, string>()
  for (const { key, pack } of stage) {
    const left = waitMs(key)
    if (left > 0) waits.set(pack, Math.max(left, waits.get(pack) ?? 0))
    if (pack === undefined) continue
    if (hasFailed(key)) failed.add(pack)
    endOf.set(pack, key)
  }
  const rank = ({ key, pack }: Step) => (endOf.get(pack) === key ? 2 : 0) + (failed.has(pack) ? 1 : 0)
  const [step] = stage
    .filter(({ key, pack }) => !isDone(key) && !waits.has(pack))
    .sort((one, other) => rank(one) - rank(other))
  if (step) return { step }
  return waits.size > 0 ? { waitMs: Math.min(...waits.values()) } : { again: last }
}
