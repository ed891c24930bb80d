import { renewalStep } from '../certificates/renewal-step.ts'
import type { StepActions } from '../step-program/action.ts'
import { initialise, clearInitialisation } from './actions/initialise.ts'
import { pullImages } from './actions/pull-images.ts'
import { removeKubernetes } from './actions/remove-kubernetes.ts'
import { startContainerd } from './actions/start-containerd.ts'
import { startUnits } from './actions/start-units.ts'
import { renewCertificates } from './certificates/renew.ts'
import { reconfigure } from './reconfigure/reconfigure.ts'
import { checkUpgrade, pullNextImages } from './upgrade/check.ts'
import { makeCopy } from './upgrade/make-copy.ts'
import { restoreKubernetes } from './upgrade/restore.ts'
import { settleKubernetes } from './upgrade/settle.ts'
import { upgradeKubernetes } from './upgrade/upgrade.ts'

/** Actions of the engine. */
export const engineActions: StepActions = {
  'start-containerd': startContainerd,
  'pull-images': pullImages,
  'kubeadm-init': initialise,
  'kubeadm-clear': clearInitialisation,
  'start-units': startUnits,
  reconfigure,
  'pull-next-images': pullNextImages,
  'kubernetes-check': checkUpgrade,
  'kubernetes-copy': makeCopy,
  'kubernetes-upgrade': upgradeKubernetes,
  'kubernetes-settle': settleKubernetes,
  'kubernetes-restore': restoreKubernetes,
  [renewalStep]: renewCertificates,
  'remove-kubernetes': removeKubernetes,
}
