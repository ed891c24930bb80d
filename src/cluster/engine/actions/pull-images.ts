import { setTimeout as delay } from 'node:timers/promises'
import { replaceFile } from '../../../system/files.ts'
import { StepFailed } from '../../step.ts'
import type { StepAction } from '../../step-program/action.ts'
import { runKubeadm } from '../run-kubeadm.ts'
import { clusterPaths } from '../paths.ts'

/** Pulls the images of Kubernetes from the registry of this host, and notes that the preparation is done. */
export const pullImages: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  const args = ['config', 'images', 'pull', '--config', paths.kubeadmConfig]
  const failed = await whilePullsAreEarly(() => runKubeadm(paths, args, print), print)
  if (failed !== undefined) throw new StepFailed(`the images of Kubernetes cannot be pulled: ${failed}`)
  await replaceFile(paths.prepared, JSON.stringify({ digest: order.digest }), 0o600)
  print('[images] all images of Kubernetes are pulled')
}

const tries = 20
/** The registry is part of the daemon, which may just be started again; containerd finds its containers anew after a restart, which takes seconds. */
const early = /connection refused|server is not initialized yet/

/**
 * Pulls again where the registry takes no connection, or containerd is not ready.
 * @param pull gives why it failed; undefined if it did not
 * @returns why the last try failed; undefined if it did not
 */
export async function whilePullsAreEarly(
  pull: () => Promise<string | undefined>,
  print: (line: string) => void,
  pauseMs = 3_000,
): Promise<string | undefined> {
  for (let left = tries - 1; ; left -= 1) {
    const failed = await pull()
    if (failed === undefined || left === 0 || !early.test(failed)) return failed
    print(
      '[images] the registry of this host or containerd does not answer; they are pulled again in a moment',
    )
    await delay(pauseMs)
  }
}
