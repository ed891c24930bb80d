import type { PreflightCodeName, PreflightProblem } from '../desired/preflight-codes.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { KubernetesSettings } from './kubernetes-settings.ts'
import { familyOf } from '../../base/address.ts'
import { isInSubnet, overlap, spellSubnet } from '../../base/subnet.ts'
import { protectedSysctls, type HostFacts } from './host-facts.ts'

type Severity = PreflightProblem['severity']
type Found = readonly [code: PreflightCodeName, severity: Severity, message: string]

const mebibyte = 2 ** 20

/** Need of a cluster on the file system of most of its data; the platform judges it by reports of hosts. */
export const varLib = { folder: '/var/lib', neededBytes: 2 ** 31 }
// kubeadm, app/constants: ControlPlaneMem and ControlPlaneNumCPU.
const leastMemoryBytes = 1_700 * mebibyte
const leastCores = 2
// Below this the kubelet removes images and refuses pods: imagefs.available of its evictionHard.
const leastFreeShare = 0.15
// Unpacked images: up to some thousand files each.
const inodesPerMebibyte = 10
// nodefs.inodesFree of its evictionHard.
const leastInodeShare = 0.05
// The oldest supported version, 1.31, is newer than this: a clock before it is wrong.
const oldestMinor = 31
const oldestTime = Date.parse('2024-08-01T00:00:00Z')

/** Judges this host for a cluster; pure. */
export function judgeHost(
  facts: HostFacts,
  { kubernetes, node }: Pick<DesiredState, 'kubernetes' | 'node'>,
  settings: KubernetesSettings,
): readonly PreflightProblem[] {
  const minor = Number(/^1\.(\d+)/.exec(kubernetes.version)?.[1] ?? 0)
  const found: readonly Found[] = [
    ...judgeMachine(facts, minor, kubernetes.version, severityOf(settings)),
    ...judgeCgroups(facts, minor, kubernetes.version, settings),
    ...judgeSysctls(facts, settings),
    ...judgePrograms(facts),
    ...judgePorts(facts, settings),
    ...judgeNetworks(facts, settings, node.address),
    ...judgeFamilies(settings, node.address),
    ...judgeFirewall(facts, settings),
    ...judgeLeftovers(facts, settings),
    ...judgeClock(facts),
    ...judgeName(node.name),
  ]
  return found.map(toProblem)
}

/** Judges this host for a cluster of any version and settings; pure. */
export const judgeHostAlone = (facts: HostFacts): readonly PreflightProblem[] =>
  [...judgeMachine(facts, oldestMinor, '', () => 'error'), ...judgePrograms(facts), ...judgeClock(facts)].map(
    toProblem,
  )

/** A refusal of kubeadm is an error, unless the pack has it ignored. @returns for the name of a check */
const severityOf =
  ({ ignoredChecks }: KubernetesSettings) =>
  (check: string): Severity =>
    ignoredChecks.has('all') || ignoredChecks.has(check.toLowerCase()) ? 'warning' : 'error'

const toProblem = ([code, severity, message]: Found): PreflightProblem => ({ code, severity, message })

/**
 * Judges this host for a change of the cluster that runs on it; pure. Ports, routes and files of Kubernetes are its own by then, and its
 * images are there: less space than a new cluster needs is a warning, unless another Kubernetes is installed.
 */
export function judgeHostOfChange(
  facts: HostFacts,
  { kubernetes }: Pick<DesiredState, 'kubernetes'>,
  running: Pick<DesiredState, 'kubernetes'>,
  settings: KubernetesSettings,
): readonly PreflightProblem[] {
  const { version } = kubernetes
  const minor = Number(/^1\.(\d+)/.exec(version)?.[1] ?? 0)
  const isSame = version === running.kubernetes.version
  const found: readonly Found[] = [
    ...judgeMachine(facts, minor, version, () => 'warning'),
    ...judgeCgroups(facts, minor, version, settings),
    ...judgeSysctls(facts, settings),
    ...judgePrograms(facts),
    ...judgeClock(facts),
  ]
  return found
    .map(toProblem)
    .map((each) => (isSame && each.code === 'DiskSpaceLow' ? { ...each, severity: 'warning' } : each))
}

