import { parseMountinfo } from '../../system/mountinfo.ts'
import { readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join, dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  currentProgram,
  containerdSocket,
  units,
  clusterPaths,
  containerdState,
  unitFolder,
  type ClusterPaths,
} from './paths.ts'
import { commands } from './step-lines.ts'
import { existsSync } from 'node:fs'
import type { StepAction } from '../loop/step.ts'
import { restoreCniFolder, kernelFiles } from './containerd.ts'
import { isOwnUnit } from './units.ts'
import { resetKubeadm } from './initialise.ts'

/**
 * Mounts in folders, the last mounted first.
 * @param table /proc/self/mountinfo, proc_pid_mountinfo(5)
 */
export function mountsBelow(table: string, folders: readonly string[]): readonly string[] {
  const mounts = parseMountinfo(table).map(({ mountPoint }) => mountPoint)
  // The folders themselves may be mounts of an administrator.
  return mounts.filter((mount) => folders.some((folder) => mount.startsWith(`${folder}/`))).toReversed()
}

/** Folder of the sockets of all shims, for any state folder of containerd (pkg/shim of containerd). */
const shimSockets = '/run/containerd/s'

const patienceMs = 10_000
const pauseMs = 50

/** Kills the shims of our containerd, which outlive it, and waits for their end; shims of other containerds stay. */
async function endShims(): Promise<void> {
  const end = Date.now() + patienceMs
  while (Date.now() < end) {
    const shims = await shimsOf(containerdSocket)
    if (shims.length === 0) return
    for (const pid of shims) kill(pid)
    await delay(pauseMs)
  }
}

/**
 * Finds shims by their argument `-address`.
 * @returns their process ids
 */
export async function shimsOf(address: string, proc = '/proc'): Promise<readonly number[]> {
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [program = '', ...args] = (
        await readFile(join(proc, pid, 'cmdline'), 'utf8').catch(() => '')
      ).split('\0')
      const isShim = program.includes('containerd-shim') && args[args.indexOf('-address') + 1] === address
      return isShim ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** Removes the sockets of shims that were killed; one that a process listens on stays, whatever containerd it is of. */
export async function removeDeadSockets(folder = shimSockets): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isSocket() && (await isDead(path))) await rm(path, { force: true })
  }
}

/** Asked by a connection: /proc/net/unix has only the sockets of one network namespace. */
const isDead = (path: string) =>
  new Promise<boolean>((resolve) => {
    const connection = connect(path)
    connection.once('connect', () => {
      connection.destroy()
      resolve(false)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })

const cgroups = '/sys/fs/cgroup'

/**
 * Folders that containerd and runc make outside of their configured ones, the shared folder of network namespaces, and the cgroups of
 * pods and of our containerd. In hierarchies that systemd does not use, as cgroup v1 has them, no other program removes these.
 */
const leftFolders = ['/run/containerd', '/run/netns']
const leftCgroups = ['kubepods.slice', 'kubepods', `system.slice/${units.containerd}`]

/** Removes remains after the end of all pods, as far as they are empty: folders in use by another containerd or a process are not. */
async function removeLeftovers(): Promise<void> {
  const hierarchies = ['', ...(await readdir(cgroups).catch(() => []))]
  const ofPods = hierarchies.flatMap((each) => leftCgroups.map((name) => join(cgroups, each, name)))
  for (const folder of [...leftFolders, ...ofPods]) await removeEmpty(folder)
}

/**
 * Forgets the scopes of containers that were killed, which systemd keeps as failed. Only scopes of pods: another containerd calls its
 * scopes the same.
 */
async function forgetFailedScopes(): Promise<void> {
  const shown = await commands
    .run('systemctl', ['show', '--property=Id,Slice', 'cri-containerd-*.scope'])
    .catch(() => '')
  const scopes = scopesOfPods(shown)
  if (scopes.length > 0) await commands.attempt('systemctl', ['reset-failed', ...scopes])
}

/** @param shown properties `Id` and `Slice`, as systemctl show prints them */
export const scopesOfPods = (shown: string): readonly string[] =>
  shown.split('\n\n').flatMap((text) => {
    const properties = new Map(text.split('\n').map((line) => line.split('=', 2) as [string, string]))
    return properties.get('Slice')?.startsWith('kubepods') ? [properties.get('Id') ?? ''] : []
  })

/** Removes the empty folders from below upwards. */
export async function removeEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeEmpty(join(folder, entry.name))
  await rmdir(folder).catch(() => undefined)
}

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
  await removeLogindFile()
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

/** What the kubelet has written to raise the longest delay of a stop (pkg/kubelet/nodeshutdown/systemd of Kubernetes), and its first line. */
const logindFile = '/etc/systemd/logind.conf.d/99-kubelet.conf'
const logindHeading = '# Kubelet logind override'

async function removeLogindFile(): Promise<void> {
  const text = await readFile(logindFile, 'utf8').catch(() => '')
  if (!text.startsWith(logindHeading)) return
  await rm(logindFile)
  await rmdir(dirname(logindFile)).catch(() => undefined)
  // As the kubelet does it: a restart of logind would end sessions.
  await commands.attempt('systemctl', ['kill', '--signal=SIGHUP', 'systemd-logind.service'])
}

async function removeUnit(unit: string): Promise<void> {
  await commands.attempt('systemctl', ['stop', unit], { timeoutMs: 120_000 })
  // Shims of containerd outlive it.
  await commands.attempt('systemctl', ['kill', '--kill-whom=all', '--signal=SIGKILL', unit])
  await commands.attempt('systemctl', ['--quiet', 'disable', unit])
  await rm(join(unitFolder, unit), { force: true })
  await commands.attempt('systemctl', ['reset-failed', unit])
}

/** Ends the pods by `kubeadm reset`; the others are killed afterwards. */
async function removePods(paths: ClusterPaths, print: (line: string) => void): Promise<void> {
  await commands.attempt('systemctl', ['stop', units.kubelet], { timeoutMs: 120_000 })
  await commands.attempt('systemctl', ['start', units.containerd], { timeoutMs: 90_000 })
  await resetKubeadm(paths, print).catch((error: unknown) => {
    print(`[reset] ${(error as Error).message}; the rest is removed without it`)
  })
  await endPods()
  await unmount(['/var/lib/kubelet'])
}

/** Ends the pods that kubeadm reset has left, as where containerd does not answer. */
const endPods = () => commands.attempt('systemctl', ['stop', 'kubepods.slice'], { timeoutMs: 120_000 })

async function unmount(folders: readonly string[]): Promise<void> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  for (const mount of mountsBelow(table, folders)) await commands.attempt('umount', ['--lazy', mount])
}
