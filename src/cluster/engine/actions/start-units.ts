import { StepFailed } from '../../step.ts'
import type { StepAction } from '../../step-program/action.ts'
import { commands } from '../step-commands.ts'
import { units } from '../paths.ts'

/** Starts containerd and the kubelet again where they do not run, as after an administrator has stopped them. */
export const startUnits: StepAction = async () => {
  for (const unit of [units.containerd, units.kubelet]) {
    const failed = await commands.attempt('systemctl', ['start', unit], { timeoutMs: 90_000 })
    if (failed !== undefined) throw new StepFailed(`${unit} does not start; see: journalctl -u ${unit}`)
  }
}
