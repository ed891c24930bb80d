import { setTimeout as delay } from 'node:timers/promises'
import { StepFailed } from '../step.ts'
import { commands } from './step-commands.ts'
import { units } from './paths.ts'

const kubeletMs = 60_000
const steadyMs = 5_000

/** Has systemd start the kubelet, or start it again. @throws StepFailed */
export async function startKubeletUnit(how: 'start' | 'restart'): Promise<void> {
  const failed = await commands.attempt('systemctl', [how, units.kubelet], { timeoutMs: 90_000 })
  if (failed !== undefined)
    throw new StepFailed(`the kubelet does not start; see: journalctl -u ${units.kubelet}`)
}

/**
 * Starts the kubelet.
 * @param isAgain its configuration or its program has changed: it is started again, and has to run steadily
 * @throws StepFailed with the last words of it
 */
export async function startKubelet(isAgain: boolean): Promise<void> {
  const { kubelet } = units
  await startKubeletUnit(isAgain ? 'restart' : 'start')
  if (!isAgain) return
  const starts = () => commands.run('systemctl', ['show', '--property=NRestarts,ActiveState', kubelet])
  const end = Date.now() + kubeletMs
  let [seen, since] = ['', 0]
  // systemd starts one again that refuses its configuration, so it has to be the same for some seconds.
  while (Date.now() < end) {
    const now = await starts()
    if (now !== seen || !now.includes('ActiveState=active')) [seen, since] = [now, Date.now()]
    else if (Date.now() - since >= steadyMs) return
    await delay(500)
  }
  const log = await commands.run('journalctl', ['-u', kubelet, '-n', '50', '-o', 'cat']).catch(() => '')
  const words = log.split('\n').findLast((line) => line.includes('err=') || /^E\d{4} /.test(line)) ?? ''
  throw new StepFailed(
    `the kubelet does not run with this configuration${words && `: ${words}`}; see: journalctl -u ${kubelet}`,
  )
}
