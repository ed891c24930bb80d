import { setTimeout as delay } from 'node:timers/promises'
import { kubectl } from './kubectl.ts'
import type { ClusterPaths } from './paths.ts'

/** Components of which one at a time works, by the lease that it renews every two seconds. */
const names = ['kube-controller-manager', 'kube-scheduler']
const pauseMs = 1_000
const patienceMs = 90_000

/**
 * Waits until controller manager and scheduler work again. After a time without an API they end, and the kubelet starts them again after a
 * pause that doubles with each end: until then no pod is scheduled, and nothing that belongs to a deleted object goes.
 * @param next what begins nevertheless when a lease is not renewed in time; it is in the line that says so
 */
export async function settleLeaders(
  paths: Pick<ClusterPaths, 'programs'>,
  next: string,
  print: (line: string) => void,
): Promise<void> {
  const since = Date.now()
  for (;;) {
    const late: string[] = []
    for (const name of names) if (!(await isRenewed(paths, name, since))) late.push(name)
    if (late.length === 0) return
    if (Date.now() - since > patienceMs) {
      print(`[settling] ${late.join(' and ')} did not renew their leases; ${next} nevertheless`)
      return
    }
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
