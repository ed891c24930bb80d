// `cluster/packs` installs and observes packs; `pack-work.ts` is its contract. The daemon itself applies manifests; charts are installed by
// helm, outside of the sandbox, so that an installation outlives the daemon.
//
// - `pack-steps.ts` is pure: the steps of a pack that are left. Namespaces come first, then the kinds that manifests define, since a chart
//   may need them, then charts, then the other manifests, since these often configure objects of a chart; the last step waits for the
//   workloads. `pack-store.ts` keeps which steps are done for which digest, and the objects of manifests and charts.
// - `releases.ts` has the actions of helm; `helm.ts` has the cure of a release that a killed helm left pending. Where a first installation
//   failed before its hooks had succeeded, the release is uninstalled before the next try: that would be an upgrade, which leaves out hooks
//   of the installation. helm itself reports its waits with `--debug`, and `helm status --show-resources` lists the objects of the release
//   as JSON, with the namespaces that its templates leave out. `test/host/cluster/packs/helm.real.test.ts` kills a real helm at every
//   moment of an installation and an upgrade.
// - Empty values would mean the last revision's, so helm runs with `--reset-values`. There is no `--atomic`: a failed installation stays
//   for inspection.
// - One field manager applies the namespaces of all packs, so each pack applies the labels that any pack gives a namespace. One that is an object
//   of a manifest is applied as that, with the label of that pack, also by a pack that only needs it.
// - `availability.ts` waits for the objects of a pack by `kubernetes/readiness.ts`. `troubles.ts` is pure: why pods do not run, by one word
//   and a message; `read-troubles.ts` reads what that needs, and knows the packs of pods, also while helm waits for a release.
//   Services of type LoadBalancer are not waited for: on many hosts nothing gives them an address.
// - `availability.ts` watches workloads once a pack is applied, one watch for each kind. A later failure is a matter of health.
// - `cluster/packs/releases.ts` is pure: whether a release has a chart with its values already, or had them in a revision that helm still has. The
//   digest of chart and values is the description of a revision, so it is in the cluster with the release, and right also after the cluster was
//   restored.
// - `drift.ts` holds the objects of packs that are available. It watches only metadata, for each kind by the label of our objects and by
//   helm's, and asks for a watch of an hour: at rest a kind costs a request an hour and a bookmark a minute. An object whose generation,
//   labels or annotations have changed is compared with the dry-run of its server-side apply (`put-right.ts`); only where these differ, it
//   is applied. Replicas that a HorizontalPodAutoscaler decides are left alone (`put-right.ts`). A correction under way ends when another
//   revision begins, since that may change the same object in the next moment; while a cluster is deleted nothing is put right. The desired
//   objects are read from the files when they are needed. For charts the action `helm` writes down the manifest of the release.
// - A StatefulSet with ordered pods waits for one of a former template that never runs: `former-pods.ts` deletes that pod.
// - `drain.ts` evicts pods before a change of their pack.
// - `pack-steps.ts` is pure: the steps that take a pack away, in the opposite order of its installation. `noteStarted` stores the name of a
//   release before helm begins, so that also a failed one is found. `create-pack-work.ts` stores which namespaces were missing before a
//   pack was applied, and deletes these when they are empty. `create-pack-work.ts` keeps objects that a desired pack has too. The record of
//   the pack is removed last, so all of it is done again where it was cut off.
// - `applications.ts` is pure: the reply of `GET /v1/edge-mgmt/cluster/applications`.

import type { EngineEvent } from '../engine/engine.ts'
import type { PackObserved } from '../loop/observed.ts'
import type { Step, StepCalls } from '../loop/step.ts'
import type { DesiredState, DesiredPack } from '../desired/desired-state.ts'
import type { PackRecord } from './pack-store.ts'

/** Installs and observes packs. */
export interface PackWork {
  /**
   * Steps of a pack that are left; pure. `observed` is undefined for a pack that was never touched.
   * The last one waits until the workloads of the pack are available.
   */
  steps(desired: DesiredState, pack: DesiredPack, observed: PackObserved | undefined): readonly Step[]
  /** Steps that remove a pack that is not desired any more; empty where nothing of it is left. Pure. Parts that `desired` has too stay. */
  removeSteps(desired: DesiredState, id: string, observed: PackObserved): readonly Step[]
  /** The `call` steps of this part. */
  readonly calls: StepCalls
  /** Notes objects that a step of a pack may bring into the cluster, before it begins. */
  noteStarted(pack: DesiredPack, step: Pick<Step, 'key'>): void
  /** Notes that a step of a pack is done. */
  noteDone(pack: DesiredPack, step: Pick<Step, 'key'>): void
  /**
   * By `id`; from the records and the watches of a running cluster. The API server is asked for the pods of packs that are started and not
   * available, and for none where all are.
   */
  observe(desired: DesiredState, signal: AbortSignal): Promise<ReadonlyMap<string, PackObserved>>
  /** Turns a line of a step of a pack into an event; undefined for any other line. */
  eventOf(step: Pick<Step, 'key'>, line: string): EngineEvent | undefined
  /** Records of the started packs. */
  records(): readonly PackRecord[]
  /** Everything may differ from what was applied, as after a restoration of Kubernetes: all packs are applied again. */
  doubt(): void
  /** Forgets everything of the cluster. */
  forget(): void
  /** Ends the watches. */
  stop(): void
}