/** Facts that a host has reported; absent where they are not known. */
export interface ReportedFacts extends Partial<Pick<HostFacts, 'kernel' | 'memoryBytes' | 'cores'>> {
  /** Its networks that do not go with a cluster: the network of the node's address. */
  readonly networks: HostFacts['networks']
}

/**
 * Judges a host for a new cluster by its reported facts, before it is asked; pure. It finds nothing that the host would not.
 * @param version of Kubernetes
 * @param address of the node; empty where it is not known
 */
export function judgeReported(
  { kernel, memoryBytes, cores, networks }: ReportedFacts,
  { version, address }: { readonly version: string; readonly address: string },
  settings: KubernetesSettings,
): readonly PreflightProblem[] {
  const minor = Number(/^1\.(\d+)/.exec(version)?.[1] ?? 0)
  const enough = {
    architecture: 'amd64',
    kernel: kernel ?? newestKernel,
    memoryBytes: memoryBytes ?? leastMemoryBytes,
    cores: cores ?? leastCores,
    spaces: [],
  }
  const ofAddress =
    address === ''
      ? []
      : [...judgeNetworks({ networks }, settings, address), ...judgeFamilies(settings, address)]
  return [...judgeMachine(enough, minor, version, severityOf(settings)), ...ofAddress].map(toProblem)
}

// Every kubeadm accepts it.
const newestKernel = '99.0'

function judgeMachine(
  {
    architecture,
    kernel,
    memoryBytes,
    cores,
    spaces,
  }: Pick<HostFacts, 'architecture' | 'kernel' | 'memoryBytes' | 'cores' | 'spaces'>,
  minor: number,
  version: string,
  ofKubeadm: (check: string) => Severity,
): readonly Found[] {
  const found: Found[] = []
  if (!['amd64', 'arm64'].includes(architecture))
    found.push([
      'ArchitectureUnsupported',
      'error',
      `this host is ${architecture}; a cluster needs amd64 or arm64`,
    ])
  if (!isKernelSupported(kernel, minor))
    found.push([
      'KernelUnsupported',
      ofKubeadm('SystemVerification'),
      `kubeadm of Kubernetes ${version} does not accept the kernel ${kernel}; it takes ${kernelsOf(minor)}`,
    ])
  if (memoryBytes < leastMemoryBytes)
    found.push([
      'MemoryTooSmall',
      ofKubeadm('Mem'),
      `this host has ${Math.floor(memoryBytes / mebibyte)} MiB of memory; a control plane needs ${leastMemoryBytes / mebibyte} MiB`,
    ])
  if (cores < leastCores)
    found.push([
      'TooFewCores',
      ofKubeadm('NumCPU'),
      `this host has ${cores} core; a control plane needs ${leastCores}`,
    ])
  for (const { folder, neededBytes, sizeBytes, freeBytes, inodes } of spaces) {
    const place = `the file system of ${folder} has ${Math.floor(freeBytes / mebibyte)} MiB free`
    if (freeBytes < neededBytes)
      found.push([
        'DiskSpaceLow',
        'error',
        `${place}; a cluster needs ${neededBytes / mebibyte} MiB there, free some space`,
      ])
    else if (freeBytes < sizeBytes * leastFreeShare)
      found.push([
        'DiskSpaceLow',
        'warning',
        `${place}, which is less than ${leastFreeShare * 100} % of it: the kubelet removes images and refuses pods then`,
      ])
    const leastInodes = (neededBytes / mebibyte) * inodesPerMebibyte
    if (inodes && inodes.free < Math.max(leastInodes, inodes.total * leastInodeShare))
      found.push([
        'DiskSpaceLow',
        inodes.free < leastInodes ? 'error' : 'warning',
        `the file system of ${folder} has room for ${inodes.free} more files (df -i): a cluster needs ${leastInodes}, and below ${leastInodeShare * 100} % of all the kubelet removes images and refuses pods; remove files, or make the file system anew with more inodes (mkfs.ext4 -i 16384)`,
      ])
  }
  return found
}

