import { createRunner } from '../../system/runner.ts'
import type { StepActions } from '../step-program/action.ts'
import { createReleaseAction } from './helm/install-release.ts'
import { createUninstallAction } from './helm/uninstall-release.ts'

/** Actions of the packs, for `step.cjs`. */
export const packActions: StepActions = {
  helm: createReleaseAction(createRunner()),
  'helm-uninstall': createUninstallAction(createRunner()),
}
