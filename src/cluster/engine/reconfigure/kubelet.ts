import { setTimeout as delay } from 'node:timers/promises'
import { StepFailed } from '../../step.ts'
import { commands } from '../commands.ts'
import { units } from '../paths.ts'

const kubeletMs = 60_000
const steadyMs = 5_000

/**
 * Starts the kubelet.
 * @param isAgain its configuration or its program has changed: it is started again, and has to run steadily
 * @throws StepFailed with the last words of it
 */
export async function startKubelet(isAgain: boolean): Promise<void> {
  const { kubelet } = units
  const failed = await commands.attempt('systemctl', [isAgain ? 'restart' : 'start', kubelet], {
    timeoutMs: 90_000,
  })
  if (failed !== undefined) throw new StepFailed(`the kubelet does not start; see: journalctl -u ${kubelet}`)
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
