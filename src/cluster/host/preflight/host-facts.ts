import type { HostFiles } from '../../../host/files.ts'
import { kernelTableBytes } from '../../../host/files.ts'
import { readTotalMemory } from '../../../host/memory.ts'
import { ask } from '../../../host/ask.ts'
import { isServiceRunning } from '../../../host/services.ts'
import { spaceOf, type FileSystemSpace } from '../../../system/file-sizes.ts'
import type { CommandRunner } from '../../../system/runner.ts'
import { cniFolders, kubernetesFiles, unitFolder } from '../../engine/paths.ts'
import { protectedSysctls } from '../kubernetes-settings.ts'
import { readDroppingChains } from './dropping-chains.ts'
import { readHostNetworks, type HostNetworks } from '../address/host-networks.ts'

/** This host as the checks before a cluster see it. */
export interface HostFacts {
  /** As OCI images name it. */
  readonly architecture: string
  /** For example `6.1.0-18-amd64`. */
  readonly kernel: string
  readonly cgroups: { readonly version: 1 | 2; readonly controllers: ReadonlySet<string> }
  /** TCP ports that something listens at. */
  readonly ports: ReadonlySet<number>
  readonly spaces: readonly Space[]
  readonly memoryBytes: number
  readonly cores: number
  readonly clock: { readonly now: number; readonly isSynchronized: boolean }
  readonly networks: HostNetworks
  /** Names of the programs in the folders of the system. */
  readonly programs: ReadonlySet<string>
  readonly cniPlugins: ReadonlySet<string>
  /** Files and devices that are used as swap. */
  readonly swaps: readonly string[]
  /** What another Kubernetes has left on this host: paths. */
  readonly kubernetes: readonly string[]
  /** Names of the network configurations of CNI. */
  readonly networkConfigs: readonly string[]
  /** Values of `protectedSysctls` that this kernel has. */
  readonly sysctls: ReadonlyMap<string, string>
  /** Chains of the firewall that drop or reject what no rule of them accepts. */
  readonly droppingChains: readonly string[]
}

export interface Space extends FileSystemSpace {
  readonly folder: string
  /** What a cluster needs there. */
  readonly neededBytes: number
}

export interface HostFactsOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly architecture: string
  readonly cores: number
  /** Folders that the cluster fills; of several on one file system the first counts. */
  readonly folders: readonly Pick<Space, 'folder' | 'neededBytes'>[]
  /** Runs programs outside of the sandbox of the daemon. */
  readonly privileged: CommandRunner
  readonly now: () => number
}

/** Reads them without a change of the host; all but the firewall within the sandbox of the daemon. */
export async function readHostFacts(options: HostFactsOptions): Promise<HostFacts> {
  const { files, runner, architecture, cores, folders, now } = options
  const [cgroups, ports, memoryBytes, isSynchronized, networks, kubernetes, droppingChains] =
    await Promise.all([
      readCgroups(files),
      readPorts(files),
      readTotalMemory(files),
      isClockSynchronized(files, runner),
      readHostNetworks(files),
      readKubernetes(files),
      readDroppingChains(options.privileged),
    ])
  const namesOf = async (...paths: readonly string[]) =>
    new Set((await Promise.all(paths.map((path) => files.names(path)))).flat())
  return {
    ...{ architecture, cores, cgroups, ports, memoryBytes, networks, kubernetes, droppingChains },
    kernel: ((await files.text('/proc/sys/kernel/osrelease')) ?? '').trim(),
    spaces: onePerFileSystem((await Promise.all(folders.map(readSpace))).flat()),
    clock: { now: now(), isSynchronized },
    // The path of system/child.ts; systemd adds /usr/local for units, which packages never use.
    programs: await namesOf('/usr/sbin', '/usr/bin', '/sbin', '/bin'),
    cniPlugins: await namesOf(cniFolders.debian, cniFolders.programs),
    sysctls: await readSysctls(files),
    swaps: parseSwaps((await files.text('/proc/swaps')) ?? ''),
    networkConfigs: [...(await files.names(cniFolders.configs))].filter((name) =>
      /\.(conf|conflist|json)$/.test(name),
    ),
  }
}

async function readSpace(wanted: Pick<Space, 'folder' | 'neededBytes'>): Promise<readonly Space[]> {
  const space = await spaceOf(wanted.folder)
  return space ? [{ ...wanted, ...space }] : []
}

