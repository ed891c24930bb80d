import type { EngineEvent } from '../engine/engine.ts'
import type { Observed, PackObserved } from '../loop/observed.ts'
import type { Step, StepCalls } from '../loop/step.ts'
import type { Wanted, WantedPack } from '../desired/wanted.ts'
import type { PackRecord } from './pack-store.ts'

/** Installs packs and looks at them. */
export interface PackWork {
  /**
   * Steps of a pack that are left; pure. `observed` is undefined for a pack that was never touched.
   * The last one waits until the workloads of the pack are available.
   */
  steps(wanted: Wanted, pack: WantedPack, observed: PackObserved | undefined): readonly Step[]
  /** Steps that take a pack away which is not wanted any more; empty where nothing of it is left. Pure. What `wanted` has too stays. */
  removeSteps(wanted: Wanted, id: string, observed: PackObserved): readonly Step[]
  /** The `call` steps of this part. */
  readonly calls: StepCalls
  /** Notes what a step of a pack may bring into the cluster, before it begins. */
  noteBegun(pack: WantedPack, step: Pick<Step, 'key'>): void
  /** Notes that a step of a pack is done. */
  noteDone(pack: WantedPack, step: Pick<Step, 'key'>): void
  /** By `id`; from what is stored and what the watches of a running cluster have said. */
  observe(wanted: Wanted, signal: AbortSignal): Promise<ReadonlyMap<string, PackObserved>>
  /** What is observed, with messages that also say why pods do not run; the API server is asked for that. */
  explain(observed: Observed['packs'], signal: AbortSignal): Promise<Observed['packs']>
  /** Why pods of a pack do not run, with the pod and the container; the API server is asked. Empty where there is nothing to say. */
  whyNot(id: string, signal: AbortSignal): Promise<string>
  /** Turns a line of a step of a pack into an event; undefined for any other line. */
  eventOf(step: Pick<Step, 'key'>, line: string): EngineEvent | undefined
  /** What is stored of the packs that were begun. */
  records(): readonly PackRecord[]
  /** Everything may differ from what was applied, as after a restoration of Kubernetes: all packs are applied again. */
  doubt(): void
  /** Forgets everything of the cluster. */
  forget(): void
  /** Ends the watches. */
  stop(): void
}
