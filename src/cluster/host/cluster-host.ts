// `cluster/host` is the effect of a cluster on its host beside Kubernetes. Its pure parts are held to a recorded host: before a real
// cluster, while it ran, and after `kubeadm reset` (`test/fixtures/cluster/host`).
//
// - `cluster/host/read-state.ts` reads the state that Kubernetes and networks change (`host-state.ts` lists it). The action `record-host`
//   does so before the first step and writes it down once: a second record would count changes of the cluster as the host's own.
// - `cluster/host/plan-restore.ts` compares the record with the host: changes since are the cluster's (`ownership.ts`: names, comments,
//   networks) or are named. The action `restore-host` makes the changes and observes again until none is left (`restore.ts`), since some go
//   only after others: the end of a pod goes some time after its network namespace. It does not put back the text of `iptables-save`: rules
//   that the owner of the host has added since would be lost.
// - Ends of pods named `veth…` are not removed themselves, since podman's have such names too.
// - `address.ts` places the address of the control plane, asks the network for it, and writes the unit that holds it. The unit is a shell loop over
//   `ip monitor`, since no daemon of ours may be needed for a running cluster.
// - `cluster/host/host-facts.ts` reads this host within the sandbox, `judge-host.ts` judges it; pure. Limits of kubeadm are as in its
//   programs, and an error is a warning where the pack has kubeadm ignore it.
// - `settings.ts` gives the host the NTP servers and SSH keys of the cluster. A note in the folder of the cluster lists placed files,
//   before they are placed. The daemon observes the files of the time service itself; a home may be readable by its account only, so
//   `look-at-ssh-keys` of `step.cjs` observes the keys, once a minute and only where there are any. In a home all work is done with the
//   rights of its account (`ssh-keys.ts`).

import type { EngineEvent } from '../engine/engine.ts'
import type { Observed } from '../loop/observed.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { Step } from '../loop/step.ts'
import type { EndpointPlace } from './address.ts'
import type { DesiredState } from '../desired/desired-state.ts'

/** Changes of the host by the cluster, beside Kubernetes. Plans are pure: they do no input or output. */
export interface ClusterHost {
  /** Problems of this host for such a cluster; it changes nothing. @param running the running cluster, for a change of it */
  preflight(
    desired: DesiredState,
    signal: AbortSignal,
    running?: DesiredState,
  ): Promise<readonly PreflightProblem[]>
  /** What this host lacks for a cluster, without a definition. @param running the cluster of this host; undefined without one */
  lacking(running: Pick<DesiredState, 'kubernetes'> | undefined): Promise<readonly PreflightProblem[]>
  /** Judges the address that was posted for the control plane; empty stands for the address of this host. `preflight` asks whether it is free. */
  placeEndpoint(host: string): Promise<EndpointPlace>
  observe(desired: DesiredState, signal: AbortSignal): Promise<HostObserved>
  /** The step that records the host before the cluster; empty when it is recorded. */
  recordSteps(observed: Observed): readonly Step[]
  /** The step that holds the virtual address; empty when it is held, or none is desired. */
  addressSteps(desired: DesiredState, observed: Observed): readonly Step[]
  /** Steps that give the host the settings of the cluster, and take away undesired ones. */
  settingsSteps(desired: DesiredState, observed: Observed): readonly Step[]
  /** Steps that release the virtual address and restore the recorded host, after the engine's reset; empty when no record is left. */
  restoreSteps(desired: DesiredState, observed: Observed): readonly Step[]
  /** Turns a line of a step into an event; undefined for any other line. */
  eventOf(step: Pick<Step, 'key'>, line: string): EngineEvent | undefined
}

export type HostObserved = Pick<Observed, 'isHostRecorded' | 'isAddressHeld' | 'missingAddress' | 'settings'>

/** Prefix of a line of the step `restore-host` that names a part of another owner, which stays. */
export const leftMark = 'left as it is: '