/** The versions that kubeadm accepts: k8s.io/system-validators, validators/types_unix.go, of 1.31, 1.32 and 1.34. */
export function isKernelSupported(kernel: string, minor: number): boolean {
  const [major = 0, second = 0] = kernel.split(/[.-]/, 2).map(Number)
  if (minor >= 34) return major >= 6 || (major === 5 && [4, 10, 15].includes(second))
  if (minor >= 32) return major >= 5 || (major === 4 && second >= 19)
  return major >= 4 || (major === 3 && second >= 10)
}

function kernelsOf(minor: number): string {
  if (minor >= 34) return '5.4, 5.10, 5.15 and all from 6.0 on'
  return minor >= 32 ? '4.19 and newer' : '3.10 and newer'
}

function judgeCgroups(
  { cgroups: { version, controllers } }: HostFacts,
  minor: number,
  kubernetes: string,
  { failsOnCgroupV1 = minor >= 35 }: KubernetesSettings,
): readonly Found[] {
  const missing = ['cpu', 'cpuset', 'memory', 'pids'].filter((name) => !controllers.has(name))
  const found: Found[] = missing.map((name) => [
    'CgroupControllerMissing',
    'error',
    `the kernel of this host has no control group "${name}"; enable it, for example by cgroup_enable=${name} on the kernel's command line`,
  ])
  if (version === 1)
    found.push([
      'CgroupVersionOutdated',
      failsOnCgroupV1 ? 'error' : 'warning',
      failsOnCgroupV1
        ? `this host has control groups of version 1, which the kubelet of Kubernetes ${kubernetes} refuses; boot with systemd.unified_cgroup_hierarchy=1, or set kubeletConfiguration.failCgroupV1 to false in the Kubernetes pack`
        : 'this host has control groups of version 1, which Kubernetes refuses from 1.35 on; boot with systemd.unified_cgroup_hierarchy=1',
    ])
  return found
}

/** Programs of the host's part, with Debian's packages; one of the names is enough. */
const neededPrograms: readonly (readonly [names: readonly string[], debian: string, severity: Severity])[] = [
  [['containerd'], 'containerd', 'error'],
  [['runc'], 'runc', 'error'],
  [['ip'], 'iproute2', 'error'],
  [['iptables', 'nft'], 'iptables', 'error'],
  [['conntrack'], 'conntrack', 'error'],
  // kubeadm looks for both.
  [['mount'], 'mount', 'error'],
  [['losetup'], 'mount', 'error'],
  [['socat'], 'socat', 'warning'],
  [['ethtool'], 'ethtool', 'warning'],
]

// The one plugin that containerd itself needs is looked for.
const neededPlugin = { name: 'loopback', debian: 'containernetworking-plugins' }

/**
 * Packages of Debian 12 that bring what a cluster needs of the operating system: the package edgehostd-kubernetes depends on them. kmod loads
 * the modules of the kernel (overlay, br_netfilter), which may as well be built into it, so the pre-flight does not look for it.
 */
export const clusterPackages: readonly string[] = [
  ...new Set([...neededPrograms.map(([, debian]) => debian), neededPlugin.debian, 'kmod']),
]

