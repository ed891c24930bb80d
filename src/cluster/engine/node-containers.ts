import { setTimeout as delay } from 'node:timers/promises'
import { kubectl } from './kubectl.ts'
import { type ClusterPaths, units, containerdSocket } from './paths.ts'
import { StepFailed } from '../loop/step.ts'
import { commands } from './step-lines.ts'

/** Components of which one at a time works, by the lease that it renews every two seconds. */
const names = ['kube-controller-manager', 'kube-scheduler']
const leaderPauseMs = 1_000
const leaderPatienceMs = 90_000

/**
 * Waits until controller manager and scheduler work again. After a time without an API they end, and the kubelet starts them again after a
 * pause that doubles with each end: until then no pod is scheduled, and nothing that belongs to a deleted object goes.
 * @param next action that begins nevertheless when a lease is not renewed in time; for the line that says so
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
    if (Date.now() - since > leaderPatienceMs) {
      print(`[settling] ${late.join(' and ')} did not renew their leases; ${next} nevertheless`)
      return
    }
    await delay(leaderPauseMs)
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

/** A container of a pod that runs on this host. */
interface RunningContainer {
  readonly id: string
  /** Its name in the pod, for example `kube-apiserver`. */
  readonly name: string
}

/** Runs ctr in the namespace of containerd in which the containers of Kubernetes are. */
export const ctr = (...args: readonly string[]) =>
  commands.run('ctr', ['--address', containerdSocket, '--namespace', 'k8s.io', ...args])

/**
 * The running containers of `kube-system` with these names: the static pods. They are asked of containerd, since the API server itself may
 * not run.
 */
export async function runningContainers(names: readonly string[]): Promise<readonly RunningContainer[]> {
  const running = parseRunningTasks(await ctr('tasks', 'list'))
  const lists = await Promise.all(
    names.map(async (name) => {
      const ids = await ctr(...['containers', 'list', '--quiet', filterOf(name)])
      return ids.split('\n').map((id) => ({ id: id.trim(), name }))
    }),
  )
  return lists.flat().filter(({ id }) => running.has(id))
}

// Filters of containerd: labels with dots are quoted, and conditions of one filter all hold.
const filterOf = (name: string) =>
  `labels."io.kubernetes.container.name"==${name},labels."io.kubernetes.pod.namespace"==kube-system`

/** @param output of `ctr tasks list` @returns ids of the containers that run */
export function parseRunningTasks(output: string): ReadonlySet<string> {
  const rows = output.split('\n').map((line) => line.trim().split(/\s+/))
  return new Set(rows.filter(([, , status]) => status === 'RUNNING').map(([id = '']) => id))
}

const patienceMs = 8_000
const killedMs = 10_000
const pauseMs = 200

/**
 * Ends the running containers with these names, so that the kubelet starts new ones: first politely, then by force.
 * @returns their number
 */
export async function endContainers(names: readonly string[]): Promise<number> {
  const ids = (await runningContainers(names)).map(({ id }) => id)
  await endAll(ids)
  return ids.length
}

/** Ends containers, first politely, then by force. @param ids of containers */
export async function endAll(ids: readonly string[]): Promise<void> {
  for (const [signal, ms] of [
    ['SIGTERM', patienceMs],
    ['SIGKILL', killedMs],
  ] as const) {
    if ((await signalled(ids, signal)) === 0) return
    const end = Date.now() + ms
    while (Date.now() < end && (await stillRunning(ids)).length > 0) await delay(pauseMs)
  }
}

/** Ends containers by force. @param ids of containers */
export async function killAll(ids: readonly string[]): Promise<void> {
  const end = Date.now() + killedMs
  while (Date.now() < end && (await signalled(ids, 'SIGKILL')) > 0) await delay(pauseMs)
}

/** @returns the number of running ones */
async function signalled(ids: readonly string[], signal: string): Promise<number> {
  const left = await stillRunning(ids)
  // One that has ended meanwhile cannot be signalled.
  for (const id of left) await ctr('tasks', 'kill', '--signal', signal, id).catch(() => undefined)
  return left.length
}

async function stillRunning(ids: readonly string[]): Promise<readonly string[]> {
  const running = parseRunningTasks(await ctr('tasks', 'list'))
  return ids.filter((id) => running.has(id))
}

/** Ids of all running containers of pods, except in `kube-system` with these names. Without sandboxes. */
export async function runningWorkloads(without: readonly string[]): Promise<readonly string[]> {
  const shown = await ctr('containers', 'list', '--quiet', 'labels."io.cri-containerd.kind"==container')
  const others = new Set((await runningContainers(without)).map(({ id }) => id))
  const running = parseRunningTasks(await ctr('tasks', 'list'))
  return shown
    .split('\n')
    .map((id) => id.trim())
    .filter((id) => running.has(id) && !others.has(id))
}

/** Waits until each name has a container that is not in `old` and has run for some seconds. */
interface Proving {
  readonly names: readonly string[]
  /** Ids of the containers that ran before. */
  readonly old: readonly string[]
  readonly timeoutMs: number
  /** Time that each has to run, by default 10 s: one that refuses its arguments ends within a second. */
  readonly steadyMs?: number
}

const usualSteadyMs = 10_000

/** @returns the names that did not come to run steadily in time */
export async function waitForContainers({
  names,
  old,
  timeoutMs,
  steadyMs = usualSteadyMs,
}: Proving): Promise<readonly string[]> {
  const since = new Map<string, number>()
  const end = Date.now() + timeoutMs
  for (;;) {
    const now = Date.now()
    const running = (await runningContainers(names)).filter(({ id }) => !old.includes(id))
    for (const id of since.keys()) if (!running.some((each) => each.id === id)) since.delete(id)
    for (const { id } of running) if (!since.has(id)) since.set(id, now)
    const steady = running.filter(({ id }) => now - (since.get(id) ?? now) >= steadyMs)
    const left = names.filter((name) => !steady.some((each) => each.name === name))
    if (left.length === 0 || now >= end) return left
    await delay(500)
  }
}
