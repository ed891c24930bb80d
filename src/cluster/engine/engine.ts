// `cluster/engine/engine.ts` is the interface of the room `cluster` to Kubernetes on a host; `kubeadm.ts` is the one implementation (ADR
// 25).
//
// - `programs.ts` finds kubeadm, kubelet, kubectl, helm and etcdctl in the content, or in `cluster.programs.directory`, and lays them out as
//   `cluster/programs/<name>/<version>` in the state folder; `current` leads to the one in use. Pre-flight uses them before there is a cluster.
// - `pack-config.ts` and `kubeadm-config.ts` are pure: from `cluster.config` of the pack to the file for `kubeadm init`. `kubeadm-files.ts` asks
//   kubeadm itself for the migration, its judgement and the list of images.
// - The calls of `kubeadm.ts` change only the state folder: programs, the files of kubeadm, and `hosts.toml` with the password of the registry.
// - `actions.ts` lists what runs outside of the sandbox: `start-containerd` (kernel modules, sysctls, CNI plugins, both units),
//   `pull-images`, `kubeadm-init`, `kubeadm-clear`, `start-units`, `remove-kubernetes`. Correct parts stay untouched, so each may be run
//   again.
// - `remove-kubernetes.ts` removes leftovers of `kubeadm reset` where containerd does not answer: shims, their sockets in the folder that
//   all containerds share, scopes. The state of runc is in the folder of our containerd and goes with it.
// - `observe.ts` reads `systemctl show` of both units, the notes in `cluster/kubeadm`, and asks the API server. `watch` reports changes of the
//   units by inotify on `/run/systemd/units`, where systemd has a link for each unit that runs; no bus is needed.
// - `upgrade/` takes Kubernetes to another version and back (ADR 27). `kubeadm.ts` is pure: from the notes and the desired state to the
//   steps that are left. `check.ts`, `make-copy.ts`, `upgrade.ts` and `restore.ts` are its actions; `notes.ts` and `copy.ts` are the files
//   by which the loop finds its place.
// - `certificates.ts` reads the certificates of kubeadm and of the kubelet, `renew.ts` renews them. It reads a file again only when its
//   state has changed, so an observation at rest costs one `stat` a file. Due renewals are computed without I/O. The life of a certificate
//   begins when its file was written, since kubeadm may keep the date of issue; nothing is due while the clock is before the authorities.
//   The action `certificates-renew` is done before the wait for the API server where a certificate has ended, since neither that nor the
//   kubelet starts then. kubeadm writes in place, so `renewal-copy.ts` keeps a copy until the new files are on the disk. While a renewal
//   waits for its next try, other steps continue (`isAside`).
// - `step-lines.ts` turns lines of actions and of kubeadm into events; it is held to recorded output in `test/fixtures/kubeadm`.

import type { CopyObserved, EngineObserved } from '../loop/observed.ts'
import type { SeenCertificates } from './certificates.ts'
import type { ReasonName } from '../events/reasons.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { Step, StepCalls } from '../loop/step.ts'
import type { DesiredState } from '../desired/desired-state.ts'

/** Makes Kubernetes of a host. Plans are pure: they do no input or output. */
export interface Engine {
  /** Names of the Kubernetes packs that this engine takes, for example `edge-k8s`. */
  readonly packs: readonly string[]
  /** The `call` steps of this part. */
  readonly calls: StepCalls
  /** Missing or wrong parts for this engine, without a change of the host. */
  preflight(desired: DesiredState, signal: AbortSignal): Promise<readonly PreflightProblem[]>
  /** Images that Kubernetes itself needs. @throws Error with the failure of its programs */
  images(desired: DesiredState, signal: AbortSignal): Promise<readonly string[]>
  /** Digests of the programs in the content that it uses, as far as they are there: for `content.pin`. */
  contentOf(desired: DesiredState): Promise<readonly string[]>
  /** Steps until containerd runs, the programs are in place and the images are pulled; empty when that is so. */
  prepare(desired: DesiredState, observed: EngineObserved): readonly Step[]
  /** Steps until the API server answers and the kubelet runs; empty when that is so. */
  init(desired: DesiredState, observed: EngineObserved): readonly Step[]
  /**
   * Steps from the present control plane to the desired one: another configuration, a newer version, or the copy of the version before;
   * empty where it is that, or where none is set up.
   */
  change(desired: DesiredState, observed: EngineObserved): readonly Step[]
  /** Steps that renew the certificates of the control plane; empty where that is neither due nor asked for. */
  renew(desired: DesiredState, observed: EngineObserved, isAskedFor: boolean): readonly Step[]
  /** Copies of Kubernetes that are kept, to which it can go back, the newest first. */
  copies(): Promise<readonly CopyObserved[]>
  /** The certificates of Kubernetes on this host, with the kubelet's; none where there is no control plane. */
  certificates(): Promise<SeenCertificates>
  observe(desired: DesiredState, signal: AbortSignal): Promise<EngineObserved>
  /** Steps that take Kubernetes from the host, whatever of it is there; the record of the host is restored after them. */
  reset(desired: DesiredState, observed: EngineObserved): readonly Step[]
  /** The kubeconfig of the administrator. @throws Error while there is none */
  kubeconfig(): Promise<string>
  /**
   * Reports that units or files of Kubernetes on this host have changed, so that they are observed again.
   * @returns a function that ends it
   */
  watch(onChange: () => void): () => void
  /** Turns a line of a step into an event; undefined for any other line. */
  eventOf(step: Pick<Step, 'key'>, line: string): EngineEvent | undefined
}

export interface EngineEvent {
  readonly reason: ReasonName
  readonly message: string
}
