import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { fillCniFolder, containerdConfig, parseContainerdVersion } from './containerd.ts'
import { commands } from './step-commands.ts'
import { isOwnUnit, containerdUnit } from './units.ts'
import { clusterPaths, unitFolder, units } from './paths.ts'
import { writeKubeletUnit } from './node-name.ts'

interface KernelModule {
  readonly name: string
  /** Whether the kernel has its features; it may be part of the kernel itself. */
  readonly isThere: () => boolean
}

/** Modules that containerd and the networks of Kubernetes need. */
const kernelModules: readonly KernelModule[] = [
  { name: 'overlay', isThere: () => readFileSync('/proc/filesystems', 'utf8').includes('\toverlay\n') },
  { name: 'br_netfilter', isThere: () => existsSync('/proc/sys/net/bridge') },
]

/**
 * The sysctls that kubeadm and the networks of Kubernetes ask for. A host that forwards IPv6 takes no routes from router advertisements any
 * more (`accept_ra` in the kernel's ip-sysctl), so only a cluster with IPv6 sets that.
 */
const kernelSettings = (usesIPv6: boolean): Readonly<Record<string, string>> => ({
  'net.ipv4.ip_forward': '1',
  ...(usesIPv6 ? { 'net.ipv6.conf.all.forwarding': '1' } : {}),
  // These exist only with the module br_netfilter.
  'net.bridge.bridge-nf-call-iptables': '1',
  'net.bridge.bridge-nf-call-ip6tables': '1',
})

const heading = '# Written by edgehostd for its cluster; removed with it.\n'

/** The files that load the modules and set the sysctls at a boot, by their paths. */
export const kernelFiles = (usesIPv6: boolean): Readonly<Record<string, string>> => ({
  '/etc/modules-load.d/edgehostd-cluster.conf': `${heading}${kernelModules.map(({ name }) => name).join('\n')}\n`,
  // The dash: a sysctl that does not exist is no error, sysctl.d(5).
  '/etc/sysctl.d/90-edgehostd-cluster.conf': `${heading}${Object.entries(kernelSettings(usesIPv6))
    .map(([name, value]) => `-${name} = ${value}`)
    .join('\n')}\n`,
})

const startMs = 90_000

/**
 * Runs our containerd, and writes the unit of the kubelet, which kubeadm starts. Correct parts stay untouched, so that a second run stops
 * nothing.
 */
export const startContainerd: StepAction = async (order, print) => {
  const paths = clusterPaths(String(order.stateDirectory))
  await refuseForeignUnits()
  // Loaded here: the other actions start without yaml.
  const { nodeNameIn, usesIPv6 } = await import('./kubeadm-config.ts')
  const given = await readFile(paths.kubeadmConfig, 'utf8')
  await prepareKernel(usesIPv6(given), print)
  await fillCniFolder(paths, print)
  const version = await containerdVersion()
  const isFree = mayLowerOomScore()
  const pauseImage = await readPauseImage(paths.kubernetesImages)
  await mkdir(dirname(paths.containerdConfig), { recursive: true, mode: 0o700 })
  const config = containerdConfig({ paths, version, pauseImage, mayLowerOomScore: isFree })
  const changed = [
    await writeIfOther(paths.containerdConfig, config, 0o600),
    await writeIfOther(join(unitFolder, units.containerd), containerdUnit(paths, isFree), 0o644),
  ]
  await writeKubeletUnit(paths, nodeNameIn(given))
  await commands.run('systemctl', ['daemon-reload'])
  await commands.run('systemctl', ['--quiet', 'enable', units.containerd, units.kubelet])
  const verb = changed.includes(true) ? 'restart' : 'start'
  const failed = await commands.attempt('systemctl', [verb, units.containerd], { timeoutMs: startMs })
  if (failed !== undefined)
    throw new StepFailed(`containerd does not start; see: journalctl -u ${units.containerd}`)
  print(`[containerd] containerd ${version} runs`)
}

async function refuseForeignUnits(): Promise<void> {
  for (const unit of Object.values(units)) {
    const path = join(unitFolder, unit)
    if (existsSync(path) && !(await isOwnUnit(unit)))
      throw new StepFailed(`${path} is not of edgehostd; remove it, or move it away`)
  }
}

/** Modules may be built into the kernel, or be missing in a container; their users then say so. */
async function prepareKernel(isIPv6: boolean, print: (line: string) => void): Promise<void> {
  for (const [path, text] of Object.entries(kernelFiles(isIPv6))) await writeIfOther(path, text, 0o644)
  for (const { name, isThere } of kernelModules) {
    if (isThere()) continue
    const failed = await commands.attempt('modprobe', [name])
    if (failed !== undefined) print(`[kernel] the kernel module ${name} cannot be loaded: ${failed}`)
  }
  for (const [name, value] of Object.entries(kernelSettings(isIPv6))) {
    const path = join('/proc/sys', name.replaceAll('.', '/'))
    try {
      if (readFileSync(path, 'utf8').trim() !== value) writeFileSync(path, value)
    } catch (error) {
      print(`[kernel] ${name} cannot be set: ${(error as Error).message}`)
    }
  }
}

async function containerdVersion(): Promise<string> {
  const output = await commands.run('containerd', ['--version'])
  const version = parseContainerdVersion(output)
  if (version === undefined) throw new StepFailed(`containerd --version says no version: ${output.trim()}`)
  return version
}

/** Whether a process may lower its own score, proc_pid_oom_score_adj(5): needs CAP_SYS_RESOURCE, which a container may lack. */
function mayLowerOomScore(): boolean {
  const file = '/proc/self/oom_score_adj'
  try {
    const present = readFileSync(file, 'utf8')
    writeFileSync(file, String(Math.max(Number(present) - 1, -1_000)))
    writeFileSync(file, present)
    return true
  } catch {
    return false
  }
}

async function readPauseImage(file: string): Promise<string> {
  const images = JSON.parse(await readFile(file, 'utf8')) as readonly string[]
  const image = images.find((each) => /\/pause[:@]/.test(each))
  if (image === undefined) throw new StepFailed('kubeadm names no image for pause')
  return image
}

/** @returns whether the file had to be written */
async function writeIfOther(path: string, text: string, mode: number): Promise<boolean> {
  const present = await readFile(path, 'utf8').catch(() => undefined)
  if (present === text) return false
  await mkdir(dirname(path), { recursive: true })
  await replaceFile(path, text, mode)
  return true
}
