import type { EngineEvent } from '../engine/engine.ts'
import type { Observed } from '../loop/observed.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { Step } from '../loop/step.ts'
import type { EndpointPlace } from './address.ts'
import type { Wanted } from '../desired/wanted.ts'

/** What the cluster changes of the host beside Kubernetes. Plans are pure: they do no input or output. */
export interface ClusterHost {
  /** What is wrong with this host for such a cluster; it changes nothing. @param running what runs on it, for a change of that */
  preflight(wanted: Wanted, signal: AbortSignal, running?: Wanted): Promise<readonly PreflightProblem[]>
  /** Judges the address that was posted for the control plane; empty stands for the address of this host. `preflight` asks whether it is free. */
  placeEndpoint(host: string): Promise<EndpointPlace>
  observe(wanted: Wanted, signal: AbortSignal): Promise<HostObserved>
  /** The step that records the host before the cluster; empty when it is recorded. */
  recordSteps(observed: Observed): readonly Step[]
  /** The step that holds the virtual address; empty when it is held, or none is wanted. */
  addressSteps(wanted: Wanted, observed: Observed): readonly Step[]
  /** Steps that give the host the settings of the cluster, and take away those that are not wanted any more. */
  settingsSteps(wanted: Wanted, observed: Observed): readonly Step[]
  /** Steps that let the virtual address go and restore the recorded host, after the engine's reset; empty when no record is left. */
  restoreSteps(wanted: Wanted, observed: Observed): readonly Step[]
  /** Turns a line of a step into an event; undefined for any other line. */
  eventOf(step: Pick<Step, 'key'>, line: string): EngineEvent | undefined
}

export type HostObserved = Pick<Observed, 'isHostRecorded' | 'isAddressHeld' | 'missingAddress' | 'settings'>

/** Begins a line of the step `restore-host` that names something of another owner, which stays. */
export const leftMark = 'left as it is: '
