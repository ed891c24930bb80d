import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { StepAction } from '../../step-program/action.ts'
import { commands } from '../step-commands.ts'
import { restoreCniFolder } from '../cni-folder.ts'
import { kernelFiles } from '../kernel.ts'
import { forgetFailedScopes, removeLeftovers } from '../leftovers.ts'
import { mountsBelow } from '../mounts.ts'
import { isOwnUnit } from '../own-units.ts'
import { clusterPaths, containerdState, unitFolder, units, type ClusterPaths } from '../paths.ts'
import { currentProgram } from '../programs.ts'
import { endShims, removeDeadSockets } from '../shims.ts'
import { resetKubeadm } from './initialise.ts'

/**
 * Takes Kubernetes and our containerd from the host, as far as they are there: pods, units, mounts and files of kubeadm, the kubelet and
 * containerd. Links, rules and files of the network are left to the restoration of the host, which follows.
 */
export const removeKubernetes: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  // Without an initialisation of ours, pods and files of kubeadm would be of another cluster.
  if (existsSync(paths.initialisation) && existsSync(currentProgram(paths.programs, 'kubeadm')))
    await removePods(paths, print)
  for (const unit of [units.kubelet, units.containerd]) if (await isOwnUnit(unit)) await removeUnit(unit)
  await endShims()
  await endPods()
  await forgetFailedScopes()
  await removeDeadSockets()
  await unmount([containerdState, paths.containerd])
  for (const path of Object.keys(kernelFiles(true))) await rm(path, { force: true })
  await commands.run('systemctl', ['daemon-reload'])
  await restoreCniFolder(paths)
  await removeLeftovers()
  for (const path of [containerdState, paths.containerd, dirname(paths.containerdConfig)])
    await rm(path, { recursive: true, force: true })
  // Last: a removal that is cut off before needs them again.
  for (const path of [paths.copies, paths.kubeadm, paths.programs])
    await rm(path, { recursive: true, force: true })
  print('[removed] Kubernetes is removed')
}

async function removeUnit(unit: string): Promise<void> {
  await commands.attempt('systemctl', ['stop', unit], { timeoutMs: 120_000 })
  // Shims of containerd outlive it.
  await commands.attempt('systemctl', ['kill', '--kill-whom=all', '--signal=SIGKILL', unit])
  await commands.attempt('systemctl', ['--quiet', 'disable', unit])
  await rm(join(unitFolder, unit), { force: true })
  await commands.attempt('systemctl', ['reset-failed', unit])
}

/** Ends the pods by `kubeadm reset`; what it cannot end is killed afterwards. */
async function removePods(paths: ClusterPaths, print: (line: string) => void): Promise<void> {
  await commands.attempt('systemctl', ['stop', units.kubelet], { timeoutMs: 120_000 })
  await commands.attempt('systemctl', ['start', units.containerd], { timeoutMs: 90_000 })
  await resetKubeadm(paths, print).catch((error: unknown) => {
    print(`[reset] ${(error as Error).message}; the rest is removed without it`)
  })
  await endPods()
  await unmount(['/var/lib/kubelet'])
}

/** Ends what kubeadm reset has left of the pods, as where containerd does not answer. */
const endPods = () => commands.attempt('systemctl', ['stop', 'kubepods.slice'], { timeoutMs: 120_000 })

async function unmount(folders: readonly string[]): Promise<void> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  for (const mount of mountsBelow(table, folders)) await commands.attempt('umount', ['--lazy', mount])
}