/** All missing programs of one severity are one problem: one command installs them. */
function judgePrograms({ programs, cniPlugins }: HostFacts): readonly Found[] {
  const missing = neededPrograms
    .filter(([names]) => !names.some((name) => programs.has(name)))
    .map(([names, debian, severity]) => ({ name: names.join(' or '), debian, severity }))
  if (!cniPlugins.has(neededPlugin.name))
    missing.push({ name: 'the CNI plugins', debian: neededPlugin.debian, severity: 'error' })
  return (['error', 'warning'] as const).flatMap((severity): readonly Found[] => {
    const found = missing.filter((each) => each.severity === severity)
    if (found.length === 0) return []
    const packages = [...new Set(found.map(({ debian }) => debian))].join(' ')
    return [
      [
        'HostProgramMissing',
        severity,
        `what a cluster needs of the operating system is missing on this host: ${found.map(({ name }) => name).join(', ')}; install it, with Debian: apt-get install ./edgehostd-kubernetes_*_all.deb, or: apt-get install ${packages}`,
      ],
    ]
  })
}

/**
 * API server; etcd for clients, members and its own health; health and API of the kubelet; controller manager; scheduler. kubeadm itself
 * does not check the two for health, and waits four minutes for a program that cannot take its port. kube-proxy starts without its own.
 */
function judgePorts(
  { ports }: HostFacts,
  { apiPort, kubeletHealthPort }: KubernetesSettings,
): readonly Found[] {
  return [apiPort, 2379, 2380, 2381, kubeletHealthPort, 10250, 10257, 10259]
    .filter((port) => ports.has(port))
    .map((port) => [
      'PortTaken',
      'error',
      `another program listens at TCP port ${port}, which the cluster needs; ss -ltnp 'sport = :${port}' names it`,
    ])
}

function judgeNetworks(
  { networks: { addresses, routes } }: Pick<HostFacts, 'networks'>,
  { pods, services }: KubernetesSettings,
  nodeAddress: string,
): readonly Found[] {
  const found: Found[] = []
  const named = [
    ...pods.map((subnet) => ({ subnet, name: 'pods' })),
    ...services.map((subnet) => ({ subnet, name: 'services' })),
  ]
  for (const pod of pods)
    for (const service of services)
      if (overlap(pod, service))
        found.push([
          'NetworkOverlaps',
          'error',
          `the networks of pods, ${spellSubnet(pod)}, and of services, ${spellSubnet(service)}, overlap; change one of them in the Kubernetes pack`,
        ])
  for (const { subnet, name } of named) {
    const spelled = `the network of ${name}, ${spellSubnet(subnet)},`
    const own = [...new Set([nodeAddress, ...addresses])].find((address) => isInSubnet(address, subnet))
    const clash = routes.find((route) => overlap(route.subnet, subnet))
    const change = 'change podSubnet or serviceSubnet in the Kubernetes pack'
    if (own !== undefined)
      found.push([
        'NetworkOverlaps',
        'error',
        `${spelled} contains the address ${own} of this host; ${change}`,
      ])
    else if (clash?.isConnected)
      found.push([
        'NetworkOverlaps',
        'error',
        `${spelled} overlaps ${spellSubnet(clash.subnet)} at the interface ${clash.networkInterface} of this host; ${change}`,
      ])
    else if (clash)
      found.push([
        'NetworkOverlaps',
        'warning',
        `${spelled} overlaps ${spellSubnet(clash.subnet)}, to which this host has a route: hosts there may not be reached; ${change}`,
      ])
  }
  return found
}

const familyNames = { ipv4: 'IPv4', ipv6: 'IPv6' } as const

/** The API server ends at once if its address and the first network of services are of two families; pods answer for services. */
function judgeFamilies({ pods, services }: KubernetesSettings, nodeAddress: string): readonly Found[] {
  const [first] = services
  if (!first) return []
  const family = familyOf(first.address)
  const spelled = `the network of services, ${spellSubnet(first)}, is of ${familyNames[family]}`
  const found: Found[] = []
  if (family !== familyOf(nodeAddress))
    found.push([
      'NetworkFamilyDiffers',
      'error',
      `${spelled}, and the address of this host, ${nodeAddress}, is not: the API server does not start so; name a network of its family first in serviceSubnet of the Kubernetes pack, or give a hostAddress of ${familyNames[family]}`,
    ])
  if (pods.length > 0 && !pods.some(({ address }) => familyOf(address) === family))
    found.push([
      'NetworkFamilyDiffers',
      'error',
      `${spelled}, and no network of pods is: services would have no pods; change podSubnet or serviceSubnet in the Kubernetes pack`,
    ])
  return found
}

