import type { CopyObserved, EngineObserved } from '../loop/observed.ts'
import type { SeenCertificates } from './certificates.ts'
import type { ReasonName } from '../events/reasons.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { Step, StepCalls } from '../loop/step.ts'
import type { Wanted } from '../desired/wanted.ts'

/** What makes Kubernetes of a host. Plans are pure: they do no input or output. */
export interface Engine {
  /** Names of the Kubernetes packs that this engine takes, for example `edge-k8s`. */
  readonly packs: readonly string[]
  /** The `call` steps of this part. */
  readonly calls: StepCalls
  /** What is missing or wrong for this engine, without a change of the host. */
  preflight(wanted: Wanted, signal: AbortSignal): Promise<readonly PreflightProblem[]>
  /** Images that Kubernetes itself needs. @throws Error why its programs cannot say */
  images(wanted: Wanted, signal: AbortSignal): Promise<readonly string[]>
  /** Digests of the programs in the content that it uses, as far as they are there: for `content.pin`. */
  contentOf(wanted: Wanted): Promise<readonly string[]>
  /** Steps until containerd runs, the programs are in place and the images are pulled; empty when that is so. */
  prepare(wanted: Wanted, observed: EngineObserved): readonly Step[]
  /** Steps until the API server answers and the kubelet runs; empty when that is so. */
  init(wanted: Wanted, observed: EngineObserved): readonly Step[]
  /**
   * Steps from the control plane that is set up to the one that is wanted: another configuration, a newer version, or the copy of the
   * version before; empty where it is that, or where none is set up.
   */
  change(wanted: Wanted, observed: EngineObserved): readonly Step[]
  /** Steps that renew the certificates of the control plane; empty where that is neither due nor asked for. */
  renew(wanted: Wanted, observed: EngineObserved, isAskedFor: boolean): readonly Step[]
  /** Copies of Kubernetes that are kept, to which it can go back, the newest first. */
  copies(): Promise<readonly CopyObserved[]>
  /** The certificates of Kubernetes on this host, with those of the kubelet; none where there is no control plane. */
  certificates(): Promise<SeenCertificates>
  observe(wanted: Wanted, signal: AbortSignal): Promise<EngineObserved>
  /** Steps that take Kubernetes from the host, whatever of it is there; the record of the host is restored after them. */
  reset(wanted: Wanted, observed: EngineObserved): readonly Step[]
  /** The kubeconfig of the administrator. @throws Error while there is none */
  kubeconfig(): Promise<string>
  /**
   * Reports that units or files of Kubernetes on this host have changed, so that they should be observed again.
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
