import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { createRunner, type CommandRunner, type CommandStreamer } from '../../system/runner.ts'
import { StepFailed, renewalStep, type Step } from '../loop/step.ts'
import type { EngineEvent } from './engine.ts'

const shortMs = 60_000
// The step of the action has a limit of its own.
const longMs = 3_600_000

export interface CommandOptions {
  readonly timeoutMs?: number
}

export interface Commands {
  /** @returns its standard output @throws StepFailed with its error output */
  run(program: string, args: readonly string[], options?: CommandOptions): Promise<string>
  /** @returns its failure; undefined for none */
  attempt(program: string, args: readonly string[], options?: CommandOptions): Promise<string | undefined>
  /**
   * Passes on the lines of a program as they come.
   * @returns its exit code and its last lines
   */
  stream(
    program: string,
    args: readonly string[],
    onLine: (line: string) => void,
    environment: Readonly<Record<string, string>>,
  ): Promise<{ readonly exitCode: number | undefined; readonly tail: string }>
}

function createCommands(runner: CommandRunner & CommandStreamer): Commands {
  const commands: Commands = {
    async run(program, args, { timeoutMs = shortMs } = {}) {
      const result = await runner.run(program, args, { timeoutMs }).catch(stepFailed)
      if (result.exitCode === 0) return result.stdout
      throw new StepFailed(
        `${[program, ...args].join(' ')} failed: ${result.stderr.trim() || result.stdout.trim()}`,
      )
    },
    attempt: (program, args, options) =>
      commands.run(program, args, options).then(
        () => undefined,
        (error: unknown) => (error as Error).message,
      ),
    stream: (program, args, onLine, environment) =>
      runner.stream(program, args, { timeoutMs: longMs, environment, onLine }).catch(stepFailed),
  }
  return commands
}

const stepFailed = (error: unknown) => {
  throw new StepFailed((error as Error).message, { cause: error })
}

const runner = createRunner()

/** Programs of the host, as an action runs them: to their end, and a failure has a reason for operators. */
export const commands = createCommands(runner)

/** kubeadm and kubectl, which read data of definitions and of the cluster: the same, with a bound for their memory. */
export const kubernetesCommands = createCommands(createBoundedRunner(runner))

/** Phases of `kubeadm init` and `kubeadm config`, as its lines name them in brackets, and their reasons. */
const reasonOfPhase = {
  preflight: 'CheckingHost',
  certs: 'MakingCertificates',
  kubeconfig: 'WritingKubeconfigs',
  etcd: 'WritingEtcdPod',
  'control-plane': 'WritingStaticPods',
  'kubelet-start': 'StartingKubelet',
  'wait-control-plane': 'WaitingForControlPlane',
  'kubelet-check': 'WaitingForControlPlane',
  'control-plane-check': 'WaitingForControlPlane',
  'upload-config': 'StoringConfiguration',
  'mark-control-plane': 'MarkingNode',
  'bootstrap-token': 'MakingBootstrapToken',
  addons: 'ApplyingAddons',
} as const satisfies Readonly<Record<string, EngineEvent['reason']>>

/** A line `[phase] text` of kubeadm. */
interface KubeadmLine {
  readonly phase: string
  readonly text: string
}

/** Parses a line of kubeadm; undefined for one without a phase. */
function parseKubeadmLine(line: string): KubeadmLine | undefined {
  const [, phase, text] = /^\[([a-z]+(?:[-/][a-z]+)*)\]:? (\S.*)$/.exec(line) ?? []
  return phase === undefined || text === undefined ? undefined : { phase, text }
}

/** The event of a line of `kubeadm upgrade apply`; undefined for any other line. */
function upgradeEvent(line: string): EngineEvent | undefined {
  const [, text] =
    /^\[upgrade\/[a-z-]+\] (Preparing for .* upgrade|Component .* upgraded successfully!?)$/.exec(
      line.trim(),
    ) ?? []
  if (text !== undefined) return { reason: 'KubernetesUpgrading', message: text }
  const [, warning] = /^\s*\[WARNING [^\]]+\]: (.+)$/.exec(line) ?? []
  return warning === undefined ? undefined : { reason: 'StepProgress', message: `kubeadm warns: ${warning}` }
}

/** The event of a line of kubeadm; undefined for any other line. */
function kubeadmEvent(line: string): EngineEvent | undefined {
  const [, warning] = /^\s*\[WARNING [^\]]+\]: (.+)$/.exec(line) ?? []
  if (warning !== undefined) return { reason: 'StepProgress', message: `kubeadm warns: ${warning}` }
  const parsed = parseKubeadmLine(line)
  if (!parsed) return undefined
  const { phase, text } = parsed
  if (phase === 'config/images')
    return text.startsWith('Pulled ') ? { reason: 'ImagePulled', message: text } : undefined
  // The others speak of a download from the internet, which does not take place: the images are here.
  if (phase === 'preflight' && !text.startsWith('Running')) return undefined
  return Object.hasOwn(reasonOfPhase, phase)
    ? { reason: reasonOfPhase[phase as keyof typeof reasonOfPhase], message: text }
    : undefined
}

/**
 * Lines of our own actions and calls, in the form of kubeadm, and their reasons. Observed facts, as that containerd runs or that the
 * control plane is set up, are events of the observation alone.
 */
const ownReasons = {
  programs: 'ProgramsPlaced',
  images: 'ImagesPulled',
  'images-wait': 'StepProgress',
  clear: 'BootstrapReset',
  kernel: 'StepProgress',
  cni: 'StepProgress',
  configuration: 'StepProgress',
  configured: 'StepProgress',
  checked: 'KubernetesChecked',
  copying: 'KubernetesCopying',
  copied: 'KubernetesCopied',
  upgraded: 'KubernetesUpgraded',
  settling: 'StepProgress',
  good: 'KubernetesGood',
  restoring: 'KubernetesRestoring',
  restored: 'KubernetesRestored',
  unchanged: 'KubernetesUnchanged',
  certificates: 'StepProgress',
  renewed: 'CertificatesRenewed',
} as const satisfies Readonly<Record<string, EngineEvent['reason']>>

/** Steps that pass on the lines of kubeadm. Phases of `kubeadm reset` have the same names with other meanings. */
const kubeadmSteps = ['pull-images', 'pull-next-images', 'kubeadm-init']

/** The event of a line of a step of the engine; undefined for any other line. */
export function eventOf({ key }: Pick<Step, 'key'>, line: string): EngineEvent | undefined {
  const parsed = parseKubeadmLine(line)
  if (parsed && Object.hasOwn(ownReasons, parsed.phase))
    return { reason: ownReasons[parsed.phase as keyof typeof ownReasons], message: parsed.text }
  if (key === 'kubernetes-upgrade') return upgradeEvent(line)
  // Lines of files that `kubeadm certs renew` leaves out.
  if (key === renewalStep && /^(?:MISSING! |Detected external )/.test(line))
    return { reason: 'StepProgress', message: line }
  return kubeadmSteps.includes(key) ? kubeadmEvent(line) : undefined
}
