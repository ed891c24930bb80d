import type { StepActions } from '../step-program/action.ts'
import { initialise, clearInitialisation } from './actions/initialise.ts'
import { pullImages } from './actions/pull-images.ts'
import { removeKubernetes } from './actions/remove-kubernetes.ts'
import { startContainerd } from './actions/start-containerd.ts'
import { startUnits } from './actions/start-units.ts'
import { reconfigure } from './reconfigure/reconfigure.ts'

/** Actions of the engine. */
export const engineActions: StepActions = {
  'start-containerd': startContainerd,
  'pull-images': pullImages,
  'kubeadm-init': initialise,
  'kubeadm-clear': clearInitialisation,
  'start-units': startUnits,
  reconfigure,
  'remove-kubernetes': removeKubernetes,
}