/** Two folders are of one file system if all its figures are equal; that of two others would not matter. */
const onePerFileSystem = (spaces: readonly Space[]): readonly Space[] =>
  spaces.filter(
    (space, index) =>
      index ===
      spaces.findIndex(
        ({ sizeBytes, freeBytes }) => sizeBytes === space.sizeBytes && freeBytes === space.freeBytes,
      ),
  )

/** cgroups(7): version 2 alone has cgroup.controllers at its root, and /proc/cgroups says what the kernel has of version 1. */
async function readCgroups(files: HostFiles): Promise<HostFacts['cgroups']> {
  const unified = await files.text('/sys/fs/cgroup/cgroup.controllers')
  if (unified !== undefined) return { version: 2, controllers: new Set(unified.split(/\s+/).filter(Boolean)) }
  const enabled = ((await files.text('/proc/cgroups')) ?? '').split('\n').flatMap((line) => {
    const [name = '', , , isEnabled] = line.split(/\s+/)
    return isEnabled === '1' ? [name] : []
  })
  return { version: 1, controllers: new Set(enabled) }
}

async function readSysctls(files: HostFiles): Promise<HostFacts['sysctls']> {
  const found = new Map<string, string>()
  for (const name of Object.keys(protectedSysctls)) {
    const text = await files.text(`/proc/sys/${name.replaceAll('.', '/')}`)
    if (text !== undefined) found.set(name, text.trim())
  }
  return found
}

async function readPorts(files: HostFiles): Promise<ReadonlySet<number>> {
  const texts = await Promise.all(
    ['tcp', 'tcp6'].map((name) => files.text(`/proc/net/${name}`, kernelTableBytes)),
  )
  return new Set(texts.flatMap((text) => parseListening(text ?? '')))
}

/** Ports of /proc/net/tcp in the state TCP_LISTEN, 0A (proc_net_tcp.rst of the kernel). */
export const parseListening = (text: string): readonly number[] =>
  [...text.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A /gm)].map(([, port = '']) => parseInt(port, 16))

/** The devices and files of /proc/swaps, proc_swaps(5). */
export const parseSwaps = (text: string): readonly string[] =>
  text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.split(/\s+/).slice(0, 1))
    .filter((name) => name !== '')

/** systemd-timesyncd(8) makes the file with its first answer; chronyd says it itself; of others it is not known, and believed. */
async function isClockSynchronized(files: HostFiles, runner: CommandRunner): Promise<boolean> {
  if ((await files.text('/run/systemd/timesync/synchronized')) !== undefined) return true
  for (const unit of ['chrony.service', 'chronyd.service']) {
    if (!(await isServiceRunning(files, unit))) continue
    const answer = await ask(runner, 'chronyc', ['-c', 'tracking'], 3_000)
    return 'stdout' in answer && !answer.stdout.includes('Not synchronised')
  }
  for (const unit of ['ntpsec.service', 'ntp.service', 'ntpd.service', 'ptp4l.service', 'phc2sys.service'])
    if (await isServiceRunning(files, unit)) return true
  return false
}

const unitFolders = [
  unitFolder,
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
]
const unitNames = [
  'kubelet.service',
  'k3s.service',
  'k3s-agent.service',
  'rke2-server.service',
  'rke2-agent.service',
  'k0scontroller.service',
]

async function readKubernetes(files: HostFiles): Promise<readonly string[]> {
  const found: string[] = []
  const look = async (folder: string, wanted: readonly string[]) => {
    const names = await files.names(folder)
    found.push(...wanted.filter((name) => names.includes(name)).map((name) => `${folder}/${name}`))
  }
  for (const folder of unitFolders) await look(folder, unitNames)
  const manifests = await files.names(kubernetesFiles.manifests)
  if (manifests.length > 0) found.push(kubernetesFiles.manifests)
  await look('/etc/kubernetes', ['admin.conf', 'kubelet.conf'])
  await look('/var/lib/kubelet', ['config.yaml'])
  await look('/var/lib/etcd', ['member'])
  // /lib is a link to /usr/lib where the two are one.
  return found.filter((path) => !(path.startsWith('/lib/') && found.includes(`/usr${path}`)))
}
