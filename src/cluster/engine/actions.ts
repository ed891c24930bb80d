import { renewalStep, type StepAction, type StepActions } from '../loop/step.ts'
import { initialise, clearInitialisation, pullImages } from './initialise.ts'
import { removeKubernetes } from './remove-kubernetes.ts'
import { fixNodeName, nodeNameStep } from './node-name.ts'
import { startContainerd } from './containerd.ts'
import { startUnits } from './units.ts'
import { reconfigure } from './reconfigure.ts'

/** An action that is loaded when it is run: the others, which every creation of a cluster starts, need neither YAML nor certificates. */
const lazily =
  (load: () => Promise<StepAction>): StepAction =>
  async (order, print) =>
    (await load())(order, print)

/** Actions of the engine. */
export const engineActions: StepActions = {
  'start-containerd': startContainerd,
  'pull-images': pullImages,
  'kubeadm-init': initialise,
  'kubeadm-clear': clearInitialisation,
  'start-units': startUnits,
  [nodeNameStep]: fixNodeName,
  reconfigure,
  'pull-next-images': lazily(async () => (await import('./upgrade/check.ts')).pullNextImages),
  'kubernetes-check': lazily(async () => (await import('./upgrade/check.ts')).checkUpgrade),
  'kubernetes-copy': lazily(async () => (await import('./upgrade/make-copy.ts')).makeCopy),
  'kubernetes-upgrade': lazily(async () => (await import('./upgrade/upgrade.ts')).upgradeKubernetes),
  'kubernetes-settle': lazily(async () => (await import('./upgrade/upgrade.ts')).settleKubernetes),
  'kubernetes-restore': lazily(async () => (await import('./upgrade/restore.ts')).restoreKubernetes),
  [renewalStep]: lazily(async () => (await import('./renew.ts')).renewCertificates),
  'remove-kubernetes': removeKubernetes,
}
