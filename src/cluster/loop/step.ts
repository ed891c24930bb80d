/** Key of the step that renews the certificates of the control plane. */
export const renewalStep = 'certificates-renew'

/** One piece of work, as data: planned, stored, run, and found again after a restart of the daemon. Every step is idempotent. */
export interface Step {
  /** Name of its work; the same work has the same key in every plan, for example `kubeadm-init` or `pack p1/web manifests`. */
  readonly key: string
  /** For people, for example `Set up the control plane`. */
  readonly title: string
  readonly timeoutMs: number
  /** `id` of its pack. A failed step of a pack does not stop steps of independent packs. */
  readonly pack?: string
  /** It is of a deletion, which ends all other steps. */
  readonly isDeletion?: true
  /** It puts an earlier state of Kubernetes in place: the records of the packs are in doubt from its beginning on. */
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

/** End of a step. */
export type StepEnd =
  | { readonly kind: 'done' }
  /** @property reason one line for operators: the failure and the remedy */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Its program was cut off, as by a power cut: observe the system and plan anew. */
  | { readonly kind: 'unknown' }

/** Context of a running `call`. */
export interface CallContext {
  readonly signal: AbortSignal
  /** Progress, a line for operators. */
  readonly onLine: (line: string) => void
}

/** Calls by their names. A call throws StepFailed with a reason for operators. */
export type StepCalls = Readonly<Record<string, (order: StepOrder, context: CallContext) => Promise<void>>>

/** A step cannot do its work; the message is one line for operators: the failure and the remedy. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed'
}

/**
 * An action of the program `step.cjs`, as root outside of the sandbox of the daemon. It is idempotent: it may have been cut off, or be done
 * already.
 * @param print writes a line to the output of the step, for operators and for `Engine.eventOf`
 * @throws StepFailed with a reason for operators
 */
export type StepAction = (order: StepOrder, print: (line: string) => void) => Promise<void>

/** Actions by their names. */
export type StepActions = Readonly<Record<string, StepAction>>

/**
 * Runs an action. The last line of a failed one is its reason, for operators.
 * @param input the order, JSON
 * @returns the exit code
 */
export async function runAction(
  actions: StepActions,
  name: string,
  input: string,
  print: (line: string) => void,
): Promise<0 | 1> {
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) {
    print(`step.cjs does not know the action ${JSON.stringify(name)}; this is a defect of edgehostd`)
    return 1
  }
  try {
    await action(JSON.parse(input) as StepOrder, print)
    return 0
  } catch (error) {
    if (!(error instanceof StepFailed)) print(String((error as Error).stack))
    print(oneLine((error as Error).message))
    return 1
  }
}

const oneLine = (text: string) => text.trim().replace(/\s*\n\s*/g, '; ')
