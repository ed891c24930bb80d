import { setTimeout as delay } from 'node:timers/promises'
import { kubectl } from '../kubectl.ts'
import type { ClusterPaths } from '../paths.ts'

/** Components of which one at a time works, by the lease that it renews every two seconds. */
const names = ['kube-controller-manager', 'kube-scheduler']
const pauseMs = 1_000

/**
 * Waits until controller manager and scheduler work again. After a time without an API they do not until their old leases are over, and the
 * health check of kubeadm gives its Job 15 s only.
 * @returns those whose lease was not renewed in time
 */
export async function waitForLeaders(
  paths: Pick<ClusterPaths, 'programs'>,
  timeoutMs: number,
): Promise<readonly string[]> {
  const since = Date.now()
  for (;;) {
    const left: string[] = []
    for (const name of names) if (!(await isRenewed(paths, name, since))) left.push(name)
    if (left.length === 0 || Date.now() - since > timeoutMs) return left
    await delay(pauseMs)
  }
}

async function isRenewed(
  paths: Pick<ClusterPaths, 'programs'>,
  name: string,
  since: number,
): Promise<boolean> {
  const args = ['get', 'lease', name, '--namespace=kube-system', '--output=jsonpath={.spec.renewTime}']
  const shown = await kubectl(paths, args, 10_000).catch(() => '')
  return Date.parse(shown.trim()) > since
}
