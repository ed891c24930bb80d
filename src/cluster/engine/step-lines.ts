import { renewalStep } from '../certificates/renewal-step.ts'
import type { Step } from '../step.ts'
import type { EngineEvent } from './engine.ts'
import { kubeadmEvent, parseKubeadmLine, upgradeEvent } from './kubeadm-lines.ts'

/**
 * Lines of our own actions and calls, in the form of kubeadm, and what they are to operators. What is observed too, as that containerd
 * runs or that the control plane is set up, is an event of the observation alone.
 */
const ownReasons = {
  programs: 'ProgramsPlaced',
  images: 'ImagesPulled',
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

/** Steps that pass on the lines of kubeadm. Those of `kubeadm reset` have names of phases that mean something else. */
const kubeadmSteps = ['pull-images', 'pull-next-images', 'kubeadm-init']

/** The event of a line of a step of the engine; undefined for any other line. */
export function eventOf({ key }: Pick<Step, 'key'>, line: string): EngineEvent | undefined {
  const parsed = parseKubeadmLine(line)
  if (parsed && Object.hasOwn(ownReasons, parsed.phase))
    return { reason: ownReasons[parsed.phase as keyof typeof ownReasons], message: parsed.text }
  if (key === 'kubernetes-upgrade') return upgradeEvent(line)
  // What `kubeadm certs renew` leaves out.
  if (key === renewalStep && /^(?:MISSING! |Detected external )/.test(line))
    return { reason: 'StepProgress', message: line }
  return kubeadmSteps.includes(key) ? kubeadmEvent(line) : undefined
}