function judgeFirewall(
  { droppingChains }: HostFacts,
  { pods, apiPort }: KubernetesSettings,
): readonly Found[] {
  if (droppingChains.length === 0) return []
  const from = pods.length > 0 ? ` from and to ${pods.map(spellSubnet).join(' and ')}` : ''
  return [
    [
      'FirewallDrops',
      'warning',
      `the firewall of this host drops or rejects what it does not accept (${droppingChains.join(', ')}): let the packets of pods${from} pass, and those to the TCP ports ${apiPort} and 10250 of this host, otherwise pods reach neither the API server nor each other`,
    ],
  ]
}

function judgeLeftovers(
  { swaps, kubernetes, networkConfigs }: HostFacts,
  { failsOnSwap }: KubernetesSettings,
): readonly Found[] {
  const found: Found[] = []
  if (swaps.length > 0 && failsOnSwap)
    found.push([
      'SwapEnabled',
      'error',
      `the kubelet refuses a host with swap (${swaps.join(', ')}); turn it off with swapoff --all and remove it from /etc/fstab, or set kubeletConfiguration.failSwapOn to false in the Kubernetes pack`,
    ])
  if (kubernetes.length > 0)
    found.push([
      'KubernetesPresent',
      'error',
      `this host has a Kubernetes already: ${kubernetes.join(', ')}; remove it, for example with kubeadm reset and by removing the package kubelet`,
    ])
  if (networkConfigs.length > 0)
    found.push([
      'NetworkConfigPresent',
      'warning',
      `/etc/cni/net.d has network configurations of another program: ${networkConfigs.join(', ')}; pods that start before the network of the cluster is installed get theirs, so move them to another folder`,
    ])
  return found
}

function judgeSysctls({ sysctls }: HostFacts, settings: KubernetesSettings): readonly Found[] {
  const differing = Object.entries(protectedSysctls).filter(([name, value]) => sysctls.get(name) !== value)
  if (!settings.protectsKernelDefaults || differing.length === 0) return []
  const present = differing.map(([name]) => `${name}=${sysctls.get(name) ?? ''}`).join(', ')
  const expected = differing.map(([name, value]) => `${name}=${value}`).join(', ')
  return [
    [
      'KernelDefaultsDiffer',
      'error',
      `the pack sets protectKernelDefaults, with which the kubelet ends on this host: it has ${present}. Write ${expected}, one a line, to /etc/sysctl.d/90-kubelet.conf and run sysctl --system, or set protectKernelDefaults to false in the Kubernetes pack`,
    ],
  ]
}

function judgeClock({ clock: { now, isSynchronized } }: HostFacts): readonly Found[] {
  if (now < oldestTime)
    return [
      [
        'ClockWrong',
        'error',
        `the clock of this host says ${new Date(now).toISOString()}; set it, certificates would be made for that time`,
      ],
    ]
  if (isSynchronized) return []
  return [
    [
      'ClockNotSynchronized',
      'warning',
      'the clock of this host is not synchronized by NTP; certificates and leases need a clock that does not jump',
    ],
  ]
}

/** A name of DNS (RFC 1123) of 63 characters, since Kubernetes makes a label of it. */
function judgeName(name: string): readonly Found[] {
  const isValid =
    name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
  if (isValid && !/^localhost(\.|$)/.test(name)) return []
  return [
    [
      'NodeNameInvalid',
      'error',
      `the host name ${JSON.stringify(name)} cannot be the name of a node; set another one with hostnamectl hostname NAME: at most 63 lower-case letters, digits, hyphens and dots, and not localhost`,
    ],
  ]
}
