/** One piece of work, as data: planned, stored, run, and found again after a restart of the daemon. Every step is idempotent. */
export interface Step {
  /** What it does; the same work has the same key in every plan, for example `kubeadm-init` or `pack p1/web manifests`. */
  readonly key: string
  /** For people, for example `Set up the control plane`. */
  readonly title: string
  readonly timeoutMs: number
  /** `id` of the pack that it belongs to. A step of a pack that fails does not stop those of independent packs. */
  readonly pack?: string
  /** It is of a deletion, which ends all other steps. */
  readonly isDeletion?: true
  /** It puts an earlier state of Kubernetes in place: what is known of the packs is in doubt from its beginning on. */
  readonly isRestoration?: true
  /** While it waits for its next try, the stages behind it continue. */
  readonly isAside?: true
  readonly work: StepWork
}

export type StepWork =
  /**
   * An action of the program `step.cjs`, as root outside of the sandbox of the daemon, in a lasting run: it continues while the daemon is
   * down. The order reaches it by standard input.
   */
  | { readonly kind: 'action'; readonly action: string; readonly order: StepOrder }
  /** Work of the daemon itself, cut off when the daemon ends; `call` names the function of the room that knows it. */
  | { readonly kind: 'call'; readonly call: string; readonly order: StepOrder }

/** JSON. */
export type StepOrder = Readonly<Record<string, unknown>>

/** How a step ended. */
export type StepEnd =
  | { readonly kind: 'done' }
  /** @property reason one line for operators: what failed and what to do */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Its program was cut off, as by a power cut: look at the system and plan anew. */
  | { readonly kind: 'unknown' }

/** What a running `call` gets. */
export interface CallContext {
  readonly signal: AbortSignal
  /** Progress, a line for operators. */
  readonly onLine: (line: string) => void
}

/** Calls by their names. A call throws StepFailed with a reason for operators. */
export type StepCalls = Readonly<Record<string, (order: StepOrder, context: CallContext) => Promise<void>>>

/** A step cannot do its work; the message is one line for operators: what failed and what to do. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed'
}
