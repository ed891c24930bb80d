import {
  cniFolders,
  containerdSocket,
  containerdState,
  runcState,
  type ClusterPaths,
  clusterPaths,
  unitFolder,
  units,
} from './paths.ts'
import { addressWithPort } from '../../base/address.ts'
import { containerdHosts, quote } from '../../content/registry/containerd-hosts.ts'
import { externalHosts, serverOf, type ExternalRegistry } from '../../content/registry/external-registry.ts'
import type { RegistryState } from '../../content/registry/registry.ts'
import { copyFile, readdir, rename, rm, rmdir, stat, mkdir, readFile } from 'node:fs/promises'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { readNote } from './notes.ts'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { commands } from './step-lines.ts'
import { isOwnUnit, containerdUnit } from './units.ts'
import { writeKubeletUnit } from './node-name.ts'

interface ContainerdConfigOptions {
  readonly paths: Pick<ClusterPaths, 'containerd' | 'registries'>
  /** Of containerd, for example `1.6.20`. */
  readonly version: string
  /** Image of the container that holds the network of a pod. */
  readonly pauseImage: string
  /** Whether a process of this host may lower its own score for the OOM killer; one without CAP_SYS_RESOURCE may not. */
  readonly mayLowerOomScore: boolean
  readonly login?: RegistryLogin | undefined
}

/** A login to a registry of others. It stands in config.toml, since a header of hosts.toml would not do for registries that give tokens. */
interface RegistryLogin {
  /** As containerd asks for it: host, perhaps with a port. */
  readonly server: string
  readonly username: string
  readonly password: string
}

/**
 * config.toml of our containerd, apart from the host's in everything: root, state, sockets, folder of options. Containerd 1 reads version 2
 * of the file, containerd 2 version 3, in which the plugin of Kubernetes is two. Source:
 * https://github.com/containerd/containerd/blob/main/docs/cri/config.md
 */
export function containerdConfig(options: ContainerdConfigOptions): string {
  const { paths, version, pauseImage, mayLowerOomScore, login } = options
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isFirst = major < 2
  const images = isFirst ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.images'
  const runtime = isFirst ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.runtime'
  const table = (...names: string[]) => `[plugins.${names.map(quote).join('.')}]`
  const restrict = `restrict_oom_score_adj = ${String(!mayLowerOomScore)}`
  const lines = [
    '# Written by edgehostd.',
    `version = ${isFirst ? 2 : 3}`,
    `root = ${quote(paths.containerd)}`,
    `state = ${quote(containerdState)}`,
    '',
    '[grpc]',
    `address = ${quote(containerdSocket)}`,
    '',
    table('io.containerd.internal.v1.opt'),
    `path = ${quote(`${paths.containerd}/opt`)}`,
    '',
    table(runtime),
    ...(isFirst ? [`sandbox_image = ${quote(pauseImage)}`] : []),
    restrict,
    '',
    ...(isFirst ? [] : [table(images, 'pinned_images'), `sandbox = ${quote(pauseImage)}`, '']),
    table(images, 'registry'),
    `config_path = ${quote(paths.registries)}`,
    '',
    ...(login === undefined
      ? []
      : [
          table(images, 'registry', 'configs', login.server, 'auth'),
          `username = ${quote(login.username)}`,
          `password = ${quote(login.password)}`,
          '',
        ]),
    table(runtime, 'cni'),
    // Since 2.1 bin_dir is deprecated.
    major > 2 || (major === 2 && minor >= 1)
      ? `bin_dirs = [${quote(cniFolders.programs)}]`
      : `bin_dir = ${quote(cniFolders.programs)}`,
    `conf_dir = ${quote(cniFolders.configs)}`,
    '',
    table(runtime, 'containerd', 'runtimes', 'runc'),
    'runtime_type = "io.containerd.runc.v2"',
    '',
    table(runtime, 'containerd', 'runtimes', 'runc', 'options'),
    'SystemdCgroup = true',
    `Root = ${quote(runcState)}`,
  ]
  return `${lines.join('\n')}\n`
}

/** The version in the output of `containerd --version`, without `v`. */
export const parseContainerdVersion = (output: string): string | undefined =>
  /\bv?(\d+\.\d+\.\d+)/.exec(output)?.[1]

/** Access of our containerd to the registry of this host, and to one of others. */
export interface RegistryFiles {
  /** Path and content. */
  readonly files: ReadonlyMap<string, string>
  /** Why they cannot be made, and the remedy; undefined where they can. */
  readonly problem: string | undefined
}

const everyAddress: readonly string[] = ['0.0.0.0', '::']
const heading = '# Written by edgehostd.'

/** @param external a registry of others that a user has named */
export function registryFilesOf(
  { registries, registryLogin }: Pick<ClusterPaths, 'registries' | 'registryLogin'>,
  { isEnabled, address, port, isTls, isAnonymous, username, password }: RegistryState,
  certificate: string,
  external?: ExternalRegistry,
): RegistryFiles {
  const refused = (problem: string): RegistryFiles => ({ files: new Map(), problem })
  if (!isEnabled)
    return refused('the registry of this host is switched off; set content.registry.enabled: true')
  const host = everyAddress.includes(address) ? '127.0.0.1' : address
  // The TOML of containerd 1.6 has no key with a bracket.
  if (host.includes(':'))
    return refused(
      `the registry of this host listens on ${host} only, and containerd needs an IPv4 address; set content.registry.address: 127.0.0.1`,
    )
  if (!isAnonymous && password === '')
    return refused('the registry of this host has no password yet; see: journalctl -u edgehostd')
  const hosts = join(registries, '_default', 'hosts.toml')
  const certificatePath = isTls ? join(dirname(hosts), 'edgehostd.crt') : undefined
  const basic = isAnonymous ? undefined : Buffer.from(`${username}:${password}`).toString('base64')
  const url = `${isTls ? 'https' : 'http'}://${addressWithPort(host, port)}`
  const own = { url, basic, certificatePath }
  return {
    problem: undefined,
    files: new Map([
      [hosts, containerdHosts(own, heading)],
      ...(certificatePath === undefined ? [] : [[certificatePath, certificate] as const]),
      ...(external === undefined ? [] : externalFiles(external)),
    ]),
  }

  function externalFiles(of: ExternalRegistry): [string, string][] {
    const folder = join(registries, of.domain)
    const authorityPath = of.certificates.length === 0 ? undefined : join(folder, 'authorities.crt')
    const login: RegistryLogin = {
      server: serverOf(of.domain),
      username: of.username,
      password: of.password,
    }
    return [
      [join(folder, 'hosts.toml'), externalHosts(of, authorityPath, own, heading)],
      ...(authorityPath === undefined ? [] : [[authorityPath, of.certificates.join('')] as [string, string]]),
      ...(of.username === '' ? [] : [[registryLogin, JSON.stringify(login)] as [string, string]]),
    ]
  }
}

/** Without it no pod has a network. */
const needed = 'loopback'

/**
 * Puts the CNI plugins of Debian into the folder in which the networks of Kubernetes install theirs, and where containerd looks for both:
 * containerd 1 knows one folder only. They are copies: a network that brings the same plugin writes over its name, through a link into the
 * package of Debian. Present plugins stay. The earlier content is recorded once, for `restoreCniFolder`.
 */
export async function fillCniFolder(
  paths: Pick<ClusterPaths, 'cniRecord'>,
  print: (line: string) => void,
  folders: { readonly programs: string; readonly debian: string } = cniFolders,
): Promise<void> {
  const { programs, debian } = folders
  const present = await list(programs)
  // A damaged record stays: a new one would count plugins of the cluster as the host's own.
  if ((await readRecord(paths)) === undefined)
    await replaceFile(
      paths.cniRecord,
      JSON.stringify({ exists: present !== undefined, names: present ?? [] }),
      0o600,
    )
  await mkdir(programs, { recursive: true })
  const offered = (await list(debian)) ?? []
  // The folder itself may be a link to Debian's.
  const missing = offered.filter((name) => !present?.includes(name))
  for (const name of missing) {
    const target = join(programs, name)
    if (!(await stat(join(debian, name))).isFile()) continue
    await copyFile(join(debian, name), `${target}.edgehostd.tmp`)
    await rename(`${target}.edgehostd.tmp`, target)
  }
  if (missing.length > 0) print(`[cni] ${missing.length} CNI plugins of ${debian} are in ${programs}`)
  if (!((await list(programs)) ?? []).includes(needed))
    throw new StepFailed(
      `neither ${programs} nor ${debian} has the CNI plugin ${needed}; install the package containernetworking-plugins`,
    )
}

/** Removes the plugins that came since `fillCniFolder`; without a record that can be read nothing: the record of the host decides. */
export async function restoreCniFolder(
  paths: Pick<ClusterPaths, 'cniRecord'>,
  { programs }: { readonly programs: string } = cniFolders,
): Promise<void> {
  const record = await readRecord(paths)
  if (!record || record === 'damaged') return
  const came = ((await list(programs)) ?? []).filter((name) => !record.names.includes(name))
  for (const name of came) await rm(join(programs, name), { recursive: true, force: true })
  // Its parent too, if that was made with it.
  if (!record.exists)
    for (const folder of [programs, join(programs, '..')]) await rmdir(folder).catch(() => undefined)
  await rm(paths.cniRecord, { force: true })
}

interface CniRecord {
  readonly exists: boolean
  readonly names: readonly string[]
}

const list = (folder: string) => readdir(folder).catch(() => undefined)

async function readRecord({ cniRecord }: Pick<ClusterPaths, 'cniRecord'>) {
  const record = await readNote<CniRecord>(cniRecord)
  if (record === undefined || record === 'damaged') return record
  return Array.isArray(record.names) ? record : 'damaged'
}

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

const ofCluster = '# Written by edgehostd for its cluster; removed with it.\n'

/** The files that load the modules and set the sysctls at a boot, by their paths. */
export const kernelFiles = (usesIPv6: boolean): Readonly<Record<string, string>> => ({
  '/etc/modules-load.d/edgehostd-cluster.conf': `${ofCluster}${kernelModules.map(({ name }) => name).join('\n')}\n`,
  // The dash: a sysctl that does not exist is no error, sysctl.d(5).
  '/etc/sysctl.d/90-edgehostd-cluster.conf': `${ofCluster}${Object.entries(kernelSettings(usesIPv6))
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
  const login = await readRegistryLogin(paths)
  const config = containerdConfig({ paths, version, pauseImage, mayLowerOomScore: isFree, login })
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

async function readRegistryLogin({ registryLogin }: ClusterPaths): Promise<RegistryLogin | undefined> {
  try {
    return JSON.parse(await readFile(registryLogin, 'utf8')) as RegistryLogin
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
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
